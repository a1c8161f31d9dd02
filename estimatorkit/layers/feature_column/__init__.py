"""Feature columns: descriptions of how raw features become the inputs of a model, and the layers
that apply them.

A column is a frozen dataclass (`columns`): it has a name, says what it reads, and makes ids or a
float tensor of `Features`, the raw features of a batch. By kind: `numeric` (numbers, ranges),
`categorical` and `vocabulary` (ids), `crossed`, `embedding`, `indicator`, `sequence`. What applies
them is in `layers`, `linear` and `keras_layers`; `parse_spec` says what to read from `Example`s,
`configs` describes columns in files.
"""

from __future__ import annotations

from estimatorkit.layers.feature_column.categorical import (
    categorical_column_with_hash_bucket,
    categorical_column_with_identity,
    weighted_categorical_column,
)
from estimatorkit.layers.feature_column.column_values import Ids
from estimatorkit.layers.feature_column.columns import (
    CategoricalColumn,
    DenseColumn,
    FeatureColumn,
    SequenceDenseColumn,
    normalize_columns,
)
from estimatorkit.layers.feature_column.comparison import column_texts
from estimatorkit.layers.feature_column.crossed import crossed_column
from estimatorkit.layers.feature_column.embedding import (
    embedding_column,
    shared_embedding_columns,
    shared_embeddings,
)
from estimatorkit.layers.feature_column.embedding_table import EmbeddingTable
from estimatorkit.layers.feature_column.features import Features
from estimatorkit.layers.feature_column.indicator import indicator_column
from estimatorkit.layers.feature_column.keras_layers import DenseFeatures, SequenceFeatures
from estimatorkit.layers.feature_column.layers import (
    concatenate_context_input,
    input_layer,
    sequence_input_layer,
)
from estimatorkit.layers.feature_column.linear import check_sparse_combiner, linear_model
from estimatorkit.layers.feature_column.numeric import (
    BucketizedColumn,
    NumericColumn,
    bucketized_column,
    numeric_column,
)
from estimatorkit.layers.feature_column.parse_spec import (
    classifier_parse_example_spec,
    make_parse_example_spec,
    regressor_parse_example_spec,
)
from estimatorkit.layers.feature_column.sequence import (
    sequence_categorical_column_with_hash_bucket,
    sequence_categorical_column_with_identity,
    sequence_categorical_column_with_vocabulary_file,
    sequence_categorical_column_with_vocabulary_list,
    sequence_numeric_column,
)
from estimatorkit.layers.feature_column.vocabulary import (
    categorical_column_with_vocabulary_file,
    categorical_column_with_vocabulary_list,
    check_vocabulary_fingerprints,
    vocabulary_fingerprints,
)
from estimatorkit.layers.feature_column.words import categorical_column_with_hashed_words
from estimatorkit.lazy import listing
from estimatorkit.ops.parsing.parsing import FixedLenFeature

__all__ = [
    "EmbeddingTable",
    "BucketizedColumn",
    "CategoricalColumn",
    "DenseColumn",
    "DenseFeatures",
    "FeatureColumn",
    "Features",
    "FixedLenFeature",
    "Ids",
    "NumericColumn",
    "SequenceDenseColumn",
    "SequenceFeatures",
    "bucketized_column",
    "categorical_column_with_hash_bucket",
    "categorical_column_with_hashed_words",
    "categorical_column_with_identity",
    "categorical_column_with_vocabulary_file",
    "categorical_column_with_vocabulary_list",
    "check_sparse_combiner",
    "check_vocabulary_fingerprints",
    "classifier_parse_example_spec",
    "column_texts",
    "concatenate_context_input",
    "crossed_column",
    "embedding_column",
    "indicator_column",
    "input_layer",
    "linear_model",
    "make_parse_example_spec",
    "normalize_columns",
    "numeric_column",
    "regressor_parse_example_spec",
    "sequence_categorical_column_with_hash_bucket",
    "sequence_categorical_column_with_identity",
    "sequence_categorical_column_with_vocabulary_file",
    "sequence_categorical_column_with_vocabulary_list",
    "sequence_input_layer",
    "sequence_numeric_column",
    "shared_embedding_columns",
    "shared_embeddings",
    "vocabulary_fingerprints",
    "weighted_categorical_column",
]
__dir__ = listing(__name__)
