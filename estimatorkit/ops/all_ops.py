"""Registers ops: imports the most used op modules, and lists the op types of the others.

The imported ones also register the operators of tensors. Another is imported when one of its op
types is looked up, or a public function of it is used. Importing all 70 would take a tenth of the
time in which a program adds two numbers.
"""

# ruff: noqa: F401

from __future__ import annotations

from typing import Any

import estimatorkit.ops.array.array
import estimatorkit.ops.array.filling
import estimatorkit.ops.array.gather_nd
import estimatorkit.ops.array.indexing
import estimatorkit.ops.array.joining
import estimatorkit.ops.array.random_draws
import estimatorkit.ops.array.ranking
import estimatorkit.ops.array.rearrange
import estimatorkit.ops.array.segment
import estimatorkit.ops.array.selection
import estimatorkit.ops.array.windows
import estimatorkit.ops.math.checked
import estimatorkit.ops.math.elementwise
import estimatorkit.ops.math.linalg
import estimatorkit.ops.math.random
import estimatorkit.ops.math.reduce
import estimatorkit.ops.math.special
import estimatorkit.ops.nn.nn
import estimatorkit.ops.sparse.products
import estimatorkit.ops.variables.state
from estimatorkit.core.graph import in_graph_of
from estimatorkit.core.registry import add_ops
from estimatorkit.core.tensor import operators

