from estimatorkit.compat.ops.debug.shape_checks import assert_shapes as assert_shapes
