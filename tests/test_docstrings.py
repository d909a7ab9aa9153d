"""The examples in docstrings run, and every public function of the op families has one."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from types import ModuleType

import pytest

import limelight
import limelight_kernel
import limelight_widgets

ELSEWHERE = {"limelight.core.backends.cupy", "limelight.core.backends.jax"}  # need libraries that not every machine has


def modules_of(package: ModuleType) -> list[str]:
    found = pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    return [package.__name__, *(module.name for module in found if module.name not in ELSEWHERE)]


@pytest.mark.parametrize("package", [limelight, limelight_kernel, limelight_widgets])
def test_examples_run(package: ModuleType) -> None:
    failed = attempted = 0
    for name in modules_of(package):
        result = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
        failed += result.failed
        attempted += result.attempted
    assert not failed, "see the printed report"
    assert attempted >= 5, "the walk has missed the modules"


FAMILIES = [name for name in modules_of(limelight) if name.startswith("limelight.ops.")]


OTHERS = ["nn", "nn.initializers", "optim", "optim.schedules", "random", "linalg", "fft"]


@pytest.mark.parametrize("name", [*FAMILIES, *(f"limelight.{name}" for name in OTHERS)])
def test_every_public_function_has_an_example(name: str) -> None:
    module = importlib.import_module(name)
    for public in getattr(module, "__all__", ()):
        assert ">>>" in (getattr(module, public).__doc__ or ""), f"{name}.{public} has no example"
