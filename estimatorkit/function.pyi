from estimatorkit.compat.names.function import *
