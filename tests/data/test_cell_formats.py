"""Cells as people write them: what is read, the same by NumPy and by a graph, and what is seen."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import estimatorkit as ek
from estimatorkit.data.cell_formats import CellFormat, as_cells, number_cell
from estimatorkit.data.cell_looks import look
from estimatorkit.experiment.preprocessing import cells_read

NO = math.nan
DOLLARS = CellFormat("number", units=("$", "usd"))
EUROS = CellFormat("number", ",", ("\u20ac", "eur"))

NUMBERS = {
    DOLLARS: {
        "$1,234.50": 1234.5,
        " $ 5": 5,
        "-$5.25": -5.25,
        "$-5": -5,
        "($1,200.00)": -1200,
        "(7)": -7,
        "USD 12": 12,
        "12 usd": 12,
        "+7": 7,
        "5-": -5,
        "\u22125": -5,
        ".5": 0.5,
        "5.": 5,
        "1'234.5": 1234.5,
        "1 234.5": 1234.5,
        "1\u00a0234.5": 1234.5,
        "12,34,567": 1234567,
        "1.5e0": 1.5,
        "-1E-3": -0.001,
        "": NO,
        "n/a": NO,
        "-": NO,
        "1,23": NO,
        "1.2.3": NO,
        "5 kg": NO,
        "$": NO,
        "nan": NO,
        "inf": NO,
        "1 apple": NO,
    },
    EUROS: {
        "1.234,50 EUR": 1234.5,
        "0,5": 0.5,
        "1.234": 1234,
        "1 234,5 \u20ac": 1234.5,
        "(1.200)": -1200,
        "1.125e0": 1.125,
        "1.5": NO,
        "1,234.5": NO,
    },
    CellFormat("number", units=("%",)): {"12%": 12, "-3.5 %": -3.5},
    CellFormat("number", units=("month", "months")): {" 36 months": 36, "1 Month": 1, "3 y": NO},
}
BOTH = {
    "2024-01-31": "2024-01-31",
    "2024/1/5": "2024-01-05",
    "20240131": "2024-01-31",
    "31/01/2024": "2024-01-31",
    "1/31/2024": "2024-01-31",
    "Jan 5, 2024": "2024-01-05",
    "5 January 2024": "2024-01-05",
    "5th of Jan 2024": "2024-01-05",
    "05-Jan-24": "2024-01-05",
    "31 Dec 99": "1999-12-31",
    "Mon, 5 Jan 2024 10:30:00": "2024-01-05T10:30:00",
    "2024-01-31T10:00:00Z": "2024-01-31T10:00:00",
    "2024-01-31 10:00:00.123+01:00": "2024-01-31T10:00:00",
    "2024-01-31 3:05 pm": "2024-01-31T15:05",
    "2024-01-31 12:05 AM": "2024-01-31T00:05",
    "Jan 2024": "2024-01-01",
    "2024-13-01": "",
    "unknown": "",
    "5": "",
}
TEXTS = {
    CellFormat("date"): {**BOTH, "01/02/2024": "2024-01-02", "1.2.24": "2024-01-02"},
    CellFormat("date", day_first=True): {
        **BOTH,
        "01/02/2024": "2024-02-01",
        "1.2.24": "2024-02-01",
    },
    CellFormat("boolean"): {"YES ": "true", "n": "false", "1": "true", "0.0": "false", "maybe": ""},
    CellFormat("word"): {"YES ": "yes", " New  York": "new york", "\u00c9t\u00e9": "\u00e9t\u00e9"},
}


def cells(texts: Any) -> np.ndarray[Any, Any]:
    made = np.empty(len(texts), object)
    made[:] = [each.encode() for each in texts]
    return made


def in_graph(given: CellFormat, column: np.ndarray[Any, Any]) -> Any:
    with ek.Graph().as_default(), ek.Session() as session:
        fed = ek.placeholder(ek.string, [None])
        return session.run(cells_read(given, fed), {fed: column})


@pytest.mark.parametrize("given", NUMBERS)
def test_numbers(given: CellFormat) -> None:
    column, expected = cells(NUMBERS[given]), np.array(list(NUMBERS[given].values()), float)
    np.testing.assert_array_equal(given.numbers(column), expected)
    np.testing.assert_array_equal(in_graph(given, column), expected)


@pytest.mark.parametrize("given", TEXTS)
def test_dates_booleans_and_words(given: CellFormat) -> None:
    column = cells(TEXTS[given])
    read = given.texts(column)
    assert [each.decode() for each in read] == list(TEXTS[given].values())
    assert in_graph(given, column).tolist() == read.tolist()
    # What was read is read again as itself.
    assert given.texts(read).tolist() == read.tolist()


@pytest.mark.parametrize("given", [DOLLARS, EUROS, CellFormat("number")])
def test_numbers_that_are_no_text_are_read_as_they_are(given: CellFormat) -> None:
    numbers = np.array([1.5, 1.125, -1234.567, 3.0, 1e-9, 1e300, 1e15, 123456789, NO])
    np.testing.assert_array_equal(given.numbers(as_cells(numbers)), numbers)
    assert number_cell(2**60) == b"1152921504606846976"


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["$1,234.50", "$3", "($5.00)", "USD 7"], CellFormat("number", units=("$", "usd"))),
        (["1.234,50 EUR", "0,5", "7 \u20ac"], CellFormat("number", ",", ("eur", "\u20ac"))),
        (["1,5", "2", "3,25"], CellFormat("number", ",")),
        (["1,234", "2,000"], CellFormat("number")),
        (["12%", "3 %"], CellFormat("number", units=("%",))),
        (["2.5 mg/l", "3 mg/l"], CellFormat("number", units=("mg/l",))),
        (["3 years", "1 Year"], CellFormat("number", units=("year", "years"))),
        (["31/01/2024", "2024-02-03", "5/2/2024"], CellFormat("date", day_first=True)),
        (["01/31/2024", "02/03/2024"], CellFormat("date")),
        (["31.1.24", "2.3.24"], CellFormat("date", day_first=True)),
        (["yes", "YES", "no", "yes "], CellFormat("word")),
        (["yes", "TRUE", "0", "No", "1", "f"], CellFormat("boolean")),
        (["2024-01-02", "2024-01-03"], None),
        (["1", "2.5", "-3e4"], None),
        (["1st", "2nd", "3rd"], None),
        (["Group 1", "Group 2"], None),
        (["A1", "B2", "A3"], None),
        (["$1", "\u20ac2", "$3"], None),
        (["1.2M", "300k"], None),
        (["555-1234", "555-1235"], None),
        (["10:30", "11:20"], None),
        (["Rome", "Oslo"], None),
        (["", " "], None),
    ],
)
def test_how_cells_are_written_is_seen(texts: list[str], expected: CellFormat | None) -> None:
    found = look(cells(texts * 10))
    assert (found and found.format) == expected
    assert found is None or not found.lost


def test_a_few_words_among_numbers_are_missing() -> None:
    found = look(cells([str(each) for each in range(95)] + ["unknown"] * 3 + ["-", "n/a"]))
    assert found is not None
    assert found.format == CellFormat("number")
    assert (found.lost, found.lost_rows) == (("unknown", "-", "n/a"), 5)
    assert str(found) == (
        "numbers such as '0'; 5 cells are none and count as missing: unknown, -, n/a"
    )
    assert look(cells(["1", "2", "3", "Oslo"] * 9)) is None
