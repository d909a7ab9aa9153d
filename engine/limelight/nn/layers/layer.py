"""`Layer`, the base class of layers: weights that are made on the first call, a check of the input, a short repr.

A layer traces nothing. Calling one calls its method `call`, in which tensors meet ops as anywhere else; it is traced
where a function around it is staged (`limelight.staging.function`).

- Weights are made on the first call, from the size of the input's last axis; in a first call that is staged, too. Later
  inputs are checked against that size, so that the message names the layer and not the matrix product. A first call
  that raises puts back the attributes of the layer and of all modules below it (of a `Sequential`: of all its layers).
- `training` is an argument of the layers that need it (`Dropout`, `BatchNorm`), and `Sequential` hands it on. So a
  staged function keys its traces by it, and can say "training: False -> True". A mode kept in the module would be
  Python state that a trace has baked in, and a scoped setting would have to be a part of every key. Leaving it out
  means inference. All layers may be called with it: the base class drops it for those whose `call` does not take it.
- A layer computes in its own dtype: floating inputs of another one are cast, so that a batch of NumPy's, which is
  float64, is not a float64 computation; staged or not, a trace cannot tell where a tensor came from. Only
  normalisations keep the dtype of inputs that are narrower.
- Settings are given by name, after the one or two arguments that say what a layer is: at the places where other
  libraries want the sizes of inputs there would otherwise be epsilons and strides. Constructors are wrapped when the
  class is made, and explain themselves only once Python has refused the call (CallError).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

import numpy as np

from limelight.core import attachments, dispatch, dtypes, module_calls, nest
from limelight.core.dtypes import DTypeLike
from limelight.core.tensor import Tensor, TensorLike, as_tensor
from limelight.core.variable import Variable, created_by
from limelight.errors import ArgumentError, DTypeError, ShapeError, undefined_method
from limelight.module import Module
from limelight.nn import initializers
from limelight.nn.initializers import Initializer
from limelight.nn.layers.constructor_checks import checked_dtype, with_call_errors
from limelight.nn.layers.weight_assignments import kept_if_given, refuse_for_nothing, weights_given
from limelight.user_code.source_line import is_library
from limelight.user_code.tracebacks import in_place_of_python

_MANY: Final = -1
"""The number of features of a layer that was built for several inputs: `build` had all their shapes."""


class Layer(Module):
    """Base class of layers whose weights depend on the size of the input's last axis.

    A subclass defines `build(features)`, which makes the weights, and begins its `call` with `x = self.ready(x)`. If
    neither `call` nor a method that it calls does, `build` is called before, for the first argument. One that was
    written for Keras may keep `build(self, input_shape)`, or any name with "shape" in it: it gets the shape of that
    argument, or a list, tuple or dictionary of shapes for one of tensors.
    A variable that a layer is given before that, of the shape that it will have, stays: so layers share weights.
    The class's `form` describes the input to people; its `rank`, if not None, is how many axes it must have. A first
    call that raises leaves the layer as it was, without weights.

    Layers that act differently while a model is trained take a keyword, `training=False`: an ordinary argument, which a
    staged function therefore keys its traces by. There is no mode to forget to switch. All other layers may be called
    with it, too: what `call` does not take it is not given. A constructor raises CallError, an ArgumentError, for
    settings that it does not take.

    Args:
        dtype: that of the weights, floating or complex, which inputs of another are converted to; the class's, float32.
        name: one of your own; by default a layer goes by the attribute that holds it.

    >>> import limelight as ll
    >>> class Scale(ll.nn.Layer):
    ...     def build(self, features):
    ...         self.scale = self.weight("scale", (features,), ll.nn.initializers.ones)
    ...     def call(self, x):
    ...         return self.ready(x) * self.scale
    >>> Scale()(ll.constant([[1.0, 2.0]])).tolist()
    [[1.0, 2.0]]
    """

    form = "(..., features)"
    rank: int | None = None
    _features: int | None = None  # underscored, as subclasses have settings of their own by that name
    dtype: DTypeLike = dtypes.float32
    trained: ClassVar[bool] = False
    """Whether `call` takes `training`; for other layers it makes no difference."""

    _built_of_shape: ClassVar[bool] = False
    _built_before_call: ClassVar[bool] = False

    def __init__(self, *, dtype: DTypeLike | None = None, name: str | None = None) -> None:
        super().__init__(name=name)
        if dtype is not None:
            self.dtype = checked_dtype(type(self).__name__, dtype)

    __init__ = with_call_errors(__init__, "Layer")

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__init__" in vars(cls):
            cls.__init__ = with_call_errors(cls.__init__, cls.__name__)  # type: ignore[method-assign]  # as the class is made
        if "build" in vars(cls):
            cls.build = _of_features_or_inputs(cls.build)  # type: ignore[method-assign]  # as the class is made
        cls.trained = takes_training(cls.call)
        names = [name for name in list(inspect.signature(cls.build).parameters)[1:] if name != "features"]
        cls._built_of_shape = bool(names) and "shape" in names[0]
        cls._built_before_call = cls._built_of_shape or not _says_ready(cls)

    @in_place_of_python  # `call` with the wrong arguments is the caller's mistake
    def _calling(self, *args: Any, **kwargs: Any) -> Any:
        if not self.trained:
            kwargs.pop("training", None)
        if self._features is not None or type(self).build is Layer.build:
            return module_calls.within(self, self.call, args, kwargs) if dispatch.active else self.call(*args, **kwargs)
        before, wait_again = snapshot(self), attachments.savepoint()
        try:
            with created_by.override("layer"):
                if self._built_before_call and (args or kwargs):
                    self._build_for(args[0] if args else _first_by_name(self.call, kwargs))
                return module_calls.within(self, self.call, args, kwargs)
        except BaseException:  # an interrupt, too, may leave weights for an input that was never meant
            restore(before)
            wait_again()
            raise

    if not TYPE_CHECKING:  # to type checkers it is a module's: what `call` returns
        __call__ = _calling

        def __setattr__(self, name: str, value: Any) -> None:
            if value is None or name == "weight":
                refuse_for_nothing(self, name, value)
            elif "_building" in vars(self) and isinstance(value, Variable):
                value = kept_if_given(self, name, value)
            super().__setattr__(name, value)

    def __limelight_signature__(self) -> inspect.Signature:
        """The parameters of `call`, and `training`, which any layer takes; or of a `__call__` of its class's own."""
        if type(self).__call__ is not Layer.__call__:
            return inspect.signature(self)
        own = inspect.signature(self.call)
        if self.trained or any(p.kind is p.VAR_KEYWORD for p in own.parameters.values()):
            return own
        training = inspect.Parameter("training", inspect.Parameter.KEYWORD_ONLY, default=False)
        return own.replace(parameters=[*own.parameters.values(), training])

    def build(self, features: int, *inputs: Any) -> None:
        """Creates the weights; to be defined by subclasses.

        Called with the shape or the `ll.TensorSpec` of the input instead, it does what `Module.build` does.

        Args:
            features: the size of the input's last axis.
            *inputs: shapes of further inputs, where the first one is a shape, too.

        Raises:
            TypeError: the subclass does not define it.
            ShapeError: the layer's settings do not fit so many features, as a number of groups that does not divide
                them.
        """
        if type(self).build is Layer.build and not isinstance(features, int):
            super().build(features, *inputs)
        elif type(self).build is Layer.build:  # else a subclass has called its super().build
            error = undefined_method(self, "build(self, features)")
            raise error

    def ready(self, x: TensorLike) -> Tensor:
        """The input as a tensor that fits the weights, which are made on the first call.

        Args:
            x: the input of a call, of the shape that `form` describes.

        Returns:
            `x` as a tensor, of the layer's dtype if it is floating.

        Raises:
            DTypeError: the input is a dictionary.
            ShapeError: the input is a list or tuple of tensors, has another rank, its last size is not that of the
                first input, or that of the first input is unknown.
        """
        if type(x) is not Tensor:
            self._refuse_many(x)
            x = as_tensor(x)
        rank = vars(self).get("_rank", type(self).rank)
        if not x.ndim or (rank is not None and x.ndim != rank):
            raise ShapeError(f"{self!r} needs an input of shape {self._wanted_form()}, got {x.spec}")
        features = x.shape[-1]
        if self._features is None:
            if features is None:
                raise ShapeError(
                    f"{self!r} makes its weights on the first call and needs the size of the last axis for that, "
                    f"got {x.spec}; call it once with a tensor, or give the size in the TensorSpec"
                )
            with _Building(self):
                self.build(x.shape if self._built_of_shape else features)  # type: ignore[arg-type]  # as Keras has it
            self._features = features
        elif features not in (None, self._features) and self._features != _MANY:
            raise ShapeError(f"{self!r} was built for inputs with {self._features} features, got {features}: {x.spec}")
        return x if x.dtype is self.dtype else self.in_own_dtype(x)

    def _refuse_many(self, x: Any) -> None:
        """Refuses inputs in a container: as an operand, a list of tensors would be stacked along a new axis."""
        if isinstance(x, Mapping):
            raise DTypeError(f"{self!r} takes one tensor of shape {self._wanted_form()}, got a {type(x).__name__}")
        tensors = (
            [one for one in x if isinstance(one, (Tensor, Variable)) and one.ndim] if type(x) in (list, tuple) else []
        )
        if tensors:
            joined = "write layer(x)" if len(x) == 1 else "write ll.concat(xs, axis=-1), or ll.stack(xs) for a new axis"
            specs = ", ".join([str(one.spec) for one in tensors[:3]]) + (", ..." if len(tensors) > 3 else "")
            raise ShapeError(
                f"{self!r} takes one tensor of shape {self._wanted_form()}, got a {type(x).__name__} of {len(x)}, "
                f"{specs}: {joined}"
            )

    def _build_for(self, x: Any) -> None:
        """Makes the weights for the first argument of a call whose method does not say `ready`."""
        if not self._built_of_shape or not isinstance(x, (list, tuple, Mapping)) or not _has_tensors(x):
            self.ready(x)
            return
        with _Building(self):
            self.build(nest.map_structure(lambda one: as_tensor(one).shape, x))
        self._features = _MANY

    def _wanted_form(self) -> str:
        form: str = vars(self).get("_form", type(self).form)
        return form

    def _lacks_weights(self) -> bool:
        if self._features is not None or type(self).build is Layer.build:
            return False
        return not self.variables or weights_given(self)

    def in_own_dtype(self, x: Tensor) -> Tensor:
        """`x` in the layer's dtype if it is floating, else as it is."""
        return x.astype(self.dtype) if dtypes.is_floating(x.dtype) else x

    def weight(
        self, name: str, shape: tuple[int, ...], initializer: str | Initializer, trainable: bool = True
    ) -> Variable:
        """A new variable.

        Args:
            name: its name.
            shape: its shape, of known sizes.
            initializer: a function of a shape and a dtype, called outside of any trace, or the name of one in
                `ll.nn.initializers`.
            trainable: whether tapes watch it when it is read. True.

        Returns:
            The variable, of the layer's dtype.

        Raises:
            ArgumentError: there is no initializer of that name.
            ShapeError: the shape is not a tuple of known sizes.
        """
        make = initializers.get(initializer)
        shape = self._sizes(name, shape)
        return Variable(lambda: make(shape, self.dtype), self.dtype, name, trainable, shape)

    def _sizes(self, name: str, shape: Any) -> tuple[int, ...]:
        sizes = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
        if all(isinstance(n, (int, np.integer)) for n in sizes):
            return sizes
        nested = any(isinstance(n, (tuple, list)) for n in sizes)
        hint = "; input_shape is a whole shape: its last size is input_shape[-1]" if nested else ""
        raise ShapeError(f"{type(self).__name__}: the shape of {name} must be a tuple of sizes, got {shape!r}{hint}")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(shown_settings(self))})"


