"""Feature columns as data: one class per kind, with the arguments of the function that makes it.

Each field of `Feature` is a kind, and a YAML item has exactly one key. A class names the function
of `estimatorkit.feature_column` that makes the column (called by `build`), the data columns it
reads and their types (`reads`), and its output: `gives_ids` if a linear model, a cross, an
indicator or an embedding accepts it, `gives_numbers` if a network does. Normalizers are names of a
fixed table: a configuration holds data, never code.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, Self, get_args

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag, model_validator

from estimatorkit.experiment.arguments import Arguments, Kinds
from estimatorkit.experiment.estimators import Optimizer
from estimatorkit.experiment.sections import (
    Count,
    FileName,
    NotNegative,
    Number,
    OneKey,
    Positive,
    Text,
    Whole,
    short,
    wrong,
)


@dataclass(frozen=True)
class Read:
    """A data column that features read.

    Attributes:
        key: its name.
        dtype: 'float32' and so on, 'string', or 'any': the type of other readers, or else text.
        default: replaces missing numbers; NaN leaves them, None makes them an error.
    """

    key: str
    dtype: str
    default: float | None = None


class ColumnArguments(Arguments):
    """The base class of all kinds."""

    types = {  # noqa: RUF012
        "combiner": Annotated[
            Literal["mean", "sqrtn", "sum"],
            Field(description="how several of an example become one"),
        ],
        "default_value": Annotated[int | None, Field(strict=True, ge=-1)],
        "file_format": None,  # columns of sequences have none
        "key": Annotated[Text, Field(description="the column in the data")],
        "dimension": Annotated[Count, Field(description="the length of the vectors")],
        "max_norm": Annotated[
            Positive | None, Field(description="the longest that a vector may be")
        ],
        "shared_embedding_collection_name": None,
        "tensor_name_in_ckpt": None,
        "use_safe_embedding_lookup": None,
    }
    gives_ids: ClassVar[bool] = False
    gives_numbers: ClassVar[bool] = False

    @property
    def read(self) -> tuple[str, float | None]:
        """How the column `key` is read: type and default (see `Read`)."""
        return "string", None

    def reads(self) -> Iterator[Read]:
        """The data columns that it and the columns in it read."""
        for _, value in self:
            for each in value if isinstance(value, tuple) else (value,):
                arguments = each.arguments if isinstance(each, Feature) else each
                if isinstance(arguments, ColumnArguments):
                    yield from arguments.reads()
        key = getattr(self, "key", None)
        if key is not None:
            yield Read(key, *self.read)


# -- normalizers


class _Normalizer(Arguments):
    type: str


class Standardize(_Normalizer):
    """(x - mean) / deviation."""

    mean: Number
    deviation: Positive


class Scale(_Normalizer):
    """(x - low) / (high - low): from [low, high] to [0, 1]."""

    low: Number = 0.0
    high: Number = 1.0

    @model_validator(mode="after")
    def _rises(self) -> Self:
        if self.high <= self.low:
            raise wrong(f"is not above low, {self.low}", at=("high",), expected="low < high")
        return self


class Robust(_Normalizer):
    """z / sqrt(1 + (z / limit)^2) of z = (x - center) / scale; 0 if scale is 0."""

    center: Number
    scale: NotNegative
    limit: Positive = 3.0


class Log1p(_Normalizer):
    """log(1 + x) of x, or of low where x is smaller."""

    low: Annotated[Number, Field(gt=-1.0, description="such as 0: counts of -1 mean unknown")] = 0.0


class Clip(_Normalizer):
    """x, at least low and at most high."""

    low: Number
    high: Number


NORMALIZERS = Kinds(
    _Normalizer,
    {
        "log1p": ("", Log1p),
        "standardize": ("", Standardize),
        "scale": ("", Scale),
        "clip": ("", Clip),
        "robust": ("", Robust),
    },
    ("a name", Literal["log1p"]),
)

# -- numbers


_Default = Annotated[
    Annotated[Number, Tag("a number")] | Annotated[Literal["nan"], Tag("nan")],
    Discriminator(lambda value: "nan" if isinstance(value, str) else "a number"),
]


class Numeric(ColumnArguments):
    """Numbers as they are, or normalized (`numeric_column`)."""

    place = "layers.feature_column.numeric:numeric_column"
    renamed = {"default": "default_value", "normalizer": "normalizer_fn"}  # noqa: RUF012
    gives_numbers = True

    default: Annotated[
        _Default | None,
        Field(
            description="the value where the data has none; nan: the estimator takes missing"
            " numbers; null: that is an error"
        ),
    ] = None
    dtype: Literal["float32", "float64", "int32", "int64"] = "float32"
    shape: Annotated[
        tuple[Count, ...], Field(min_length=1, description="of one example, such as [28, 28]")
    ] = (1,)
    normalizer: Annotated[
        Annotated[Any, NORMALIZERS] | None,
        Field(description="log1p, or {type: standardize, mean: 38.6, deviation: 13.7}, ..."),
    ] = None

    @property
    def read(self) -> tuple[str, float | None]:
        """As it is."""
        return self.dtype, None if self.default is None else float(self.default)


NumericOrKey = Annotated[
    Numeric, BeforeValidator(short("key"), json_schema_input_type=str | Numeric)
]


class Bucketized(ColumnArguments):
    """Ranges of numbers (`bucketized_column`)."""

    place = "layers.feature_column.numeric:bucketized_column"
    renamed = {"column": "source_column"}  # noqa: RUF012
    gives_ids = True
    gives_numbers = True

    column: Annotated[
        NumericOrKey, Field(description="the column in the data, or arguments as of numeric")
    ]
    boundaries: Annotated[
        tuple[Number, ...], Field(min_length=1, description="rising numbers: where ranges begin")
    ]

    @model_validator(mode="after")
    def _rising(self) -> Self:
        if list(self.boundaries) != sorted(set(self.boundaries)):
            raise wrong("do not rise", at=("boundaries",), expected="rising numbers, each once")
        return self


# -- ids


def _words_are(value: Any) -> str:
    items = value if isinstance(value, list | tuple) else ()
    integers = bool(items) and all(type(each) is int for each in items)
    return "integers" if integers else "text"


class VocabularyList(ColumnArguments):
    """Words by their place in a list (`categorical_column_with_vocabulary_list`)."""

    place = "layers.feature_column.vocabulary:categorical_column_with_vocabulary_list"
    renamed = {"words": "vocabulary_list"}  # noqa: RUF012
    gives_ids = True

    words: Annotated[
        Annotated[tuple[Text, ...], Tag("text")] | Annotated[tuple[Whole, ...], Tag("integers")],
        Discriminator(_words_are),
        Field(description="the words, or integers, each once"),
    ]
    default_value: Annotated[
        int, Field(strict=True, ge=-1, description="the id of other words; -1 leaves them out")
    ] = -1

    @property
    def read(self) -> tuple[str, float | None]:
        """As the words are."""
        return ("string", None) if isinstance(self.words[0], str) else ("int64", -1)


class Vocabulary(ColumnArguments):
    """Words of the training data, by how often they are seen; rare ones share `num_oov_buckets`.

    `vocabularies` counts them, and makes `vocabulary_file` of it.
    """

    gives_ids = True

    key: Annotated[Text, Field(description="the column in the data")]
    min_count: Annotated[Count, Field(description="how often a word is seen to be one")] = 1
    max_size: Annotated[
        Count | None, Field(description="the most frequent words only; null: all")
    ] = None
    num_oov_buckets: Annotated[
        int, Field(strict=True, ge=0, description="hash buckets for other words; 0 leaves them out")
    ] = 1


VocabularyOrKey = Annotated[
    Vocabulary, BeforeValidator(short("key"), json_schema_input_type=str | Vocabulary)
]


class VocabularyFile(ColumnArguments):
    """Words by their line in a file (`categorical_column_with_vocabulary_file`)."""

    place = "layers.feature_column.vocabulary:categorical_column_with_vocabulary_file"
    renamed = {"file": "vocabulary_file", "size": "vocabulary_size"}  # noqa: RUF012
    gives_ids = True

    file: Annotated[FileName, Field(description="a word a line; relative to the YAML file")]


class Identity(ColumnArguments):
    """Integers that are ids already (`categorical_column_with_identity`)."""

    place = "layers.feature_column.categorical:categorical_column_with_identity"
    gives_ids = True

    default_value: Annotated[
        int | None, Field(strict=True, ge=0, description="the id of others; null: an error")
    ] = None

    @property
    def read(self) -> tuple[str, float | None]:
        """As integers; a missing one is -1, which is ignored."""
        return "int64", -1


class HashBucket(ColumnArguments):
    """Words or integers by their hash (`categorical_column_with_hash_bucket`)."""

    place = "layers.feature_column.categorical:categorical_column_with_hash_bucket"
    gives_ids = True

    dtype: Literal["string", "int32", "int64"] = "string"

    @property
    def read(self) -> tuple[str, float | None]:
        """As `dtype` says."""
        return self.dtype, None if self.dtype == "string" else -1


class HashedWords(ColumnArguments):
    """The words of a text by their hash, and pairs of them
    (`categorical_column_with_hashed_words`)."""

    place = "layers.feature_column.words:categorical_column_with_hashed_words"
    gives_ids = True


def _gives_ids(feature: Feature) -> Feature:
    if not feature.arguments.gives_ids:
        raise wrong(
            f"is a column of numbers ({feature.kind})",
            expected=f"a column of ids: {kinds_that('gives_ids')}",
        )
    return feature


def _crosses(feature: Feature) -> Feature:
    if feature.kind == "hash_bucket":
        raise wrong(
            "is a hash_bucket, whose values would be hashed twice",
            expected=f"the name of the column, {feature.arguments.key!r}",
        )
    return feature


Ids = Annotated["Feature", AfterValidator(_gives_ids)]
KeyOrColumn = Annotated[
    Annotated[Text, Tag("a column in the data")]
    | Annotated[Ids, AfterValidator(_crosses), Tag("a column of ids")],
    Discriminator(
        lambda value: (
            "a column of ids" if isinstance(value, dict | Feature) else "a column in the data"
        )
    ),
]


class Crossed(ColumnArguments):
    """Combinations of values, by their hash (`crossed_column`)."""

    place = "layers.feature_column.crossed:crossed_column"
    gives_ids = True

    keys: Annotated[
        tuple[KeyOrColumn, ...],
        Field(min_length=2, description="columns in the data, or columns of ids (not hash_bucket)"),
    ]
    hash_key: Annotated[int | None, Field(strict=True, description="what the hash begins with")] = (
        None
    )

    def reads(self) -> Iterator[Read]:
        """The data columns of all crossed keys and columns."""
        for each in self.keys:
            if isinstance(each, str):
                yield Read(each, "any")
            else:
                yield from each.arguments.reads()


class _OfIds(ColumnArguments):
    """A column made of one id column."""

    renamed = {"column": "categorical_column", "weight": "weight_feature_key"}  # noqa: RUF012

    column: Annotated[Ids, Field(description="a column of ids")]


class Weighted(_OfIds):
    """Ids with weights from another data column (`weighted_categorical_column`)."""

    place = "layers.feature_column.categorical:weighted_categorical_column"
    gives_ids = True

    weight: Annotated[Text, Field(description="the column in the data with the weights")]

    def reads(self) -> Iterator[Read]:
        """The data columns of the ids, and the weights."""
        yield from super().reads()
        yield Read(self.weight, "float32")


# -- ids made dense


class Indicator(_OfIds):
    """Ids as a vector of zeros and ones (`indicator_column`)."""

    place = "layers.feature_column.indicator:indicator_column"
    gives_numbers = True


class Table(Arguments):
    """The table of an embedding (`EmbeddingTable`)."""

    place = "layers.feature_column.embedding_table:EmbeddingTable"

    optimizer: Optimizer | None = None

    @model_validator(mode="after")
    def _fits(self: Any) -> Any:
        if self.dynamic and (self.rows is not None or self.hashes > 1):
            raise wrong("is dynamic and has rows or hashes", expected="dynamic, or rows and hashes")
        if self.hashes > 1 and self.rows is None:
            raise wrong("has hashes, but no rows", expected="rows: 100000")
        if not self.dynamic and (self.min_count > 1 or self.max_age or self.partitions > 1):
            raise wrong(
                "has min_count, max_age or partitions, but is not dynamic", expected="dynamic: true"
            )
        rate = getattr(self.optimizer, "learning_rate", None)
        if getattr(rate, "decay_steps", 0) is None:
            raise wrong(
                "has no decay_steps",
                at=("optimizer", "learning_rate"),
                expected="a number of steps: a table does not know how long the training is",
            )
        return self


class _Embedding(ColumnArguments):
    """The common arguments of embeddings."""

    gives_numbers = True

    table: Table | None = None


class Embedding(_OfIds, _Embedding):
    """A vector that is learned for each id (`embedding_column`)."""

    place = "layers.feature_column.embedding:embedding_column"


class SharedEmbeddings(_Embedding):
    """Embeddings of several columns that share one table (`shared_embeddings`)."""

    place = "layers.feature_column.embedding:shared_embeddings"

    columns: Annotated[
        tuple[Ids, ...], Field(min_length=2, description="columns of ids of one vocabulary")
    ]


class Sequence(_Embedding):
    """A sequence of behaviours, and the target of the same vocabulary, which share a table
    (`shared_embeddings`).
    """

    place = "layers.feature_column.embedding:shared_embeddings"

    target: Annotated[Ids, Field(description="the column of ids of the item to predict for")]
    history: Annotated[
        Text, Field(description="the column in the data with lists of such ids, the newest last")
    ]
    negatives: Annotated[
        Text | None,
        Field(description="one with lists as long, of items that were there instead (DIEN)"),
    ] = None

    @model_validator(mode="after")
    def _of_three_columns(self) -> Self:
        if not hasattr(self.target.arguments, "key"):
            raise wrong(
                f"is a {self.target.kind} column, which reads no single column of the data",
                at=("target",),
                expected=f"one of {', '.join(_SEQUENCES)}",
            )
        taken = {self.target.arguments.key: "the target's column"}
        for name, key in (("history", self.history), ("negatives", self.negatives)):
            if key in taken:
                raise wrong(
                    f"is {key!r}, as {taken[key]}",
                    at=(name,),
                    expected="another column of the data, with lists",
                )
            if key is not None:
                taken[key] = f"the {name}"
        return self

    @property
    def steps(self) -> list[ColumnArguments]:
        """Copies of the target's column that read the history and, if given, the negatives."""
        read = [key for key in (self.history, self.negatives) if key is not None]
        return [self.target.arguments.model_copy(update={"key": key}) for key in read]

    def reads(self) -> Iterator[Read]:
        """The data columns of the target and the history; `negatives` are only read in training."""
        for each in (self.target.arguments, self.steps[0]):
            yield from each.reads()


