from estimatorkit.compat.names.signal import *
