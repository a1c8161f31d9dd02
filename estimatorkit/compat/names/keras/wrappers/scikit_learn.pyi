from estimatorkit.compat.keras.wrappers.scikit_learn import (
    BaseWrapper as BaseWrapper, KerasClassifier as KerasClassifier,
    KerasRegressor as KerasRegressor,
)
