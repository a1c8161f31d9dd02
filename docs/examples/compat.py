# %% as_bytes
tf.compat.as_bytes("café"), tf.compat.as_bytes(b"bytes")

# %% as_str
tf.compat.as_str(b"caf\xc3\xa9"), tf.compat.as_str("text")

# %% as_str_any
tf.compat.as_str_any(b"bytes"), tf.compat.as_str_any(3.5)

# %% path_to_str
from pathlib import Path

tf.compat.path_to_str(Path("model") / "model.ckpt")
