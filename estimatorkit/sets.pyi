from estimatorkit.compat.names.sets import *

