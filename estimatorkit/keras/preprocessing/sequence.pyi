from estimatorkit.compat.names.keras.preprocessing.sequence import *
