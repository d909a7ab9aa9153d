"""Objects with state: what models are made of (paper section 4.3)."""

from __future__ import annotations

import functools
import inspect
import textwrap
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from limelight.core import attachments, dispatch, module_calls, shapes
from limelight.core.autograph_hook import maybe_converted
from limelight.core.records import fields_of, is_record
from limelight.core.tensor import Tensor
from limelight.core.variable import Variable
from limelight.errors import ArgumentError, undefined_method
from limelight.module_build import is_noted, note_call, results_of_first_call, spec_of, traced_results, types_told
from limelight.module_summary import Size, Summary, summary_of
from limelight.staging import stale_traces
from limelight.user_code import hints, source_line
from limelight.user_code.source_line import is_library
from limelight.user_code.tracebacks import in_place_of_python
from limelight.user_code.warn_at import warn_at

Result = TypeVar("Result", covariant=True)  # noqa: PLC0105  # a noun says more
_MOST_CHILDREN: Final = 20
_DEEPEST: Final = 4

if TYPE_CHECKING:

    class Callee(Protocol[Result]):
        """What has a `call`: to type checkers a module returns what that does."""

        @property
        def call(self) -> Callable[..., Result]: ...


class _Listing:
    """A list made of a module when it is asked for; modules may keep an attribute of that name instead."""

    def __init__(self, make: Callable[[Any], list[Module]]) -> None:
        self._make = make
        self.__doc__ = make.__doc__

    def __get__(self, module: Any, owner: type) -> Any:
        return self if module is None else self._make(module)


def _layers(module: Module) -> list[Module]:
    """The modules directly below this one, each once, in the order of their attributes.

    >>> import limelight as ll
    >>> ll.nn.LSTM(2).layers
    [LSTMCell(2)]
    """
    return list({id(child): child for _, child in module.edges() if isinstance(child, Module)}.values())


def _submodules(module: Module) -> list[Module]:
    """All modules below this one, each once, in the order of their attributes; not this one.

    >>> import limelight as ll
    >>> model = ll.nn.Sequential(ll.nn.LSTM(2))
    >>> [type(m).__name__ for m in model.submodules]
    ['LSTM', 'LSTMCell']
    """
    seen, pending = {id(module): module}, _layers(module)[::-1]
    while pending:
        child = pending.pop()
        if id(child) not in seen:
            seen[id(child)] = child
            pending += _layers(child)[::-1]
    return list(seen.values())[1:]


def _noted(own: FunctionType) -> Callable[..., Any]:
    """A method `__call__` of the user's: traces note its calls as they do those of `call`."""

    @in_place_of_python  # which would say that an argument is missing, at the user's line
    @functools.wraps(own)
    def __call__(self: Module, *args: Any, **kwargs: Any) -> Any:  # noqa: N807  # in its place
        if dispatch.active:
            return module_calls.within(self, maybe_converted(MethodType(own, self)), args, kwargs)
        return own(self, *args, **kwargs)

    return __call__


