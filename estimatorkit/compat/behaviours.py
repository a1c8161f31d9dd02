"""Names that exist here but behave differently than in TensorFlow 1, for `estimatorkit migrate`.

A message applies to dotted names below `tf`; `docs/differences.md` has all of them, with reasons.
`REFUSED` are names that exist only to raise when called.
"""

from __future__ import annotations

_CLAMPED = "an index out of range is clamped, where TensorFlow on a CPU raises an error"
_LEFT_OUT = "an index out of range is left out, where TensorFlow on a CPU raises an error"
_RANDOM = "the same seed gives other numbers than in TensorFlow"
_NOT_FINITE = "a matrix that has none gives NaN; add_check_numerics_ops finds where"
_SPARSE = "gives a SparseTensor (a vector for one string), there is no RaggedTensor"
_PATTERNS = "patterns are those of Python's re on UTF-8 text, with RE2's $ and classes"
_CHECKPOINTS = (
    "a checkpoint is a folder with safetensors and a manifest; those of TensorFlow are read, too"
)
_EVALUATED = (
    "exporters get their last call whatever ended the training; once max_steps are reached, the "
    "results that were stored are returned"
)
_BY_NAME = "labels and logits go by name, as until TensorFlow 2.14"
_ELEMENTS = "reading what was not written gives zeros, an index out of range is clamped"

_ROWS: tuple[tuple[str, str], ...] = (
    ("gather gather_nd nn.embedding_lookup nn.embedding_lookup_sparse", _CLAMPED),
    (
        "scatter_add scatter_sub scatter_update scatter_nd segment_sum segment_mean "
        "unsorted_segment_sum",
        _LEFT_OUT,
    ),
    (
        "random_normal random_uniform truncated_normal random_shuffle multinomial random_crop "
        "set_random_seed random.set_random_seed nn.dropout",
        _RANDOM,
    ),
    ("cholesky matrix_inverse matrix_solve linalg.inv linalg.cholesky linalg.solve", _NOT_FINITE),
    ("string_split strings.split strings.bytes_split", _SPARSE),
    ("regex_replace strings.regex_replace strings.regex_full_match", _PATTERNS),
    ("train.Saver train.latest_checkpoint train.get_checkpoint_state", _CHECKPOINTS),
    ("estimator.train_and_evaluate", _EVALUATED),
    (
        "estimator.EvalSpec",
        "the default steps=100 leaves the batches after the 100th out, and here the log says so",
    ),
    (
        "estimator.inputs.numpy_input_fn estimator.inputs.pandas_input_fn",
        "shuffle=True shuffles all rows in each epoch, not a window of queue_capacity",
    ),
    (
        "nn.softmax_cross_entropy_with_logits nn.softmax_cross_entropy_with_logits_v2 "
        "nn.sparse_softmax_cross_entropy_with_logits nn.sigmoid_cross_entropy_with_logits",
        _BY_NAME,
    ),
    ("TensorArray", _ELEMENTS),
    (
        "ConfigProto",
        "allow_soft_placement is True unless it says False; other fields have no effect",
    ),
    ("image.decode_jpeg image.decode_image", "values may differ by a few of 255"),
    (
        "train.ProfilerHook RunMetadata",
        "times are those of compiled segments, not of single operations",
    ),
    (
        "saved_model.builder.SavedModelBuilder saved_model.simple_save",
        "nothing is in the folder before save(); graphs with loops or gradients are written in a "
        "form that only this package reads",
    ),
    (
        "train.Server",
        "tasks talk by Arrow Flight, and know each other by a token (docs/clusters.md)",
    ),
    ("Print", "complex numbers are printed as (1+2j)"),
    ("GradientTape", "records operations of the graph; gradients are tensors, for session.run"),
)

DIFFERENT: dict[str, str] = {name: sentence for names, sentence in _ROWS for name in names.split()}

REFUSED: dict[str, str] = {
    name: "programs here are graphs with sessions: leave the call out, and evaluate tensors with "
    "session.run"
    for name in ("enable_eager_execution", "compat_eager_only")
}

# TensorFlow 2's eager execution; `tf.function` is a module here, as `Defun`'s was.
EAGER: dict[str, str] = {
    "tf.function": "leave the decorator out: the function adds to the graph that a session "
    "compiles; Python's if and while need tf.cond and tf.while_loop",
    "numpy()": "tensors of a graph have values in a session: use session.run(tensor); the elements "
    "of a Dataset's loop are arrays already",
}
