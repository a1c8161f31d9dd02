from estimatorkit.train.saving import (
    saved_model_builder, saved_model_constants, saved_model_loader, signatures,
)
from estimatorkit.train.saving.saved_model_builder import (
    SavedModelBuilder, simple_save as simple_save,
)
from estimatorkit.train.saving.saved_model_files import contains_saved_model as contains_saved_model
from estimatorkit.train.saving.saved_model_loader import (
    load as load, maybe_saved_model_directory as maybe_saved_model_directory,
)
from estimatorkit.train.saving.signatures import (
    build_signature_def as build_signature_def, build_tensor_info as build_tensor_info,
    classification_signature_def as classification_signature_def,
    get_tensor_from_tensor_info as get_tensor_from_tensor_info,
    is_valid_signature as is_valid_signature, predict_signature_def as predict_signature_def,
    regression_signature_def as regression_signature_def,
)
from estimatorkit.train.saving.saved_model_constants import (
    ASSETS_DIRECTORY as ASSETS_DIRECTORY, ASSETS_KEY as ASSETS_KEY,
    CLASSIFY_INPUTS as CLASSIFY_INPUTS, CLASSIFY_METHOD_NAME as CLASSIFY_METHOD_NAME,
    CLASSIFY_OUTPUT_CLASSES as CLASSIFY_OUTPUT_CLASSES,
    CLASSIFY_OUTPUT_SCORES as CLASSIFY_OUTPUT_SCORES,
    DEFAULT_SERVING_SIGNATURE_DEF_KEY as DEFAULT_SERVING_SIGNATURE_DEF_KEY, GPU as GPU,
    LEGACY_INIT_OP_KEY as LEGACY_INIT_OP_KEY, MAIN_OP_KEY as MAIN_OP_KEY,
    PREDICT_INPUTS as PREDICT_INPUTS, PREDICT_METHOD_NAME as PREDICT_METHOD_NAME,
    PREDICT_OUTPUTS as PREDICT_OUTPUTS, REGRESS_INPUTS as REGRESS_INPUTS,
    REGRESS_METHOD_NAME as REGRESS_METHOD_NAME, REGRESS_OUTPUTS as REGRESS_OUTPUTS,
    SAVED_MODEL_FILENAME_PB as SAVED_MODEL_FILENAME_PB,
    SAVED_MODEL_FILENAME_PBTXT as SAVED_MODEL_FILENAME_PBTXT,
    SAVED_MODEL_SCHEMA_VERSION as SAVED_MODEL_SCHEMA_VERSION, SERVING as SERVING, TPU as TPU,
    TRAINING as TRAINING, VARIABLES_DIRECTORY as VARIABLES_DIRECTORY,
    VARIABLES_FILENAME as VARIABLES_FILENAME,
)

builder = saved_model_builder
constants = saved_model_constants
loader = saved_model_loader
signature_constants = saved_model_constants
signature_def_utils = signatures
tag_constants = saved_model_constants
utils = signatures
Builder = SavedModelBuilder
