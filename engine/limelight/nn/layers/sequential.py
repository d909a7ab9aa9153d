"""Layers one after another."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from typing import Any

from limelight.errors import ArgumentError
from limelight.module import Module
from limelight.nn.layers.layer import restore, state_of


class Sequential(Module):
    """Layers, and functions of one tensor, applied one after another.

    `training` is handed to those that take it. Raises ArgumentError for what cannot be called.

    >>> import limelight as ll
    >>> model = ll.nn.Sequential(ll.nn.Dense(8), ll.nn.relu, ll.nn.Dropout(0.5), ll.nn.Dense(1))
    >>> model(ll.ones((2, 3)), training=True).shape
    (2, 1)
    >>> [path for path, _ in model.named_variables()]
    ['layers/0/kernel', 'layers/0/bias', 'layers/3/kernel', 'layers/3/bias']
    """

    def __init__(self, *layers: Callable[..., Any]) -> None:
        for layer in layers:
            if not callable(layer):
                hint = "; write Sequential(*layers)" if isinstance(layer, (list, tuple)) else ""
                raise ArgumentError(f"Sequential takes layers and functions, got {type(layer).__name__}{hint}")
        self.layers = layers
        self._called = False
        self._trained = tuple([takes_training(layer) for layer in layers])  # asked once: it takes longer than a layer

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._called:
            return self.call(*args, **kwargs)
        before = state_of(self)
        try:
            result = self.call(*args, **kwargs)
        except BaseException:  # those before the layer that failed are built for an input that was not meant
            restore(before)
            raise
        self._called = True
        return result

    def call(self, x: Any, training: bool = False) -> Any:
        for layer, trained in zip(self.layers, self._trained, strict=True):
            x = layer(x, training=training) if trained else layer(x)
        return x

    def __repr__(self) -> str:
        inside = "".join(f"\n{textwrap.indent(_shown(layer), '    ')}," for layer in self.layers)
        return f"Sequential({inside}\n)" if inside else "Sequential()"


def takes_training(layer: Callable[..., Any]) -> bool:
    """Whether a layer or function has a parameter `training`, or takes any keyword."""
    function = layer.call if isinstance(layer, Module) else layer
    try:
        parameters = inspect.signature(function).parameters
    except ValueError:  # some functions written in C do not say what they take
        return False
    return "training" in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())


def _shown(layer: Any) -> str:
    return repr(layer) if isinstance(layer, Module) else str(getattr(layer, "__name__", repr(layer)))