def _has_tensors(given: Any) -> bool:
    return any(isinstance(x, (Tensor, Variable, np.ndarray)) for x in nest.leaves_of(given))


def _says_ready(cls: type[Layer]) -> bool:
    """Whether a class's `call`, or a method that it calls by name, makes the weights where it needs them."""
    homes = cls.__mro__[: cls.__mro__.index(Layer)]
    waiting, met = _methods(homes, "call")[:1], set()
    while waiting:
        home, method = waiting.pop()
        code = getattr(inspect.unwrap(method), "__code__", None)
        if code is None or code in met:
            continue
        if is_library(code) or "ready" in code.co_names:
            return True
        met.add(code)
        above = homes[homes.index(home) + 1 :] if "super" in code.co_names else ()
        named = [kind for kind in homes if kind.__name__ in code.co_names]  # as in Dense.call(self, x)
        for name in code.co_names:
            waiting += _methods(homes, name)[:1] + _methods(above, name)[:1] + _methods(named, name)
    return not met  # there is no `call`, or none in Python


def _methods(homes: Iterable[type], name: str) -> list[tuple[type, Any]]:
    """What classes define by a name, the nearest first."""
    return [(kind, vars(kind)[name]) for kind in homes if callable(vars(kind).get(name))]


def _first_by_name(call: Callable[..., Any], given: Mapping[str, Any]) -> Any:
    """Of arguments by name the one whose parameter comes first."""
    names = inspect.signature(call).parameters
    return given[next((name for name in names if name in given), next(iter(given)))]


