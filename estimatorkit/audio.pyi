from estimatorkit.compat.names.audio import *
