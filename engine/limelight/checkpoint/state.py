"""`State`, an object all of whose attributes are saved by value: what is neither a model nor an optimiser."""

from __future__ import annotations

from typing import Any

from limelight.checkpoint.object_graph import Attributes
from limelight.core import attachments


class State(Attributes):
    """Plain Python and NumPy state for checkpoints: each public attribute is saved, and set when it is restored.

    Values are None, booleans, numbers, strings, bytes, lists, tuples, dictionaries and sets of these, NumPy arrays and
    scalars, and tensors; modules, variables, generators, datasets and iterators may be attributes. Changes in place are
    seen by the next save. Attributes that are not there are made. Names that begin with an underscore are not saved.
    A plain attribute is a constant to a trace: what staged code is to see change is a `Variable`.

    Args:
        **attributes: the first values.

    >>> import limelight as ll
    >>> progress = ll.State(epoch=0, losses=[])
    >>> progress.losses.append(0.5)
    >>> progress
    State(epoch=0, losses=[0.5])
    """

    def __init__(self, **attributes: Any) -> None:
        for name, value in attributes.items():
            setattr(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if attachments.waiting:
            attachments.attached(self, name)

    def __repr__(self) -> str:
        shown = [f"{name}={value!r}" for name, value in vars(self).items() if not name.startswith("_")]
        return f"{type(self).__name__}({', '.join(shown)})"
