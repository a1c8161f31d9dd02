from estimatorkit.compat.names.quantization import *