class Module:
    """Base class of models and layers: a Python object whose attributes are its state (paper section 4.3).

    Variables, modules, and lists, tuples, dictionaries and dataclasses of them are found through attribute names, which
    form the edges of a graph (the paper's Figure 1). A variable without a name gets that of the attribute. Subclasses
    define `call`, or `__call__` itself; calling the module calls it. They need not call `super().__init__()`; its
    `name` is an attribute, no more.

    >>> import limelight as ll
    >>> class Scale(ll.Module):
    ...     def __init__(self):
    ...         self.v = ll.Variable(2.0)
    ...     def call(self, x):
    ...         return x * self.v
    >>> model = Scale()
    >>> model(ll.constant(3.0)).item(), [path for path, _ in model.named_variables()]
    (6.0, ['v'])
    """

    __limelight_leaf__ = True

    def __init__(self, *, name: str | None = None) -> None:
        if name is not None:
            self.name = name

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """The forward computation; to be defined by subclasses.

        Raises:
            TypeError: the subclass does not define it.
        """
        hint = "; its forward(self, ...) is called so here: rename it" if hasattr(type(self), "forward") else ""
        error = undefined_method(self, "call(self, ...)", hint)
        raise error

    @in_place_of_python
    def _calling(self, *args: Any, **kwargs: Any) -> Any:
        call = maybe_converted(self.call)
        result = module_calls.within(self, call, args, kwargs) if dispatch.active else call(*args, **kwargs)
        if not is_noted(self):
            note_call(self, args, kwargs)
        return result

    def __limelight_signature__(self) -> inspect.Signature:
        """The parameters of a call, by the names that `call` gives them: what staging binds and speaks of."""
        return inspect.signature(self.call if type(self).__call__ is Module.__call__ else self)

    if TYPE_CHECKING:

        def __call__(self: Callee[Result], *args: Any, **kwargs: Any) -> Result: ...
    else:
        __call__ = _calling

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        own = vars(cls).get("__call__")
        if isinstance(own, FunctionType) and not is_library(own.__code__):
            cls.__call__ = _noted(own)  # type: ignore[method-assign]  # once, as the class is made

    def __repr__(self) -> str:
        return _drawn(self, ())

    _built_on: tuple[Any, ...]  # the types of arguments that it was built for, where `build` was called

    if TYPE_CHECKING:
        layers: Any  # a list, or what a subclass keeps by that name
        submodules: Any
    else:  # type checkers are to know of names that are missing
        layers = _Listing(_layers)
        submodules = _Listing(_submodules)

        def __getattr__(self, name: str) -> Any:
            build = getattr(type(self).build, "__code__", None)
            no_layer = type(self)._lacks_weights is Module._lacks_weights
            if no_layer and build is not None and build is not Module.build.__code__ and name in build.co_names:
                raise AttributeError(
                    f"{type(self).__name__!r} object has no attribute {name!r}, which its `build` makes: of an "
                    "ll.Module nobody calls `build`. Derive the class from ll.nn.Layer, which does on the first call",
                    name=name,
                    obj=self,
                )
            return hints.missing_of_module(self, name)

        @in_place_of_python
        def __setattr__(self, name: str, value: Any) -> None:
            if name in _METHODS and isinstance(value, (Module, Variable)):
                raise AttributeError(
                    f"{type(self).__name__}.{name} is a method of ll.Module, and cannot be a {type(value).__name__}: "
                    f"call yours otherwise, such as own_{name}",
                    name=name,
                    obj=self,
                )
            if isinstance(value, Variable) and name[0] != "_":
                _name_by_default(value, name)
            elif name in ("trainable", "requires_grad") and value is False and not hasattr(type(self), name):
                raise AttributeError(f"{type(self).__name__!r} object has no {name!r} to set: {hints.FREEZING}")
            elif (
                isinstance(value, Tensor)
                and isinstance(vars(self).get(name), Variable)
                and not getattr(getattr(type(self), name, None), "fset", None)  # a property may assign it
            ):
                raise AttributeError(
                    f"{type(self).__name__}.{name} is a variable, and would be none: write .{name}.assign(value) "
                    f"for its value, or .{name} = ll.Variable(value) for another one"
                )
            elif isinstance(getattr(type(self), name, None), property) and _is_ours(type(self), name):
                raise AttributeError(
                    f"{type(self).__name__}.{name} is what ll.Module says of a module, and cannot be set: call yours "
                    f"otherwise, such as own_{name}",
                    name=name,
                    obj=self,
                )
            if isinstance(value, _UNORDERED):
                _warn_of_unseen(self, name, value)
            stale = _stale_traces(self, name, value) if name in vars(self) and name[0] != "_" else []
            super().__setattr__(name, value)
            if stale:
                stale_traces.warn(stale, _change(self, name, value))
            if attachments.waiting:
                attachments.attached(self, name)

    def edges(self) -> Iterator[tuple[str, Any]]:
        """The direct children.

        Yields:
            Pairs (path, child): the attribute's name, with the place in a list or the key in a dictionary behind a
            slash, and the variable or module.
        """
        for name, value in vars(self).items():
            yield from _children(name, value)

    def named_variables(self, trainable: bool | None = None) -> Iterator[tuple[str, Variable]]:
        """All variables below this module, each once, in the order of their attributes.

        Args:
            trainable: True for those that tapes watch alone, which are those of `trainable_variables` and of the
                gradients of `tape.gradient(loss, module)`, in the same order; False for the others, as the statistics
                of a `BatchNorm`; None for both.

        Yields:
            Pairs (path, variable): the paths of `edges`, joined by slashes.

        >>> import limelight as ll
        >>> model = ll.nn.Sequential(ll.nn.Dense(2))
        >>> y = model(ll.ones((1, 3)))
        >>> [(path, v.shape) for path, v in model.named_variables()]
        [('layers/0/kernel', (3, 2)), ('layers/0/bias', (2,))]
        >>> [path for path, _ in model.named_variables(trainable=False)]
        []
        """
        seen: set[int] = set()
        pending: list[tuple[str, Any]] = list(reversed(list(self.edges())))
        while pending:
            path, child = pending.pop()
            if id(child) in seen:
                continue
            seen.add(id(child))
            if isinstance(child, Variable):
                if trainable is None or child.trainable == trainable:
                    yield path, child
            else:
                pending += [(f"{path}/{name}", x) for name, x in reversed(list(child.edges()))]

    @property
    def variables(self) -> list[Variable]:
        """All variables below this module, each once."""
        return [variable for _, variable in self.named_variables()]

    @property
    def parameter_count(self) -> int:
        """How many numbers the variables below this module hold, those that are not trained included; each counts once.

        Of those that are trained, which other libraries call parameters, `summary()` has the number as `trainable`.

        Raises ArgumentError where a layer has no weights yet.

        >>> import limelight as ll
        >>> model = ll.nn.Sequential(ll.nn.Dense(2))
        >>> model.build((None, 3))
        >>> model.parameter_count
        8
        """
        waiting = _without_weights(self)
        if waiting:
            raise ArgumentError(f"parameter_count: {_to_be_built(self, waiting)}")
        return Size.of(self.variables).parameters

    def build(self, *inputs: Any) -> None:
        """Makes the weights as the first call does, from the types of its arguments; no value but theirs is computed.

        The call is traced, and the trace thrown away. A module whose Python code asks for values cannot be traced: call
        it with an example instead.

        Args:
            *inputs: for each argument of a call its shape, with None for sizes that vary, a `ll.TensorSpec` (a shape is
                one of float32), or a tensor or array for its type.

        Returns:
            None, as of what changes its object, and as the `build` of a layer of yours does: make the module first.

        Raises:
            ArgumentError: an input is none of these.
            ShapeError, DTypeError: the module does not take such arguments. Then it is as it was.

        >>> import limelight as ll
        >>> model = ll.nn.Sequential(ll.nn.Dense(8, "relu"), ll.nn.Dense(1))
        >>> model.build((None, 3))
        >>> [v.shape for v in model.variables]
        [(3, 8), (8,), (8, 1), (1,)]
        """
        specs = tuple(map(spec_of, inputs))
        with types_told(inputs):
            traced_results(self, specs)
        self._built_on = specs

    def summary(self, *inputs: Any) -> Summary:
        """A table of the modules below this one: attribute path, type, result, parameters and bytes.

        It prints as a table, and is a tree in a notebook. What is shared counts once. Results are known where the types
        of the arguments are: from here, from `build`, or from a first call with tensors, arrays and plain values.

        Args:
            *inputs: as in `build`, which is done with them first.

        Returns:
            A `Summary`, with the totals `parameters`, `trainable` and `nbytes`.

        Raises:
            ArgumentError: an input is no shape and no type.

        >>> import limelight as ll
        >>> print(ll.nn.Sequential(ll.nn.Dense(8, "relu"), ll.nn.Dense(1)).summary((None, 3)))
        Layer       Type   Output    Parameters  Bytes
        ──────────  ─────  ────────  ──────────  ─────
        Sequential         f32[?,1]
          layers.0  Dense  f32[?,8]          32  128 B
          layers.1  Dense  f32[?,1]           9   36 B
        <BLANKLINE>
        Total: 41 parameters, 164 B
        """
        specs = tuple(map(spec_of, inputs)) or vars(self).get("_built_on", ())
        with types_told(inputs):
            outputs = traced_results(self, specs) if specs else results_of_first_call(self)
        if inputs:
            self._built_on = specs
        waiting = _without_weights(self)
        return summary_of(self, outputs, [_to_be_built(self, waiting)] if waiting else [])

    def _lacks_weights(self) -> bool:
        """Whether it makes weights on its first call, which has not been."""
        return False

    @property
    def trainable_variables(self) -> list[Variable]:
        """The variables that tapes watch and optimisers change."""
        return [variable for variable in self.variables if variable.trainable]


