"""Where a magic lives: one file for each, one table for all, and a magic for every view."""

from __future__ import annotations

import inspect
from pathlib import Path

import limelight_widgets
from limelight_kernel.magics import registry


def test_a_magic_is_one_file_of_its_name():
    for magic in registry.MAGICS:
        (name,) = magic.magics["line"]
        assert set(magic.magics["cell"]) <= {name}
        assert Path(inspect.getfile(magic)) == Path(registry.__file__).with_name(f"{name}.py")


def test_every_view_has_a_magic_of_its_name():
    magics = {name for magic in registry.MAGICS for name in magic.magics["line"]}
    assert {view.name for view in limelight_widgets.VIEWS} <= magics
