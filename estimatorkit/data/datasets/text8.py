"""text8: 100,000,000 characters of English Wikipedia, a to z and spaces (Mahoney 2006)."""

from __future__ import annotations

from estimatorkit.data.datasets.download import DataFile
from estimatorkit.data.datasets.files import DataSet, zip_member
from estimatorkit.lazy import listing

_CHARACTERS = 100_000_000
_HEAD = 6_877_824  # the end of a word


def load_data(head: bool = False) -> str:
    """Reads it.

    Args:
        head: the first 6,877,824 characters only (1,171,946 words). A file with just these,
            `text8-head.zip` (2.3 MB), may be put beside or instead of the whole (31 MB); it is
            fetched from nowhere.

    Returns:
        The text; `.split()` gives its 17,005,207 words.

    Raises:
        UnavailableError: the file is not here and cannot be fetched; the message says where it may
            be put.
    """
    name = "text8-head.zip" if head and DATA_SET.has("text8-head.zip") else "text8.zip"
    size = _HEAD if name == "text8-head.zip" else _CHARACTERS
    text = zip_member(DATA_SET.path(name), "text8", size).decode("ascii")
    return text[:_HEAD] if head else text


DATA_SET = DataSet(
    name="text8",
    title="English Wikipedia of 2006 as lower-case words",
    licence="CC BY-SA and GFDL (Wikipedia)",
    folder="text",
    files=(
        # As several public libraries pin it with this address; not compared with the file itself
        # when this was written.
        DataFile(
            "text8.zip",
            31344016,
            "a6640522afe85d1963ad56c05b0ede0a0c000dddc9671758a6cc09b7a38e5232",
            ("https://mattmahoney.net/dc/text8.zip",),
        ),
        # The checksum is that of the file itself.
        DataFile(
            "text8-head.zip",
            2299713,
            "4e021c1c42f7eb8993a001e8f839b9e8d87cf186add7bf7f8369d74b70b47972",
        ),
    ),
    load=load_data,
)

__dir__ = listing(__name__)
