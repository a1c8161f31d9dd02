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
from estimatorkit.ops.tables.vocabularies import (
    FastHashSpec as FastHashSpec, HasherSpec as HasherSpec,
    IdTableWithHashBuckets as IdTableWithHashBuckets,
    index_table_from_file as index_table_from_file,
    index_table_from_tensor as index_table_from_tensor,
    index_to_string_table_from_file as index_to_string_table_from_file,
    index_to_string_table_from_tensor as index_to_string_table_from_tensor,
    StaticVocabularyTable as StaticVocabularyTable, StrongHashSpec as StrongHashSpec,
)

experimental = mutable_tables
