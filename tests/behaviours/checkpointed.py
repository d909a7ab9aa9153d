"""What the behaviours of checkpoints share: models to save, and what a file has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from safetensors import safe_open

import limelight as ll


class Holder(ll.Module):
    """A module whose attributes are given."""

    def __init__(self, **attributes: Any) -> None:
        for name, value in attributes.items():
            setattr(self, name, value)


def saved(path: Path, **objects: Any) -> Path:
    return ll.Checkpoint(**objects).write(path)


def keys(path: Path) -> set[str]:
    with safe_open(path, "np") as file:
        return set(file.keys())


def mlp() -> Any:
    return ll.nn.Sequential(ll.nn.Dense(4), ll.nn.relu, ll.nn.Dense(2))


X = ll.constant(np.linspace(-1, 1, 6, dtype="float32").reshape(2, 3))