add_ops("estimatorkit.ops.control.collectives", "AllGather AllReduce")
add_ops("estimatorkit.ops.control.custom_gradients", "IdentityN")
add_ops("estimatorkit.ops.control.decoded_steps", "FirstSteps GatherTree")
add_ops("estimatorkit.ops.control.function_ops", "Call If Scan While")
add_ops("estimatorkit.ops.control.jax_functions", "JaxFunction")
add_ops(
    "estimatorkit.ops.control.tensor_array",
    "TensorArray TensorArrayScatter TensorArrayUnstack TensorArrayWrite",
)
add_ops("estimatorkit.ops.debug.debug", "Assert CheckNumerics Print PrintV2 Timestamp")
add_ops("estimatorkit.ops.debug.py_func", "PyFunc PyFuncStateless")
add_ops(
    "estimatorkit.ops.debug.shape_matching",
    "BroadcastArgs Broadcastable EnsureLeading MatchRank",
)
add_ops(
    "estimatorkit.ops.files.checkpoint_ops",
    "MergeV2Checkpoints Restore RestoreV2 Save SaveV2 ShardedFilename ShardedFilespec",
)
add_ops("estimatorkit.ops.files.files", "MatchingFiles ReadFile WriteFile")
add_ops(
    "estimatorkit.ops.files.summary",
    "AudioSummaryV2 HistogramSummary ImageSummary MergeSummary ScalarSummary TensorSummaryV2",
)
add_ops(
    "estimatorkit.ops.image.color",
    "AdjustContrastv2 AdjustHue AdjustSaturation ColorMatrix GrayscaleToRGB HSVToRGB "
    "PerImageStandardization RGBToHSV",
)
add_ops("estimatorkit.ops.image.encoding", "EncodeImage")
add_ops("estimatorkit.ops.image.files", "DecodeAndCropJpeg DecodeImage ExtractJpegShape IsJpeg")
add_ops(
    "estimatorkit.ops.image.resize",
    "FittingSize ResizeArea ResizeBicubic ResizeBilinear ResizeNearestNeighbor ScaleAndTranslate",
)
add_ops(
    "estimatorkit.ops.image.shapes",
    "CentralCrop CropToBoundingBox FlipImage FlipSomeImages PadToBoundingBox "
    "ResizeImageWithCropOrPad Rot90 TransposeImage",
)
add_ops("estimatorkit.ops.linalg.decompositions", "MatrixExponential Qr SelfAdjointEigV2 Svd")
add_ops("estimatorkit.ops.linalg.diagonal_bands", "MatrixDiagPartV3 MatrixDiagV3 MatrixSetDiagV3")
add_ops(
    "estimatorkit.ops.linalg.diagonals",
    "DiagPart MatrixBandPart MatrixDiag MatrixDiagPart MatrixSetDiag",
)
add_ops(
    "estimatorkit.ops.linalg.matrices",
    "Cholesky LogMatrixDeterminant MatrixDeterminant MatrixInverse MatrixSolve MatrixSolveLs "
    "MatrixTriangularSolve",
)
add_ops("estimatorkit.ops.linalg.products", "Cross Einsum Tensordot")
add_ops(
    "estimatorkit.ops.nn.convolution",
    "Convolution ConvolutionBackpropFilter ConvolutionBackpropInput",
)
add_ops("estimatorkit.ops.nn.nearest_neighbors", "BuildNearestNeighbors NearestNeighbors")
add_ops("estimatorkit.ops.nn.normalization", "FusedBatchNormV3 LRN")
add_ops("estimatorkit.ops.nn.pooling", "AvgPool MaxPool MaxPoolWithArgmax")
add_ops("estimatorkit.ops.nn.recurrent", "RecurrentLoop")
add_ops(
    "estimatorkit.ops.nn.space_blocks",
    "BatchToSpaceND DepthToSpace SpaceToBatchND SpaceToDepth",
)
add_ops("estimatorkit.ops.parsing.parsing", "ParseExampleV2 ParseSequenceExampleV2")
add_ops(
    "estimatorkit.ops.queues.queues",
    "FIFOQueueV2 PaddingFIFOQueueV2 PriorityQueueV2 QueueClear QueueCloseV2 QueueDequeueManyV2 "
    "QueueDequeueV2 QueueEnqueueManyV2 QueueEnqueueV2 QueueEnqueueWhere QueueIsClosedV2 "
    "QueueSizeV2 RandomShuffleQueueV2",
)
add_ops(
    "estimatorkit.ops.queues.readers",
    "FixedLengthRecordReaderV2 IdentityReaderV2 ReaderNumRecordsProducedV2 "
    "ReaderNumWorkUnitsCompletedV2 ReaderReadUpToV2 ReaderReadV2 ReaderResetV2 "
    "ReaderRestoreStateV2 ReaderSerializeStateV2 TFRecordReaderV2 TextLineReaderV2 "
    "WholeFileReaderV2",
)
add_ops("estimatorkit.ops.sparse.counts", "SparseCountSparseOutput SparseCross")
add_ops("estimatorkit.ops.sparse.joining", "SparseConcat SparseFillEmptyRows SparseMask")
add_ops(
    "estimatorkit.ops.sparse.ragged_arrays",
    "RaggedJoin RaggedLayout RaggedLayoutRead RaggedLayoutSplit RaggedLayoutWrite RaggedPut "
    "RaggedStarts RaggedTake",
)
add_ops(
    "estimatorkit.ops.sparse.shapes",
    "SparseExpandDims SparseReorder SparseResetShape SparseReshape SparseRetain SparseSlice "
    "SparseSplit SparseTranspose",
)
add_ops("estimatorkit.ops.sparse.sparse", "SparseFromDense SparsePut SparseTake SparseToDense")
add_ops("estimatorkit.ops.tables.class_names", "AllClassNames ClassNames")
add_ops("estimatorkit.ops.tables.embedding_rows", "EmbeddingRows HashedRows")
add_ops("estimatorkit.ops.tables.feature_crosses", "CrossedIds MixedIds")
add_ops(
    "estimatorkit.ops.tables.feature_ids",
    "BucketIds Bucketize FingerprintIds HashedIds IdentityIds PlainIds SparseFeatureWeights "
    "SparseFingerprintIds SparseHashedIds SparseIdentityIds SparsePlainIds SparseSequenceLengths "
    "SparseVocabularyIds VocabularyIds",
)
add_ops("estimatorkit.ops.tables.packed_ids", "PackedIds")
add_ops(
    "estimatorkit.ops.tables.tables",
    "HashTableV2 InitializeTableFromTextFileV2 InitializeTableV2 LookupTableExportV2 "
    "LookupTableFindV2 LookupTableImportV2 LookupTableInsertV2 LookupTableRemoveV2 "
    "LookupTableSizeV2 MutableHashTableV2",
)
add_ops("estimatorkit.ops.text.csv_records", "DecodeCSV")
add_ops("estimatorkit.ops.text.decoding", "DecodeJSONExample DecodeRaw ParseTensor SerializeTensor")
add_ops(
    "estimatorkit.ops.text.string_numbers",
    "AsString StringToHashBucket StringToHashBucketFast StringToHashBucketStrong StringToNumber",
)
add_ops(
    "estimatorkit.ops.text.string_pieces",
    "ReduceJoin StringBytesSplit StringFormat StringJoin StringSplit StringSplitV2",
)
add_ops(
    "estimatorkit.ops.text.strings",
    "DecodeBase64 EncodeBase64 RegexFullMatch RegexReplace StringLength StringLower StringStrip "
    "StringUpper Substr",
)
add_ops(
    "estimatorkit.ops.text.unicode",
    "UnicodeDecode UnicodeDecodeWithOffsets UnicodeEncode UnicodeSplit UnicodeTranscode",
)


def load() -> None:
    """Does nothing; importing this module registers common ops, and the modules of the others."""


def operate(name: str, *operands: Any) -> Any:
    """Applies Python's operator `name` ('add', 'getitem', ...) to tensors, in their graph."""
    with in_graph_of(operands):
        return operators[name](*operands)
