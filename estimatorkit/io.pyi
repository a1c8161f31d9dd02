from estimatorkit import gfile as gfile
from estimatorkit.ops.files.files import (
    matching_files as matching_files, read_file as read_file, write_file as write_file,
)
from estimatorkit.storage.records import (
    tf_record_iterator as tf_record_iterator, TFRecordCompressionType as TFRecordCompressionType,
    TFRecordOptions as TFRecordOptions, TFRecordWriter as TFRecordWriter,
)
from estimatorkit.ops.text.csv_records import decode_csv as decode_csv
from estimatorkit.ops.text.decoding import (
    decode_json_example as decode_json_example, decode_raw as decode_raw,
    parse_tensor as parse_tensor, serialize_tensor as serialize_tensor,
)
from estimatorkit.ops.parsing.parsing import (
    FixedLenFeature as FixedLenFeature, FixedLenSequenceFeature as FixedLenSequenceFeature,
    parse_example as parse_example, parse_sequence_example as parse_sequence_example,
    parse_single_example as parse_single_example,
    parse_single_sequence_example as parse_single_sequence_example, SparseFeature as SparseFeature,
    VarLenFeature as VarLenFeature,
)
from estimatorkit.ops.text.strings import (
    decode_base64 as decode_base64, encode_base64 as encode_base64,
)
from estimatorkit.ops.queues.queues import QueueBase as QueueBase
from estimatorkit.ops.image.encoding import encode_jpeg as encode_jpeg, encode_png as encode_png
from estimatorkit.ops.image.files import (
    decode_and_crop_jpeg as decode_and_crop_jpeg, decode_bmp as decode_bmp,
    decode_gif as decode_gif, decode_image as decode_image, decode_jpeg as decode_jpeg,
    decode_png as decode_png, extract_jpeg_shape as extract_jpeg_shape, is_jpeg as is_jpeg,
)
from estimatorkit.interop.graph_util import write_graph as write_graph
from estimatorkit.ops.queues.queue_kinds import (
    PaddingFIFOQueue as PaddingFIFOQueue, PriorityQueue as PriorityQueue,
    RandomShuffleQueue as RandomShuffleQueue,
)
from estimatorkit.compat.names.io import *
