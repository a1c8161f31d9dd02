from estimatorkit.keras.engine.model import Model as Model
from estimatorkit.keras.engine.sequential import Sequential as Sequential
from estimatorkit.keras.engine.saving import load_model as load_model, save_model as save_model
from estimatorkit.keras.engine.model_config import (
    clone_model as clone_model, model_from_config as model_from_config,
    model_from_json as model_from_json, model_from_yaml as model_from_yaml,
)
