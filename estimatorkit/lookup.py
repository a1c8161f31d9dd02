"""`tf.lookup`: tables."""

from __future__ import annotations

from estimatorkit.lazy import attach, names

_PLACES = {
    "experimental": "estimatorkit.ops.tables.mutable_tables",
    **names(
        "estimatorkit.ops.tables.static_tables",
        "HashTable KeyValueTensorInitializer StaticHashTable TextFileIdTableInitializer",
        "TextFileIndex TextFileInitializer TextFileStringTableInitializer",
    ),
    **names("estimatorkit.ops.tables.mutable_tables", "DenseHashTable MutableHashTable"),
    **names(
        "estimatorkit.ops.tables.vocabularies",
        "FastHashSpec HasherSpec IdTableWithHashBuckets StaticVocabularyTable StrongHashSpec",
        "index_table_from_file index_table_from_tensor index_to_string_table_from_file",
        "index_to_string_table_from_tensor",
    ),
}

__getattr__, __dir__, __all__ = attach(__name__, _PLACES)