# -- the table


def _column_of_ids(value: Any) -> Any:
    """Expands `indicator: {hash_bucket: ...}` to `indicator: {column: {hash_bucket: ...}}`."""
    long = isinstance(value, dict) and "column" not in value
    return {"column": value} if long or isinstance(value, Feature) else value


class Feature(OneKey):
    """A feature column: one key, its kind, with its arguments."""

    numeric: NumericOrKey | None = None
    bucketized: Bucketized | None = None
    vocabulary: VocabularyOrKey | None = None
    vocabulary_list: VocabularyList | None = None
    vocabulary_file: VocabularyFile | None = None
    identity: Identity | None = None
    hash_bucket: HashBucket | None = None
    hashed_words: HashedWords | None = None
    crossed: Crossed | None = None
    weighted: Weighted | None = None
    indicator: Annotated[Indicator, BeforeValidator(_column_of_ids)] | None = None
    embedding: Embedding | None = None
    shared_embeddings: SharedEmbeddings | None = None

    @model_validator(mode="after")
    def _one_key(self) -> Self:
        given, kinds = [kind for kind, value in self if value is not None], ", ".join(KINDS)
        if not given:
            raise wrong("names no kind of column", expected=f"one of {kinds}")
        if len(given) > 1:
            raise wrong(
                f"names several kinds of columns: {', '.join(given)}",
                expected="one kind; several columns are several items of the list",
            )
        return self

    @property
    def arguments(self) -> Any:
        """The arguments of the column's kind."""
        return self.value