def _stale_traces(module: Module, name: str, value: Any) -> list[stale_traces.Stale]:
    """The traces that will go on with the part or the setting `name` as it was, when it is `value`.

    A setting is an attribute with the name of a parameter of the constructor, of a layer or an optimiser, or of a class
    derived from one. What the attributes of a bare `ll.Module` are for, nobody but its author knows.
    """
    old = vars(module)[name]
    if old is value or isinstance(getattr(type(module), name, None), property):  # which may assign it
        return []
    if isinstance(old, (Module, Variable)):
        return stale_traces.of_part(old, [old] if isinstance(old, Variable) else old.variables)
    return stale_traces.of_setting(module, old, value) if name in _settings_of(type(module)) else []


def _settings_of(cls: type) -> frozenset[str]:
    """What the constructors of a class and of its bases take; nothing where they are not derived from our layers."""
    known = _settings.get(cls)
    if known is None:
        kinds = [kind for kind in cls.__mro__ if kind is not Module and "__init__" in vars(kind) and kind is not object]
        ours = any(kind is not Module and kind.__module__.startswith("limelight.") for kind in cls.__mro__)
        names = [name for kind in kinds for name in inspect.signature(vars(kind)["__init__"]).parameters]
        known = _settings[cls] = frozenset(names if ours else [])
    return known


