"""Which modules register op types that only TensorFlow 1 programs use."""

from __future__ import annotations

from estimatorkit.core.registry import add_ops

add_ops(
    "estimatorkit.compat.ops.array.stateless_random",
    "StatelessFoldIn StatelessMultinomial StatelessParameterizedTruncatedNormal "
    "StatelessRandomBinomial StatelessRandomGammaV2 StatelessRandomNormal "
    "StatelessRandomPoisson StatelessRandomUniform StatelessRandomUniformFullInt "
    "StatelessRandomUniformInt StatelessShuffle StatelessTruncatedNormal",
)
add_ops("estimatorkit.compat.ops.control.critical_section", "ExecuteInCriticalSection MutexV2")
add_ops("estimatorkit.compat.ops.control.switches", "BothSides ChosenSide")
add_ops("estimatorkit.compat.ops.image.boxes", "DrawBoundingBoxesV2 SampleDistortedBoundingBoxV2")
add_ops(
    "estimatorkit.compat.ops.image.measures",
    "ImageGradients PSNR SSIM SSIMMultiscale SobelEdges TotalVariation",
)
add_ops("estimatorkit.compat.ops.image.patches", "CropAndResize ExtractGlimpse ExtractImagePatches")
add_ops(
    "estimatorkit.compat.ops.image.suppression",
    "CombinedNonMaxSuppression NonMaxSuppressionV5 NonMaxSuppressionWithOverlaps",
)
add_ops("estimatorkit.compat.ops.image.transform", "ImageProjectiveTransformV2")
add_ops(
    "estimatorkit.compat.ops.linalg.fourier",
    "DCT FFT FFT2D FFT3D FFTShift IFFT IFFT2D IFFT3D IRFFT IRFFT2D IRFFT3D RFFT RFFT2D RFFT3D",
)
add_ops(
    "estimatorkit.compat.ops.linalg.matrix_functions",
    "MatrixLogarithm MatrixSquareRoot MatrixSquareRootGrad",
)
add_ops("estimatorkit.compat.ops.linalg.signal", "FitLast Frame InverseWindow OverlapAndAdd")
add_ops("estimatorkit.compat.ops.nn.candidates", "CandidateSampler")
add_ops("estimatorkit.compat.ops.nn.ctc", "CTCLoss CollapseRepeated PadLabels")
add_ops("estimatorkit.compat.ops.nn.ctc_decoders", "CTCBeamSearchDecoder CTCGreedyDecoder")
add_ops(
    "estimatorkit.compat.ops.queues.accumulators",
    "AccumulatorApplyGradient AccumulatorNumAccumulated AccumulatorSetGlobalStep "
    "AccumulatorTakeGradient ConditionalAccumulator SparseAccumulatorApplyGradient "
    "SparseAccumulatorTakeGradient SparseConditionalAccumulator",
)
add_ops(
    "estimatorkit.compat.ops.sparse.math",
    "SparseAdd SparseReduceMax SparseReduceSum SparseSoftmax SparseSoftmaxGrad "
    "SparseSparseMaximum SparseSparseMinimum",
)
add_ops(
    "estimatorkit.compat.ops.sparse.segments",
    "SparseSegment SparseSegmentCount SparseSegmentGrad",
)
add_ops(
    "estimatorkit.compat.ops.sparse.sets",
    "EditDistance SparseElements SparseSetSize SparseToSparseSetOperation",
)
add_ops("estimatorkit.compat.ops.tables.vocabularies", "LookupTableFindOrHash")
add_ops("estimatorkit.compat.ops.text.audio", "DecodeWav EncodeWav")
add_ops(
    "estimatorkit.compat.ops.variables.session_tensors",
    "DeleteSessionTensor GetSessionHandle GetSessionTensor",
)
add_ops(
    "estimatorkit.compat.train.optimizers.contrib_rules",
    "ApplyAddSign ApplyLars ApplyNesterovAdam ApplyPowerSign SparseApplyAddSign "
    "SparseApplyNesterovAdam SparseApplyPowerSign",
)
add_ops("estimatorkit.compat.train.optimizers.sync_replicas_optimizer", "QueueReopen")
add_ops("estimatorkit.compat.train.queues.input_producers", "HostRow")
add_ops("estimatorkit.compat.train.queues.sparse_batches", "BoxesToSparse SparseToBoxes")
