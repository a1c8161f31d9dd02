"""Images in TensorFlow 2.15.1's graph mode (`tf.compat.v1.image`).

Run, with TensorFlow 2.15.1:

    TF_CPP_MIN_LOG_LEVEL=3 python tests/golden/make_images.py

Writes `images.npz` (the results of `snippets_images.py`, and the files that it reads) and
`images.json` (static shapes and errors) beside this file.
"""

from __future__ import annotations

import numpy as np
import tensorflow.compat.v1 as tf  # type: ignore[import-not-found,import-untyped,unused-ignore]
from golden_files import error_of, write_json, write_npz
from snippets_images import FILES, IMAGE_ERRORS, IMAGES, bmp, gif, pixels
from snippets_sparse import run_arrays


def make_files() -> dict[str, bytes]:
    """The files, by TensorFlow's encoders where it has one."""
    wide = pixels(channels=1)[0].astype(np.uint16) * 251
    with tf.Graph().as_default(), tf.Session() as session:
        return {
            **session.run(
                {
                    "jpeg": tf.image.encode_jpeg(pixels()[0], quality=90),
                    "gray_jpeg": tf.image.encode_jpeg(pixels(channels=1)[0]),
                    "png": tf.image.encode_png(pixels()[0]),
                    "rgba_png": tf.image.encode_png(pixels(channels=4)[0]),
                    "gray_png": tf.image.encode_png(pixels(channels=1)[0]),
                    "wide_png": tf.image.encode_png(wide),
                }
            ),
            "bmp": bmp(pixels()[0]),
            "rgba_bmp": bmp(pixels(channels=4)[0]),
            "gray_bmp": bmp(pixels(channels=1)[0]),
            "gif": gif(),
        }


def main() -> None:
    """Runs all snippets and writes the files."""
    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.ERROR)
    files = make_files()
    arrays = {f"files/{name}": np.frombuffer(data, np.uint8) for name, data in files.items()}
    shapes = {}
    snippets = {
        **IMAGES,
        **{name: lambda tf, made=made: made(tf, files) for name, made in FILES.items()},
    }
    for name, snippet in snippets.items():
        values, shapes[name] = run_arrays(tf, snippet)
        arrays.update({f"{name}/{at}": value for at, value in enumerate(values)})
    write_npz("images.npz", arrays)
    errors = {
        name: error_of(lambda made=made: run_arrays(tf, lambda tf: made(tf, files)))
        for name, made in IMAGE_ERRORS.items()
    }
    about = {"tensorflow": tf.__version__}
    write_json("images.json", {"about": about, "shapes": shapes, "errors": errors})


if __name__ == "__main__":
    main()
