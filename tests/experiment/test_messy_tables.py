"""A table as people leave it has the columns and the values of the clean one."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit as ek
from estimatorkit.data.cell_looks import look
from estimatorkit.estimator.serving import rest_json
from estimatorkit.experiment import examples, inferred, predicting, preprocessing, row_sets, tables
from estimatorkit.experiment.errors import DataError
from estimatorkit.experiment.load import load_experiment
from estimatorkit.experiment.schema import Experiment
from estimatorkit.experiment.sniffing import mended, settings
from tests.experiment.commands import invoke, succeed

Rows = list[dict[str, str]]


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["estimatorkit"])


def clean(count: int = 601) -> Rows:
    random = np.random.default_rng(0)
    rows = []
    for row in range(count):
        amount = random.uniform(-2000, 9000)
        day = np.datetime64("2022-01-01") + row
        rows.append(
            {
                "day": str(day),
                "amount": "" if row % 40 == 0 else f"{amount:.2f}",
                "rate": f"{random.uniform(0, 30):.1f}",
                "weight": f"{random.uniform(0, 90):.1f}",
                "active": ("true", "false")[row % 2],
                "town": ("Rome", "Oslo", "Bern")[random.integers(3)],
                "note": f"note {row} of a person",
                "bought": "yes" if amount > 4500 else "no",
            }
        )
    return rows


# -- ways to write a cell of a column, by row


def _as_it_is(text: str, row: int) -> str:
    return text


def _money(text: str, row: int) -> str:
    if not text:
        return ("unknown", "-", "n/a")[row % 3]
    number = float(text)
    if number < 0 and row % 2:
        return f"(${-number:,.2f})"
    return f"${number:,.2f}".replace("$-", "-$")


def _euros(text: str, row: int) -> str:
    shown = f"{float(text):,.2f}" if text else ""
    comma = shown.translate(str.maketrans(",.", ".,"))
    return f"{comma} EUR" if text else ""


def _comma(text: str, row: int) -> str:
    return text.replace(".", ",")


def _date(text: str, row: int) -> str:
    year, month, day = text.split("-")
    return (f"{day}/{month}/{year}", text)[row % 7 == 0]


def _dotted(text: str, row: int) -> str:
    year, month, day = text.split("-")
    return f"{int(day)}.{int(month)}.{year}"


def _american(text: str, row: int) -> str:
    year, month, day = text.split("-")
    return f"{int(month)}/{int(day)}/{year[2:]}"


def _named(text: str, row: int) -> str:
    return date.fromisoformat(text).strftime("%d %b %Y")


def _spelled(text: str, row: int) -> str:
    return (text, text.upper(), f"{text} ", text.title())[row % 4]


def _flag(text: str, row: int) -> str:
    return (text, text.upper(), {"true": "Yes", "false": "No"}[text], str(int(text == "true")))[
        row % 4
    ]


Change = dict[str, Callable[[str, int], str]]
CELLS: dict[str, Change] = {
    "money": {"amount": _money},
    "percent": {"rate": lambda text, row: f"{text}{' ' * (row % 2)}%"},
    "units": {"weight": lambda text, row: f"{text} {('kg', 'KG')[row % 2]}"},
    "dates": {"day": _date},
    "dates with points": {"day": _dotted},
    "American dates": {"day": _american},
    "names of months": {"day": _named},
    "spellings": {"town": _spelled, "bought": _spelled, "active": _spelled},
    "booleans": {"active": _flag},
    "blanks": dict.fromkeys(clean(1)[0], lambda text, row: f"{text}{' ' * (row % 3)}"),
}
ALL: Change = {
    "amount": _money,
    "rate": CELLS["percent"]["rate"],
    "day": _date,
    "active": _flag,
    "bought": _spelled,
}
EUROPEAN: Change = {"amount": _euros, "rate": _comma, "weight": _comma, "day": _dotted}


def text_of(rows: Rows, changes: Change, delimiter: str = ",", end: str = "\n") -> str:
    """The CSV file of rows with changed cells."""

    def cell(text: str) -> str:
        return f'"{text}"' if delimiter in text or '"' in text else text

    lines = [list(rows[0])]
    for row, each in enumerate(rows):
        lines.append([changes.get(key, _as_it_is)(text, row) for key, text in each.items()])
    return "".join(delimiter.join(map(cell, line)) + end for line in lines)


def _file(changes: Change) -> bytes:
    return text_of(clean(), changes).encode()


FILES: dict[str, Callable[[], bytes]] = {
    **{name: partial(_file, changes) for name, changes in CELLS.items()},
    "all": lambda: text_of(clean(), ALL).encode(),
    "European": lambda: text_of(clean(), EUROPEAN, ";").encode(),
    "European, all, latin-1": lambda: (
        text_of(clean(), EUROPEAN | {"bought": _spelled}, ";")
        .replace("EUR", "\u20ac")
        .encode("cp1252")
    ),
    "tabs": lambda: text_of(clean(), {}, "\t").encode(),
    "bars, all": lambda: text_of(clean(), ALL, "|").encode(),
    "a byte order mark": lambda: text_of(clean(), ALL).encode("utf-8-sig"),
    "UTF-16": lambda: text_of(clean(), ALL).encode("utf-16"),
    "CRLF": lambda: text_of(clean(), ALL, end="\r\n").encode(),
    "spaces behind commas": lambda: text_of(clean(), {}).replace(",", ", ").encode(),
}


def columns_of(text: bytes, *options: str) -> tuple[dict[str, Any], dict[str, Any], Any]:
    """Of a file: the settings of its columns, the features and the labels of its rows."""
    Path("table.csv").write_bytes(text)
    succeed("init", "table.csv", *options, "--force")
    experiment = load_experiment("table.yaml", ["data.holdout=0.25"])
    chosen = inferred.settings(experiment)
    resolved = inferred.resolve(experiment)
    table = row_sets.training_table(resolved)
    features, labels = examples.examples_of(resolved, table, "table.csv")
    read = {key: features[key] for key in resolved.column_reads}
    return chosen, read, labels


def assert_alike(found: Any, expected: Any) -> None:
    """Settings: numbers nearly equal, lists in any order."""
    flat, wanted = (sorted(_flat(each)) for each in (found, expected))
    assert [name for name, _ in flat] == [name for name, _ in wanted]
    for (name, one), (_, other) in zip(flat, wanted, strict=True):
        assert one == pytest.approx(other, rel=1e-4) if isinstance(one, float) else one == other, (
            name
        )


def _flat(value: Any, name: str = "") -> list[tuple[str, Any]]:
    if isinstance(value, dict):
        return [each for key, item in value.items() for each in _flat(item, f"{name}.{key}")]
    if isinstance(value, list) and value and isinstance(value[0], str):
        return [(name, tuple(sorted(word.lower() for word in value)))]
    if isinstance(value, list):
        return [each for place, item in enumerate(value) for each in _flat(item, f"{name}.{place}")]
    return [(name, value)]


@pytest.mark.parametrize(
    "name",
    [
        each if each in ("all", "European") else pytest.param(each, marks=pytest.mark.slow)
        for each in FILES
    ],
)
def test_messy_tables_are_read_as_the_clean_one(name: str) -> None:
    chosen, features, labels = columns_of(text_of(clean(), {}).encode(), "--label", "bought")
    found, messy, classes = columns_of(FILES[name](), "--label", "bought")
    assert "data" not in found  # the formats are listed in the file
    assert_alike(found, chosen)
    assert labels.tolist() == classes.tolist()
    assert messy.keys() == features.keys()
    for key, column in features.items():
        if column.dtype.kind == "O":
            read = bytes.split if key == "note" else bytes.lower  # text is split into words
            words = [read(each) for each in messy[key].reshape(-1).tolist()]
            assert words == [read(each) for each in column.reshape(-1).tolist()], key
        else:
            np.testing.assert_allclose(messy[key], column, rtol=1e-6, err_msg=key)


def test_no_header_and_repeated_names() -> None:
    body = text_of(clean(), ALL).partition("\n")[2].encode()
    named = b"day,amount,rate,weight,active,town,note,bought\n"
    _, features, labels = columns_of(named + body, "--label", "bought")
    for options in (("--label", "8"), ("--label", "column_8", "--no-header")):
        _, found, classes = columns_of(body, *options)
        assert classes.tolist() == labels.tolist()
        np.testing.assert_array_equal(found["column_2"], features["amount"])
    _, found, _ = columns_of(
        b"day,rate,rate,,active,town, note ,bought\n" + body, "--label", "bought"
    )
    np.testing.assert_array_equal(found["rate_2"], features["rate"])
    np.testing.assert_array_equal(found["column_4"], features["weight"])
    assert mended(["a", "a", "", "a_2", " b  c "]) == ["a", "a_3", "column_3", "a_2", "b c"]
    assert mended(["", "column_1"]) == ["column_1_2", "column_1"]


HEADERS: dict[str, bool] = {
    "age,town\n31,Oslo\n45,Bern": True,
    "31,Oslo\n45,Bern\n27,Oslo": False,
    "yes,no,Oslo\nno,no,Bern\nyes,yes,Oslo": False,  # words that are seen again
    "name,street\nAnn,Main 1\nBo,Main 2": True,
    "name,2019,2020,2021\na,1,2,3\nb,4,5,6": True,
    "Ann,Main 1,31\nBo,Main 2,45": False,
    "day,,city\n2024-01-31,3,Oslo\n2024-02-29,4,Bern": True,
    "day,5,city,name,code\n2024-01-31,3,Oslo,x,y\n2024-02-29,4,Bern,u,v": True,
}


@pytest.mark.parametrize("text", HEADERS)
def test_first_line_of_names(text: str) -> None:
    Path("table.csv").write_text(text)
    found, _ = settings(Path("table.csv"))
    assert found.get("header", True) == HEADERS[text]


def test_init_says_what_it_assumes_and_takes_what_it_is_told() -> None:
    Path("table.csv").write_bytes(FILES["European, all, latin-1"]())
    output = succeed("init", "table.csv", "--label", "bought")
    assert "Assumed of table.csv: the encoding is cp1252.\n" in output
    assert "Assumed of table.csv: ';' is between cells.\n" in output
    assert re.search(r"^  bought: the label: 8 spellings of 2 words", output, re.MULTILINE)
    assert re.search(r"^  amount: numbers such as '.*\u20ac'.* -> numeric", output, re.MULTILINE)
    assert re.search(r"^  note: .* -> hashed words and pairs of words", output, re.MULTILINE)
    output = succeed("init", "table.csv", "--label", "bought", "--force", "--text", "drop")
    assert re.search(r"^  note: .* -> left out: ", output, re.MULTILINE)
    assert "To use what is left out, list it under features" in output
    for option in (("--delimiter", "ab"), ("--encoding", "latin-x")):
        assert (
            option[0] in invoke("init", "table.csv", "--label", "bought", "--force", *option).stderr
        )
    text = Path("table.yaml").read_text()
    assert "encoding: cp1252, delimiter: ;" in text
    # A decimal sign decides what is ambiguous, also of cells that look like numbers.
    rows = "\n".join(f"{row % 9 + 1}.{row:03};{row % 2}" for row in range(300))
    Path("table.csv").write_text(f"x;y\n{rows}\n")
    options = ("--delimiter", ";", "--encoding", "utf-8", "--force")
    for decimal, low in (((), 1.0), (("--decimal", ","), 1000.0)):
        succeed("init", "table.csv", "--label", "y", *options, *decimal)
        experiment = inferred.resolve(load_experiment("table.yaml"))
        features, _ = examples.examples_of(experiment, row_sets.training_table(experiment), "")
        assert low <= features["x"].min() < 2 * low


def test_words_keep_their_case_where_only_spaces_differ() -> None:
    towns = np.array(["Oslo", "Oslo ", " New  York", "New York", "Bern"] * 3, object)
    found = look(towns)
    assert found is not None
    assert str(found) == "5 spellings of 3 words, which differ in spaces"
    read = found.format.values(towns)
    assert read[:5].tolist() == [b"Oslo", b"Oslo", b"New York", b"New York", b"Bern"]
    with ek.Graph().as_default(), ek.Session() as session:
        cells = ek.constant([each.encode() for each in towns])
        assert session.run(preprocessing.cells_read(found.format, cells)).tolist() == read.tolist()


def test_run_tells_each_column_and_exports_read_cells() -> None:
    """Training, export, load_predictor and the server's JSON read text and numbers alike."""
    Path("table.csv").write_text(text_of(clean(), ALL))
    Path("table.yaml").write_text(
        "name: table\ndata: {train: {csv: table.csv}, holdout: 0.25, label: bought,"
        " formats: {bought: word}}\ninfer: true\n"
        "estimator: {type: DNNClassifier, hidden_units: [4], label_vocabulary: ['no', 'yes']}\n"
        "train: {epochs: 2}\nexport: [final, {type: final, name: serialized, inputs: examples}]\n"
    )
    output = succeed("run", "table.yaml")
    assert re.search(r"^  amount: numbers .* as missing: .*-> numeric", output, re.MULTILINE)
    assert "amount: {type: number, units: [$]}" in output
    experiment = load_experiment("table.yaml")
    (export,) = map(str, Path("runs/table/export/final").glob("[0-9]*"))
    table = tables.read_file("table.csv")
    expected = predicting.of_experiment(experiment)(table, "table.csv")["probability_yes"]
    succeed("predict", "runs/table/export/final", "--input", "table.csv", "--output", "out.csv")
    found = tables.read_file("out.csv")["probability_yes"]
    np.testing.assert_allclose(found, expected, rtol=1e-5)

    predictor = ek.load_predictor(export)
    keys = list(predictor.signature().inputs)
    rows: list[dict[str, Any]] = [
        {
            key: examples.text(table[key][row]) if key != "weight" else float(table[key][row])
            for key in keys
        }
        for row in range(50)
    ]
    inputs, _ = rest_json.predict_inputs({"instances": rows}, predictor.signature())
    scores = predictor(inputs)["probabilities"][:, 1]
    np.testing.assert_allclose(scores, expected[:50], rtol=1e-5)
    for number, row in enumerate(clean(50)):
        rows[number] |= {"rate": float(row["rate"]), "amount": float(row["amount"] or "nan")}
        rows[number]["amount"] = None if row["amount"] == "" else float(row["amount"])
    inputs, _ = rest_json.predict_inputs({"instances": rows}, predictor.signature())
    scores = predictor(inputs)["probabilities"][:, 1]
    np.testing.assert_allclose(scores, expected[:50], rtol=1e-5)


