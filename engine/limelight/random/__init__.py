"""Random tensors: `ll.random.normal((2, 3))` draws from the default generator, `ll.random.Generator(seed)` is another.

The functions are the methods of one generator that exists from the start, as in Python's own `random`; `seed` starts it
anew.
"""

from __future__ import annotations

from types import FunctionType
from typing import TYPE_CHECKING, Any, Final

from limelight import forking
from limelight.random.continuous import Continuous
from limelight.random.discrete import Discrete
from limelight.random.stream import Stream
from limelight.user_code import hints

__all__ = [
    "Generator",
    "bernoulli",
    "beta",
    "categorical",
    "cauchy",
    "choice",
    "default_generator",
    "dirichlet",
    "dropout_mask",
    "exponential",
    "gamma",
    "gumbel",
    "integers",
    "laplace",
    "multinomial",
    "normal",
    "permutation",
    "poisson",
    "seed",
    "split",
    "truncated_normal",
    "uniform",
]


class Generator(Continuous, Discrete):
    """A stream of random numbers that depends on its seed (an int or several; None for a fresh one) and nothing else.

    Counter-based (Philox 4x64-10, Salmon et al. 2011), on the host whatever the device. Staged functions read and
    advance it as eager code does: by reference, in program order, anew at each call. Threads that share one never draw
    the same numbers, though who draws which is up to chance: give each its own by `split`. A process that is forked
    goes on as its parent does: split off a generator for each before; the default generator does so by itself.

    Raises ArgumentError for a seed that is negative or no int.

        >>> import limelight as ll
        >>> g, h = ll.random.Generator(7), ll.random.Generator(7)
        >>> bool((g.normal((2, 3)) == h.normal((2, 3))).all())
        True
    """

    __slots__ = ()

    if not TYPE_CHECKING:  # type checkers are to know of names that are missing

        def __getattr__(self, name: str) -> Any:
            return hints.missing_of_generator(name)


for _kind in (Continuous, Discrete, Stream):  # Python's errors name a function by where it was written
    for _name, _method in vars(_kind).items():
        if isinstance(_method, FunctionType):
            _method.__qualname__ = f"Generator.{_name}"
_default: Final = Generator()
forking.before(_default._data.note_fork)
forking.in_child(_default._data.differ_from_parent)


def default_generator() -> Generator:
    """The generator that `ll.random.normal` and the other functions draw from; always the same one.

    In a process that is forked it begins anew, so that several draw different numbers: which ones follows from the seed
    and from how many were forked since.

    >>> import limelight as ll
    >>> ll.random.seed(1)
    >>> first = ll.random.default_generator().uniform()
    >>> ll.random.seed(1)
    >>> ll.random.uniform().item() == first.item()
    True
    """
    return _default


bernoulli = _default.bernoulli
beta = _default.beta
categorical = _default.categorical
cauchy = _default.cauchy
choice = _default.choice
dirichlet = _default.dirichlet
dropout_mask = _default.dropout_mask
exponential = _default.exponential
gamma = _default.gamma
gumbel = _default.gumbel
integers = _default.integers
laplace = _default.laplace
multinomial = _default.multinomial
normal = _default.normal
permutation = _default.permutation
poisson = _default.poisson
seed = _default.reset
split = _default.split
truncated_normal = _default.truncated_normal
uniform = _default.uniform

if not TYPE_CHECKING:  # type checkers are to know of names that are missing
    __getattr__ = hints.missing_name_hint("random")
__dir__ = hints.listing(__all__)
