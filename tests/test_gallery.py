"""The programs of docs/gallery run, at a small size, and reach what they promise."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

GALLERY = Path(__file__).parents[1] / "docs" / "gallery"
BOUNDS: dict[str, tuple[dict[str, int], float, float]] = {  # what `main` gets, and the bounds of what it returns
    "digits": ({"epochs": 4}, 0.9, 1.0),
    "transformer": ({"steps": 60}, 0.0, 2.3),
    "vae": ({"epochs": 6}, 0.0, 34.0),
    "gan": ({"steps": 600}, 0.0, 0.45),
    "lstm": ({"steps": 150}, 0.0, 0.16),
    "neural_ode": ({"steps": 60}, 0.0, 1.0),
    "gaussian_process": ({"steps": 60}, 0.0, 0.02),
    "hamiltonian": ({"draws": 200}, 0.0, 0.15),
    "pole": ({"rounds": 8}, 25.0, 400.0),
    "meta_learning": ({"steps": 100}, 0.0, 0.5),
}


def load(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"gallery_{name}", GALLERY / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.parametrize("name", BOUNDS)
def test_it_reaches_what_it_promises(name: str) -> None:
    given, least, most = BOUNDS[name]
    assert least <= load(name).main(**given) <= most


def test_each_is_listed_short_and_has_bounds() -> None:
    programs = {path.stem: path for path in GALLERY.glob("*.py")}
    assert set(programs) == set(BOUNDS)
    page = (GALLERY / "README.md").read_text(encoding="utf-8")
    for name, path in programs.items():
        assert f"({name}.py)" in page
        lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        assert len(lines) <= 65, name
