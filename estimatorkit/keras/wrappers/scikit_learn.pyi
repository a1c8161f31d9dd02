from estimatorkit.compat.names.keras.wrappers.scikit_learn import *
