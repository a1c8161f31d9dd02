"""Words, characters and sentences for the programs beside this file; NumPy and the standard
library only.

The texts are read from the folder ``ESTIMATORKIT_DATA_DIR``: the movie reviews ``rt-polarity``,
the head of ``text8`` and the Gutenberg selection. Everything is deterministic.
"""

import collections
import os
import re
import zipfile
from pathlib import Path

import numpy as np

FOLDER = Path(os.environ["ESTIMATORKIT_DATA_DIR"])


def sentences(length=56, smallest_count=1):
    """The movie reviews, shuffled: padded rows of word numbers (0 pads), lengths, labels 0 or 1,
    vocabulary's size."""
    lines, labels = [], []
    for label, end in enumerate(("neg", "pos")):
        text = (FOLDER / "rt-polarity" / f"rt-polarity.{end}").read_text("utf-8")
        rows = [re.findall(r"[a-z0-9']+|[,!?()]", line) for line in text.lower().splitlines()]
        rows = [row for row in rows if row]
        lines += rows
        labels += [label] * len(rows)
    counts = collections.Counter(word for line in lines for word in line)
    known = [word for word, count in counts.most_common() if count >= smallest_count]
    numbers = {word: number for number, word in enumerate(known, 2)}
    rows = np.zeros((len(lines), length), np.int32)
    for row, line in zip(rows, lines, strict=True):
        line = [numbers.get(word, 1) for word in line[:length]]
        row[: len(line)] = line
    order = np.random.RandomState(10).permutation(len(lines))
    lengths = np.minimum([len(line) for line in lines], length).astype(np.int32)
    return rows[order], lengths[order], np.array(labels, np.int32)[order], len(known) + 2


def characters(name="shakespeare-caesar"):
    """One Gutenberg text as an array of character numbers, and the list of its characters, most
    frequent first."""
    text = (FOLDER / "text" / "gutenberg" / f"{name}.txt").read_text("latin-1")
    alphabet = [character for character, _ in collections.Counter(text).most_common()]
    numbers = {character: number for number, character in enumerate(alphabet)}
    return np.array([numbers[character] for character in text], np.int32), alphabet


def book(name="austen-emma", vocabulary=10000):
    """One Gutenberg text as word numbers (0 for rare words, line ends are words too), and the
    list of words."""
    text = (FOLDER / "text" / "gutenberg" / f"{name}.txt").read_text("latin-1").lower()
    return _number(re.findall(r"[a-z']+|[.\n]", text), vocabulary)


def text8(vocabulary=50000):
    """The head of text8 as word numbers (0 for rare words), and the list of words."""
    with zipfile.ZipFile(FOLDER / "text" / "text8-head.zip") as archive:
        return _number(archive.read("text8").decode("ascii").split(), vocabulary)


def _number(words, vocabulary):
    most = collections.Counter(words).most_common(vocabulary - 1)
    names = ["UNK", *(word for word, _ in most)]
    numbers = {word: number for number, word in enumerate(names)}
    return np.array([numbers.get(word, 0) for word in words], np.int32), names


def punctuated(name="carroll-alice", length=40, smallest_count=2):
    """Sentences of a Gutenberg text whose words carry tags, to be guessed from the bare lower-
    case words.

    Tags are 0 for a bare word, 1 for a capital, 2 for a comma after the word, 3 for another mark
    after it. Returns padded rows of word numbers (0 pads), padded rows of tags, lengths and the
    vocabulary's size.
    """
    text = (FOLDER / "text" / "gutenberg" / f"{name}.txt").read_text("latin-1")
    pairs = re.findall(r"([A-Za-z]+(?:['-][A-Za-z]+)*)([^A-Za-z\s]*)", text)
    counts = collections.Counter(word.lower() for word, _ in pairs)
    known = [word for word, count in counts.most_common() if count >= smallest_count]
    numbers = {word: number for number, word in enumerate(known, 2)}
    rows, tags, lengths, row, tag = [], [], [], [], []
    for word, mark in pairs:
        row.append(numbers.get(word.lower(), 1))
        tag.append(2 if mark.startswith(",") else 3 if mark else int(word[0].isupper()))
        if len(row) == length or mark[:1] in (".", "!", "?"):
            if len(row) > 4:
                rows.append(row + [0] * (length - len(row)))
                tags.append(tag + [0] * (length - len(tag)))
                lengths.append(len(row))
            row, tag = [], []
    arrays = [np.array(part, np.int32) for part in (rows, tags, lengths)]
    order = np.random.RandomState(10).permutation(len(rows))
    return *(array[order] for array in arrays), len(known) + 2
