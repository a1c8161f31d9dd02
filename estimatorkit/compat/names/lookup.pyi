from estimatorkit.compat.ops.tables.vocabularies import (
    FastHashSpec as FastHashSpec, HasherSpec as HasherSpec,
    IdTableWithHashBuckets as IdTableWithHashBuckets,
    index_table_from_file as index_table_from_file,
    index_table_from_tensor as index_table_from_tensor,
    index_to_string_table_from_file as index_to_string_table_from_file,
    index_to_string_table_from_tensor as index_to_string_table_from_tensor,
    StaticVocabularyTable as StaticVocabularyTable, StrongHashSpec as StrongHashSpec,
)
