from estimatorkit.compat.names.keras.preprocessing.text import *