def test_formats_that_do_not_fit_are_errors() -> None:
    Path("table.csv").write_text("x,y\n$1,0\nlots,1\n")
    text = """
name: table
data: {train: {csv: table.csv}, holdout: 0.5, label: y, formats: {x: FORMAT}}
features: [numeric: x]
estimator: {type: LinearClassifier}
train: {steps: 1}
"""
    Path("table.yaml").write_text(text.replace("FORMAT", "date"))
    message = invoke("show", "table.yaml").stderr
    assert "data.formats.x says date, and features read numbers" in message
    Path("table.yaml").write_text(text.replace("FORMAT", "{type: number, units: [$]}"))
    experiment: Experiment = load_experiment("table.yaml")
    table = tables.read_file("table.csv")
    with pytest.raises(DataError, match="'x' lacks 1 of 2 numbers") as caught:
        examples.features_of(experiment, table, "table.csv")
    assert "'lots' in table.csv:3" in str(caught.value)


# -- files as programs write them


def _statement(text: str, row: int) -> str:
    if not text:
        return ("n/a", "-", "k.A.")[row % 3]
    number = float(text)
    return f"\u00a3{abs(number):,.2f} {('DR', 'dr')[row % 2] if number < 0 else 'CR'}"


def _sap(text: str, row: int) -> str:
    shown = f"{abs(float(text)):,.2f}".translate(str.maketrans(",.", ".,")) if text else ""
    return f"{shown}{'-' * text.startswith('-')}".rjust(12)