def _arguments_in(annotation: Any) -> Iterator[type[ColumnArguments]]:
    if isinstance(annotation, type) and issubclass(annotation, ColumnArguments):
        yield annotation
    for argument in get_args(annotation):
        yield from _arguments_in(argument)


for _class in (
    Crossed,
    _OfIds,
    Weighted,
    Indicator,
    Embedding,
    SharedEmbeddings,
    Sequence,
    Feature,
):
    _class.model_rebuild()

KINDS = {
    name: next(_arguments_in(field.annotation)) for name, field in Feature.model_fields.items()
}


_SEQUENCES = ("vocabulary", "vocabulary_list", "vocabulary_file", "identity", "hash_bucket")


def kinds_that(gives: Literal["gives_ids", "gives_numbers"]) -> str:
    """The names of the kinds that give ids, or numbers."""
    return ", ".join(kind for kind, each in KINDS.items() if getattr(each, gives))


def all_reads(reads: Iterable[Read]) -> dict[str, Read]:
    """The columns that are read, in order, each once.

    Raises:
        ValueError: one is read both as text and as numbers; the message is its name.
    """
    found: dict[str, Read] = {}
    for read in reads:
        found[read.key] = _joined(found.get(read.key, read), read)
    return found


def _joined(one: Read, other: Read) -> Read:
    """Merges two reads of a data column; integers stay integers, since ids are made of them."""
    if one.dtype == "any" or other.dtype == "any":
        return other if one.dtype == "any" else one
    if (one.dtype == "string") != (other.dtype == "string"):
        raise ValueError(one.key)
    if one.dtype.startswith("int"):
        return one
    return Read(other.key, other.dtype, one.default) if other.dtype.startswith("int") else one
