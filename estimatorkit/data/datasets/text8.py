"""text8: 100,000,000 characters of English Wikipedia, a to z and spaces (Mahoney 2006)."""

from __future__ import annotations

from estimatorkit.data.datasets.download import DataFile
from estimatorkit.data.datasets.files import DataSet, zip_member
from estimatorkit.lazy import listing

_CHARACTERS = 100_000_000
_HEAD = 6_877_824  # the end of a word


def load_data(head: bool = False) -> str:
    """Loads the data set.

    Args:
        head: load only the first 6,877,824 characters (1,171,946 words). A file with just these,
            `text8-head.zip` (2.3 MB), may be put next to or instead of the whole (31 MB); it is
            never downloaded.

    Returns:
        The text; `.split()` yields its 17,005,207 words.

    Raises:
        UnavailableError: the file is missing and cannot be downloaded; the message says where to
            put it.
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
        # Pinned by several public libraries at this address; not verified against the file itself.
        DataFile(
            "text8.zip",
            31344016,
            "a6640522afe85d1963ad56c05b0ede0a0c000dddc9671758a6cc09b7a38e5232",
            ("https://mattmahoney.net/dc/text8.zip",),
        ),
        # The checksum of the file itself.
        DataFile(
            "text8-head.zip",
            2299713,
            "4e021c1c42f7eb8993a001e8f839b9e8d87cf186add7bf7f8369d74b70b47972",
        ),
    ),
    load=load_data,
)

__dir__ = listing(__name__)