def check_training(layer: Module, training: Any) -> None:
    """Refuses what is no flag: a second input of a layer that takes one, which would be taken for True.

    Layers need not ask for True and False themselves: they look first, since this is on the way of each call.
    """
    if not isinstance(training, (bool, int, np.bool_, type(None))) and getattr(training, "dtype", None) != dtypes.bool_:
        given = f"{training.spec}" if isinstance(training, Tensor) else f"{type(training).__name__}"
        raise ArgumentError(
            f"{type(layer).__name__}: `training`, the second argument of a call, is True or False, got {given}; there "
            "is one input: for several write a subclass of ll.Module with a `call` that takes them"
        )


def takes_training(function: Callable[..., Any]) -> bool:
    """Whether a function has a parameter `training`, or takes any keyword."""
    try:
        parameters = inspect.signature(function).parameters
    except ValueError:  # some functions written in C do not say what they take
        return False
    return "training" in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())


Snapshot: TypeAlias = list[tuple[Module, dict[str, Any]]]


class _Building:
    """While a layer makes its weights, its `build` means the method that makes them, whatever it is given."""

    def __init__(self, layer: Layer) -> None:
        self._layer = layer

    def __enter__(self) -> None:
        vars(self._layer)["_building"] = True

    def __exit__(self, *_: object) -> None:
        vars(self._layer).pop("_building", None)


