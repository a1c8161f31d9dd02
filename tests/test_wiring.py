"""`wiring`: every port is connected to a module that has the functions."""

from __future__ import annotations

import importlib

import pytest

from estimatorkit import lazy
from estimatorkit.core import ports
from estimatorkit.data import ports as data_ports

TYPED = {
    name: port
    for module in (ports, data_ports)
    for name, port in vars(module).items()
    if isinstance(port, lazy.Port)
}


@pytest.mark.parametrize("name", lazy._connected)
def test_module_exists(name: str) -> None:
    importlib.import_module(lazy._connected[name]._module)


@pytest.mark.parametrize("port", TYPED.values(), ids=TYPED)
def test_port_calls_module(port: lazy.Port) -> None:
    module = importlib.import_module(lazy._connected[port._name]._module)
    name = next(each for each in lazy.public_names(module) if callable(getattr(module, each)))
    assert getattr(port, name) is getattr(module, name)


def test_unconnected_port_raises() -> None:
    with pytest.raises(RuntimeError, match="nothing is connected to the port 'other'"):
        lazy.Port("other").call()
