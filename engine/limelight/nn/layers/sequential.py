"""`Sequential`: layers one after another."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from limelight.core import attachments, dispatch, module_calls
from limelight.core.autograph_hook import maybe_converted
from limelight.core.spec import TensorSpec
from limelight.core.tensor import Tensor
from limelight.errors import ArgumentError, AxisError
from limelight.module import Module
from limelight.nn.layers.constructor_checks import activations_by_name
from limelight.nn.layers.layer import check_training, restore, snapshot, takes_training
from limelight.staging.trace_branch import tracing


class Sequential(Module):
    """A sequence of layers, and of functions of one tensor, each applied to the result of the one before.

    `training` is handed to those that take it, and only to them: a module of your own whose `call` has layers with a
    `training` must take it itself and hand it on. `model[0]` is the first layer, `model[:2]` a sequence of the first
    two, which are shared; `model.layers` has all of them, and `model.add(layer)` adds one.

    Args:
        *layers: layers and functions, or one list of them.

    Raises:
        ArgumentError: something that cannot be called is given.
        AxisError: `model[i]` is asked for a layer that is not there.

    >>> import limelight as ll
    >>> model = ll.nn.Sequential(ll.nn.Dense(8), ll.nn.relu, ll.nn.Dropout(0.5), ll.nn.Dense(1))
    >>> model(ll.ones((2, 3)), training=True).shape
    (2, 1)
    >>> [path for path, _ in model.named_variables()]
    ['layers/0/kernel', 'layers/0/bias', 'layers/3/kernel', 'layers/3/bias']
    """

    _called = _traced = False
    _trained: tuple[bool, ...] = ()  # asked once: it takes longer than a layer

    def __init__(self, *layers: Any) -> None:
        if len(layers) == 1 and isinstance(layers[0], (list, tuple)):
            layers = tuple(layers[0])
        self.layers: tuple[Callable[..., Any], ...] = ()
        for layer in layers:
            self.add(layer)

    def add(self, layer: Callable[..., Any]) -> None:
        """Adds a layer or a function at the end.

        A model that a staged function has traced is refused: the trace has the layers of then. `Sequential(*model,
        layer)` is a longer one that shares them.

        Args:
            layer: what takes the result of the last one.

        Raises:
            ArgumentError: the layer cannot be called, or the model has been traced.

        >>> import limelight as ll
        >>> model = ll.nn.Sequential()
        >>> model.add(ll.nn.Dense(8, "relu"))
        >>> model.add(ll.nn.Dense(1))
        >>> model(ll.ones((2, 3))).shape
        (2, 1)
        """
        given: Any = layer
        if not callable(given) or (isinstance(given, type) and issubclass(given, Module)):
            kind = f"the class {given.__name__}" if isinstance(given, type) else type(given).__name__
            raise ArgumentError(f"Sequential takes layers and functions, got {kind}{_hint_for(given)}")
        if self._traced:
            raise ArgumentError(
                "Sequential: a staged function has traced this model, and would go on without a layer that is added "
                "now. Write model = ll.nn.Sequential(*model, layer), which shares the layers, and stage that"
            )
        self.layers = (*self.layers, layer)
        self._trained = (*self._trained, takes_training(_function(layer)))

    def _calling(self, *args: Any, **kwargs: Any) -> Any:
        if dispatch.active and not self._traced:
            self._traced = tracing() is not None
        if self._called:
            run = maybe_converted(self.call)
            return module_calls.within(self, run, args, kwargs) if dispatch.active else run(*args, **kwargs)
        before, wait_again = snapshot(self), attachments.savepoint()
        try:
            result = super()._calling(*args, **kwargs)
        except BaseException:  # those before the layer that failed are built for an input that was not meant
            restore(before)
            wait_again()
            raise
        self._called = True
        if len(args) == 1 and isinstance(args[0], Tensor) and args[0].ndim:  # for a summary; the batch may vary
            self._built_on = (TensorSpec((None, *args[0].shape[1:]), args[0].dtype),)
        return result

    if not TYPE_CHECKING:  # to type checkers it is a module's: what `call` returns
        __call__ = _calling

    def __limelight_signature__(self) -> inspect.Signature:
        return inspect.signature(self.call if type(self).__call__ is Sequential.__call__ else self)

    def call(self, x: Any, training: bool = False) -> Tensor:
        """The result of the last layer.

        Args:
            x: what the first layer takes.
            training: handed to the layers and functions that take it. False.

        Returns:
            What the last layer returns; without layers, `x`.
        """
        if training is not False and training is not True:
            check_training(self, training)
        for layer, trained in zip(self.layers, self._trained, strict=True):
            run = maybe_converted(layer)
            x = run(x, training=training) if trained else run(x)
        result: Tensor = x  # or what else the last layer makes, which type checkers are not to ask about
        return result

    def __len__(self) -> int:
        return len(self.layers)

    def __iter__(self) -> Iterator[Callable[..., Any]]:
        return iter(self.layers)

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return Sequential(*self.layers[index])
        try:
            return self.layers[index]
        except IndexError:
            raise AxisError(f"Sequential: there is no layer {index}; it has {len(self.layers)}") from None
        except TypeError:
            raise ArgumentError(f"Sequential: layers are numbered, got {index!r}; write an int or a slice") from None

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        inside = "".join(f"\n{textwrap.indent(_shown(layer), '    ')}," for layer in self.layers)
        return f"Sequential({inside}\n)" if inside else "Sequential()"


def _hint_for(given: Any) -> str:
    """What to write instead of something that cannot be called."""
    if isinstance(given, (list, tuple)):
        return "; write Sequential(*layers)"
    if isinstance(given, type):
        return f": a layer is made first, write {given.__name__}(...)"
    if given is None:
        return "; leave it out, or write ll.nn.Identity()"
    if isinstance(given, str):
        near = get_close_matches(given.lower(), activations_by_name(), n=1)
        return f"; write ll.nn.{near[0]}" if near else ", and no function has that name"
    if isinstance(given, Tensor):
        return (
            "; of a function give the function itself, as ll.nn.relu, or a lambda: lambda x: ll.nn.leaky_relu(x, 0.1)"
        )
    return ""


def _function(layer: Callable[..., Any]) -> Callable[..., Any]:
    return layer.call if isinstance(layer, Module) else layer


def _shown(layer: Any) -> str:
    return repr(layer) if isinstance(layer, Module) else str(getattr(layer, "__name__", repr(layer)))
