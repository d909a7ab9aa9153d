"""`Lambda`: a function as a layer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from limelight.core.autograph_hook import maybe_converted
from limelight.errors import ArgumentError
from limelight.nn.layers.layer import Layer, takes_training


class Lambda(Layer):
    """A function as a layer, with a place in the model's picture. `Sequential` takes functions without it as well.

    Variables that the function closes over are not those of the layer: a module of your own keeps them as attributes.

    Args:
        function: of one tensor or several; it is handed `training` if it takes it.

    Raises:
        ArgumentError: the function cannot be called.

    >>> import limelight as ll
    >>> model = ll.nn.Sequential(ll.nn.Lambda(lambda x: x / 255.0), ll.nn.Dense(2))
    >>> model(ll.ones((1, 3))).shape
    (1, 2)
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        if not callable(function):
            raise ArgumentError(f"Lambda: function must be a function, got {function!r}")
        self.function = function
        self._function_trained = takes_training(function)

    def call(self, *inputs: Any, training: bool = False) -> Any:
        """What the function returns.

        Args:
            *inputs: what the function takes.
            training: handed on if the function takes it. False.

        Returns:
            What the function returns.
        """
        run = maybe_converted(self.function)
        return run(*inputs, training=training) if self._function_trained else run(*inputs)
