from estimatorkit.compat.names.keras.preprocessing.image import *
