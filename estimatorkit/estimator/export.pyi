from estimatorkit.estimator.serving.export_outputs import (
    ClassificationOutput as ClassificationOutput, EvalOutput as EvalOutput,
    ExportOutput as ExportOutput, PredictOutput as PredictOutput,
    RegressionOutput as RegressionOutput,
)
from estimatorkit.estimator.serving.serving_inputs import (
    build_parsing_serving_input_receiver_fn as build_parsing_serving_input_receiver_fn,
    build_raw_serving_input_receiver_fn as build_raw_serving_input_receiver_fn,
    serving_input_receiver_fn_from_columns as serving_input_receiver_fn_from_columns,
    ServingInputReceiver as ServingInputReceiver,
    TensorServingInputReceiver as TensorServingInputReceiver,
)
