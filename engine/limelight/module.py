"""Objects with state: what models are made of (paper section 4.3)."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from limelight.core import dispatch, module_calls, shapes
from limelight.core.autograph_hook import maybe_converted
from limelight.core.variable import Variable
from limelight.user_code import hints

_MOST_CHILDREN: Final = 20
_DEEPEST: Final = 4


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


class Module:
    """Base class of models and layers: a Python object whose attributes are its state (paper section 4.3).

    Variables, modules, and lists, tuples and dictionaries of them are found through attribute names, which form the
    edges of a graph (the paper's Figure 1). A variable without a name gets that of the attribute. Subclasses define
    `call`; calling the module calls it. They need not call `super().__init__()`; its `name` is an attribute, no more.

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
        raise TypeError(f"{type(self).__name__} does not define call(self, ...)")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if dispatch.active:
            return module_calls.within(self, maybe_converted(self.call), args, kwargs)
        return maybe_converted(self.call)(*args, **kwargs)

    def __repr__(self) -> str:
        return _drawn(self, ())

    if TYPE_CHECKING:
        layers: Any  # a list, or what a subclass keeps by that name
        submodules: Any
    else:  # type checkers are to know of names that are missing
        layers = _Listing(_layers)
        submodules = _Listing(_submodules)

        def __getattr__(self, name: str) -> Any:
            return hints.missing_of_module(self, name)

        def __setattr__(self, name: str, value: Any) -> None:
            if isinstance(value, Variable) and name[0] != "_":
                _name_by_default(value, name)
            super().__setattr__(name, value)

    def edges(self) -> Iterator[tuple[str, Any]]:
        """The direct children.

        Yields:
            Pairs (path, child): the attribute's name, with the place in a list or the key in a dictionary behind a
            slash, and the variable or module.
        """
        for name, value in vars(self).items():
            yield from _children(name, value)

    def named_variables(self) -> Iterator[tuple[str, Variable]]:
        """All variables below this module, each once, in the order of their attributes.

        Yields:
            Pairs (path, variable): the paths of `edges`, joined by slashes.

        >>> import limelight as ll
        >>> model = ll.nn.Sequential(ll.nn.Dense(2))
        >>> y = model(ll.ones((1, 3)))
        >>> [(path, v.shape) for path, v in model.named_variables()]
        [('layers/0/kernel', (3, 2)), ('layers/0/bias', (2,))]
        """
        seen: set[int] = set()
        pending: list[tuple[str, Any]] = list(reversed(list(self.edges())))
        while pending:
            path, child = pending.pop()
            if id(child) in seen:
                continue
            seen.add(id(child))
            if isinstance(child, Variable):
                yield path, child
            else:
                pending += [(f"{path}/{name}", x) for name, x in reversed(list(child.edges()))]

    @property
    def variables(self) -> list[Variable]:
        """All variables below this module, each once."""
        return [variable for _, variable in self.named_variables()]

    @property
    def trainable_variables(self) -> list[Variable]:
        """The variables that tapes watch and optimisers change."""
        return [variable for variable in self.variables if variable.trainable]


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
    if isinstance(value, (Variable, Module)):
        yield name, value
    elif isinstance(value, (list, tuple)):
        for i, item in enumerate(value):
            yield from _children(f"{name}/{i}", item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _children(f"{name}/{key}", item)
