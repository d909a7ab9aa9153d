"""Every public function of the families says what it does, with an example that runs."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import limelight.ops

FAMILIES = [f"limelight.ops.{found.name}" for found in pkgutil.iter_modules(limelight.ops.__path__)]
FACADES = ["limelight.nn", "limelight.random", "limelight.linalg"]


@pytest.mark.parametrize("name", FAMILIES + FACADES)
def test_examples_run_and_every_public_function_has_one(name):
    module = importlib.import_module(name)
    for public in getattr(module, "__all__", ()):
        assert ">>>" in (getattr(module, public).__doc__ or ""), f"{name}.{public} has no example"
    failed, _ = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert not failed, "see the printed report"
