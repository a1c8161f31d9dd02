from estimatorkit.data.csv import read_csv as read_csv
from estimatorkit.data.dataset import Dataset as Dataset
from estimatorkit.data.dataset_methods import AUTOTUNE as AUTOTUNE
from estimatorkit.data.execution.block_iterator import BlockIterator as BlockIterator
from estimatorkit.data.list_cells import split_cells as split_cells
from estimatorkit.data.plan import INFINITE, TracedFunction as TracedFunction, UNKNOWN
from estimatorkit.data.spec import (
    DatasetSpec as DatasetSpec, SparseTensorSpec as SparseTensorSpec, TensorSpec as TensorSpec,
)
from estimatorkit.data.iterator_ops import (
    get_output_classes as get_output_classes, get_output_shapes as get_output_shapes,
    get_output_types as get_output_types, Iterator as Iterator,
    make_initializable_iterator as make_initializable_iterator,
    make_one_shot_iterator as make_one_shot_iterator,
)
from . import experimental as experimental
from estimatorkit.data.inputs import (
    numpy_input_fn as numpy_input_fn, pandas_input_fn as pandas_input_fn,
)
from estimatorkit.data.options import Options as Options, ThreadingOptions as ThreadingOptions
from estimatorkit.data.readers.tfrecords import TFRecordDataset as TFRecordDataset
from estimatorkit.data.readers.fixed_length_records import (
    FixedLengthRecordDataset as FixedLengthRecordDataset,
)
from estimatorkit.data.readers.text_lines import TextLineDataset as TextLineDataset
from estimatorkit.data.readers.parquet import (
    ArrowDataset as ArrowDataset, ParquetDataset as ParquetDataset,
)

INFINITE_CARDINALITY = INFINITE
UNKNOWN_CARDINALITY = UNKNOWN