def _around(table: str, before: str = "", under: str = "", after: str = "") -> bytes:
    names, _, rows = table.partition("\n")
    return f"{before}{names}\n{under}{rows}{after}".encode()


PROGRAMS: dict[str, Callable[[], bytes]] = {
    "a statement": lambda: _around(
        text_of(clean(), {"amount": _statement}), "Account:,****1\nPeriod:,2024\n\n"
    ),
    "SAP": lambda: _around(
        text_of(clean(), {**EUROPEAN, "amount": _sap}, "|"),
        "15.11.2024       Listenausgabe       1\n\n",
        "-" * 60 + "\n",
        "-" * 60 + "\n",
    ),
    "a survey": lambda: _around(
        text_of(
            clean(), {"day": lambda text, row: "k.A." if row % 8 == 0 else _date(text, row)}, ";"
        ),
        "Survey 2024;;;;;;;\n;;;;;;;\n;Sums;;;Person;;;\n",
        after="\nTotal rows: 601\n",
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_files_of_programs_are_read_as_the_clean_one(name: str) -> None:
    """Notes, merged names, rules and footers are left out; cells are numbers and dates."""
    _, features, labels = columns_of(text_of(clean(), {}).encode(), "--label", "bought")
    _, messy, classes = columns_of(PROGRAMS[name](), "--label", "bought")
    assert classes.tolist() == labels.tolist()
    for key in ("amount", "rate", "weight", "day_days"):
        right = np.isclose(messy[key], features[key], rtol=1e-6, equal_nan=True)
        assert right.mean() > (0.85 if name == "a survey" and key == "day_days" else 0.999), key


def test_rows_that_lack_a_cell_are_errors_and_no_footers() -> None:
    rows = "".join(f"{row},b,{row % 2}\n" for row in range(50))
    for broken in ("51,b", "51,b,c,1"):
        Path("table.csv").write_text(f"a,x,y\n{rows}{broken}\n")
        assert "on_bad_rows" not in settings(Path("table.csv"))[0]
        assert "table.csv:52" in invoke("init", "table.csv", "--label", "y", "--force").stderr


@pytest.mark.parametrize("word", ["-", "N/A", "n.a.", "k.A.", "unknown", "?", "null", "--", "#N/A"])
def test_words_for_nothing_do_not_hide_what_a_column_holds(word: str) -> None:
    numbers = [f"${row},000" for row in range(20)]
    found = look(np.array([*numbers, *[word] * 60], object))
    assert found is not None
    assert found.format.kind == "number"
    assert found.lost == (word,)
    assert look(np.array([*numbers, *["Oslo"] * 3], object)) is None


def test_objects_in_objects_are_columns() -> None:
    lines = [
        json.dumps({"x": {"size": row, "of": {"kind": "ab"[row % 2]}}, "y": row % 2})
        for row in range(60)
    ]
    Path("table.jsonl").write_text("\n".join(lines))
    output = succeed("init", "table.jsonl", "--label", "y")
    assert "  x.size: int64" in output
    assert "  x.of.kind: str, 2 distinct values" in output


HEAD = ["name", "age", "years", "pay"]


def test_blank_rows_and_titles_of_sheets_are_left_out() -> None:
    book = pytest.importorskip("openpyxl").Workbook()
    sheet = book.active
    for row in (["Staff, 2024"], [], ["Person", None, None, "Pay"], HEAD):
        sheet.append(row)
    for row in range(50):
        sheet.append([f"n{row % 7}", 20 + row % 9, row % 5, row % 2])
    sheet.append([])
    sheet.append(["Total"])
    book.save("staff.xlsx")
    output = succeed("init", "staff.xlsx", "--label", "pay")
    assert "the first 3 lines are notes, and names of columns are in line 4" in output
    experiment = load_experiment("staff.yaml")
    assert len(row_sets.training_table(experiment)["age"]) == 40  # Total has no label