def _of_features_or_inputs(build: Callable[..., Any]) -> Callable[..., None]:
    """A subclass's `build`, which makes weights for so many features, as one that takes the input's shape as well."""

    @functools.wraps(build)
    def build_for(layer: Layer, features: Any, *inputs: Any) -> None:
        if "_building" in vars(layer):
            build(layer, features, *inputs)
        elif not isinstance(features, int):
            Module.build(layer, features, *inputs)
        else:
            with _Building(layer), created_by.override("layer"):
                build(layer, features)
            layer._features = features

    return build_for


def snapshot(module: Module) -> Snapshot:
    """The attributes of `module` and of all modules below it."""
    saved: Snapshot = []
    seen: set[int] = set()
    pending = [module]
    while pending:
        one = pending.pop()
        if id(one) not in seen:  # modules may be shared, or refer to each other in a circle
            seen.add(id(one))
            saved.append((one, dict(vars(one))))
            pending += [child for _, child in one.edges() if isinstance(child, Module)]
    return saved


def restore(state: Snapshot) -> None:
    """Gives modules back the attributes that they had."""
    for module, attributes in state:
        vars(module).clear()
        vars(module).update(attributes)


def shown_settings(layer: Any) -> list[str]:
    """The arguments of the constructor as a call would write them, without those left at their defaults."""
    arguments = []
    for name, parameter in inspect.signature(type(layer).__init__).parameters.items():
        if name in vars(layer):
            shown, default = _shown(vars(layer)[name]), parameter.default
            if default is parameter.empty:
                arguments.append(shown)
            elif shown not in (_shown(default), default):
                arguments.append(f"{name}={shown}")
    return arguments


def _shown(value: Any) -> str:
    if isinstance(value, np.dtype):
        return repr(value.name)
    return str(getattr(value, "__name__", None) or repr(value))
