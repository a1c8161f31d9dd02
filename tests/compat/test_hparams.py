"""`contrib.training.HParams`: assignments as text, types and errors."""

from __future__ import annotations

from typing import Any

import pytest

from estimatorkit.compat.v1.contrib.training.python.training import hparam


def test_assignments() -> None:
    values = hparam.HParams(rate=0.1, units=[8], name="relu", path="/a", fast=False)
    values.parse('rate=-2.0e10, units=[3,+4],name=2.3",path=/a=b/c,fast=1,')
    assert values.values() == {
        "rate": -2e10,
        "units": [3, 4],
        "name": '2.3"',
        "path": "/a=b/c",
        "fast": True,
    }
    assert values.parse("name=").name == ""
    assert "rate=-20000000000.0,units=[3, 4]" in str(values)
    again = hparam.HParams(hparam_def=values.to_proto())
    assert again.values() == values.values()
    assert again.to_json(separators=(";", "=")).startswith('{"rate"=-20000000000.0;"units"')
    values.other = 3  # an attribute, and no hyperparameter
    assert "other" not in values


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("other=1", "Unknown hyperparameter type for other"),
        ("rate=12x", "Could not parse hparam 'rate' of type 'float' with value '12x'"),
        ("units=[1.5]", "Could not parse hparam 'units'"),
        ("fast=yes", "Could not parse hparam 'fast'"),
        ("rate=[1]", "Must not pass a list"),
        ("units=1", "Must pass a list"),
        ("rate=1,rate=1", "Multiple assignments to variable 'rate'"),
        ("rate", "Malformed hyperparameter value: rate"),
    ],
)
def test_invalid_assignments_raise(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        hparam.HParams(rate=0.1, units=[8], fast=False).parse(text)


def test_element_assignments() -> None:
    text = "a[0]=10,c=5,a[1]=20,b[10]=x"
    found = hparam.parse_values(text, {"a": int, "b": str}, ignore_unknown=True)
    assert found == {"a": {0: 10, 1: 20}, "b": {10: "x"}}
    for bad, message in (
        ("a[1]=[1]", "Assignment of a list to a list index."),
        ("a[1]=1,a[1]=2", r"Multiple assignments to variable 'a\[1\]'"),
        ("a=[1],a[1]=2", "Multiple assignments to variable 'a'"),
        ("a[1]=2,a=[1]", "Multiple assignments to variable 'a'"),
    ):
        with pytest.raises(ValueError, match=message):
            hparam.parse_values(bad, {"a": int})


def test_types() -> None:
    values = hparam.HParams(count=1, rate=0.5, name="a", fast=True, sizes=[1], unset=None)
    values.set_hparam("rate", 2)
    values.set_hparam("unset", "anything")
    refused: list[tuple[str, Any]] = [
        *(("count", each) for each in (2.5, True, "2")),
        *(("name", 2), ("fast", 1), ("sizes", [1.5])),
    ]
    for name, value in refused:
        with pytest.raises(ValueError, match="Could not cast hparam"):
            values.set_hparam(name, value)
    assert (values.get("rate", 3), values.get("none", 3)) == (2.0, 3)
    for name, value in (("count", 2.0), ("sizes", 1)):
        with pytest.raises(ValueError, match=r"Could not cast|incompatible with default"):
            values.get(name, value)
    with pytest.raises(ValueError, match="name is reserved"):
        values.add_hparam("count", 3)
    values.del_hparam("count")
    values.add_hparam("count", "new")
    assert values.count == "new"
