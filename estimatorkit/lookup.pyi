from estimatorkit.ops.tables import mutable_tables
from estimatorkit.ops.tables.static_tables import (
    HashTable as HashTable, KeyValueTensorInitializer as KeyValueTensorInitializer,
    StaticHashTable as StaticHashTable, TextFileIdTableInitializer as TextFileIdTableInitializer,
    TextFileIndex as TextFileIndex, TextFileInitializer as TextFileInitializer,
    TextFileStringTableInitializer as TextFileStringTableInitializer,
)
from estimatorkit.ops.tables.mutable_tables import (
    DenseHashTable as DenseHashTable, MutableHashTable as MutableHashTable,
)
from estimatorkit.compat.names.lookup import *

experimental = mutable_tables