_settings: Final[weakref.WeakKeyDictionary[type, frozenset[str]]] = weakref.WeakKeyDictionary()
"""By class: an assignment to an attribute is to take no 20 µs, as a signature does."""


def _change(module: Module, name: str, value: Any) -> str:
    what = f"{type(module).__name__}.{name}"
    if isinstance(value, (Module, Variable)):
        return f"{what} is another {type(value).__name__} now, while the traces of {{names}} go on with the one before"
    return f"{what} is a constant of the traces of {{names}}, and stays there as it was"


_UNORDERED: Final = (set, frozenset, deque)


def _warn_of_unseen(module: Module, name: str, value: Iterable[Any]) -> None:
    """Warns of layers in a container whose places have no names, by which what is trained and saved is found."""
    inside = next((x for x in value if isinstance(x, (Module, Variable))), None)
    line = source_line.user_line()
    if inside is not None and line is not None:
        kind = type(value).__name__
        message = (
            f"{type(module).__name__}.{name} is a {kind}, in which nothing is looked for: the {type(inside).__name__} "
            f"in it is neither trained nor saved{source_line.at(line)}. Make it a list or a dictionary"
        )
        warn_at(line, message, UserWarning)


_METHODS: Final = frozenset([name for name, x in vars(Module).items() if name[0] != "_" and callable(x)])
"""What an attribute would hide, and the library then call."""


def _is_ours(cls: type, name: str) -> bool:
    """Whether a property that cannot be set is the library's: of one of the user's own Python says that."""
    home = next(kind for kind in cls.__mro__ if name in vars(kind))
    return vars(home)[name].fset is None and home.__module__.startswith("limelight.")


def _without_weights(module: Module) -> list[Module]:
    return [m for m in (module, *_submodules(module)) if m._lacks_weights()]


def _to_be_built(module: Module, waiting: list[Module]) -> str:
    """What to do about layers without weights."""
    n = len(waiting)
    first = f"{waiting[0]!r} has" if n == 1 else f"{n} layers, {waiting[0]!r} first, have"
    return (
        f"{first} no weights yet: they are made on the first call. Call the {type(module).__name__} once, or write "
        "build((None, ...)) with the shape of its input"
    )


def _name_by_default(variable: Variable, name: str) -> None:
    """Calls a variable `name` that was made without one, and has not become known by another."""
    scope, slash, last = variable.name.rpartition("/")
    if last == "variable":
        variable.name = variable._data.name = scope + slash + name


def _drawn(module: Module, above: tuple[Module, ...]) -> str:
    """The class and the children, each on a line; not the whole of a large model, nor for ever of one in a circle."""
    children = list(module.edges())
    name = type(module).__name__
    if not children:
        return f"{name}()"
    if len(above) >= _DEEPEST or any(module is other for other in above):
        return f"{name}(...)"
    lines = [f"{path}={_shown(child, (*above, module))}," for path, child in children[:_MOST_CHILDREN]]
    if len(children) > _MOST_CHILDREN:
        lines.append(f"... and {len(children) - _MOST_CHILDREN} more")
    return f"{name}(\n" + textwrap.indent("\n".join(lines), "    ") + "\n)"


def _shown(child: Variable | Module, above: tuple[Module, ...]) -> str:
    if isinstance(child, Variable):
        return f"Variable(shape={shapes.show(child.shape)}, dtype={child.dtype.name})"
    return _drawn(child, above) if type(child).__repr__ is Module.__repr__ else repr(child)


def _children(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The variables and modules in a value; what leads back to itself, as a parent does, is looked into once."""
    pending = [(name, value)]
    seen: set[int] = set()
    while pending:
        name, value = pending.pop()
        if isinstance(value, (Variable, Module)):
            yield name, value
            continue
        items: Iterable[tuple[Any, Any]] = ()
        if isinstance(value, (list, tuple)):
            items = enumerate(value)
        elif isinstance(value, dict):
            items = value.items()
        elif is_record(value):
            items = (fields_of(value) or {}).items()
        if id(value) not in seen:
            seen.add(id(value))
            pending += [(f"{name}/{key}", item) for key, item in reversed(list(items))]
