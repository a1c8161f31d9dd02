"""Which modules register op types beside those that `ops.all_ops` imports.

Each is imported when one of its op types is looked up: a process that runs the graph of another, or
reads a `GraphDef`, needs the rows of modules that it has had no reason to import.
"""

from __future__ import annotations

from importlib.util import find_spec

from estimatorkit.core.registry import add_ops

add_ops("estimatorkit.ops.variables.initializers", "OrthogonalBasis")
add_ops("estimatorkit.data.dataset_values", "DatasetToSingleElement ReduceDataset")
add_ops("estimatorkit.data.experimental", "SparseRowShape")
add_ops(
    "estimatorkit.data.iterator_ops",
    "Iterator IteratorGetNext IteratorGetNextOf IteratorToStringHandle MakeIterator",
)
add_ops(
    "estimatorkit.data.optional",
    "IteratorGetNextAsOptional OptionalFromValue OptionalGetValue OptionalHasValue OptionalNone",
)
add_ops("estimatorkit.data.readers.record_writing", "DatasetToTFRecord")
add_ops("estimatorkit.data.traced_functions", "DatasetVariant")
add_ops(
    "estimatorkit.layers.metrics.ranking",
    "GroupedListSums KeepExamples KeptExamples RankedListSums",
)
add_ops("estimatorkit.layers.metrics.thresholds", "ConfusionCounts")
add_ops("estimatorkit.train.optimizers.deduplicate_slices", "SumRepeatedRows")
add_ops(
    "estimatorkit.train.optimizers.optimizer_rules",
    "ApplyAdadelta ApplyAdagrad ApplyAdagradDA ApplyAdam ApplyAdamW ApplyCenteredRMSProp ApplyFtrl "
    "ApplyGradientDescent ApplyLazyAdam ApplyMomentum ApplyNesterovMomentum "
    "ApplyProximalAdagrad ApplyProximalGradientDescent ApplyRMSProp ApplyRowwiseAdagrad "
    "SparseApplyAdadelta SparseApplyAdagrad SparseApplyAdagradDA SparseApplyAdam SparseApplyAdamW "
    "SparseApplyCenteredRMSProp SparseApplyFtrl SparseApplyGradientDescent SparseApplyLazyAdam "
    "SparseApplyMomentum SparseApplyNesterovMomentum SparseApplyProximalAdagrad "
    "SparseApplyProximalGradientDescent SparseApplyRMSProp SparseApplyRowwiseAdagrad",
)
add_ops(
    "estimatorkit.train.optimizers.keras_rules",
    "ApplyAdaMax ApplyAdamWithAmsgrad ApplyKerasCenteredRMSProp ApplyKerasMomentum "
    "ApplyKerasNesterovMomentum ApplyKerasRMSProp ApplyNadam SparseApplyAdaMax "
    "SparseApplyAdamWithAmsgrad SparseApplyKerasCenteredRMSProp SparseApplyKerasMomentum "
    "SparseApplyKerasNesterovMomentum SparseApplyKerasRMSProp SparseApplyNadam",
)
add_ops("estimatorkit.estimator.serving.exported_module", "ExportedModule")
add_ops("estimatorkit.premade.label_names", "LabelIds")
add_ops("estimatorkit.premade.multi_label_head", "LabelIndicator")


if find_spec("estimatorkit.compat"):  # the package also works without it
    import estimatorkit.compat.op_types  # noqa: F401


def load() -> None:
    """Does nothing; importing this module tells the registry."""
