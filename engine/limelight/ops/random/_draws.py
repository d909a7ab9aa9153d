"""What the random ops share: where their numbers come from, and the short way to draw some.

A generator is counter-based (Philox 4x64-10: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011): its
n-th block of bits is a bijection of the counter n under a key. Numbers are drawn when an op runs, on the host whatever
the device and executor, so the stream depends on the generator and the order of draws alone. The stream is NumPy's own,
sequential in a counter: an op with a block of counters for itself would cost ten times as much for small draws.
"""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Final

import numpy as np

from limelight import forking
from limelight.core import backends, dtypes
from limelight.core.backends import is_cupy
from limelight.core.devices import CPU0
from limelight.core.dispatch import active, apply, local, scopes
from limelight.core.dtypes import DType, DTypeLike
from limelight.core.eager import explain, prepare
from limelight.core.host_kernels import by_host, to_gpu
from limelight.core.op import defop, get
from limelight.core.spec import known
from limelight.core.tensor import Tensor, wrap
from limelight.errors import DTypeError, LimelightError
from limelight.ops._given_shape import as_shape, defop_with_shape

WORDS: Final = 14
"""A state is so many 64-bit words: counter (4), key (2), a block of bits (4), how many of its words are used, whether
half a word is left and which one, and how many generators were split off."""
DRAWN: Final = "it is drawn, not computed from its inputs"
_BLOCK_USED: Final = 4
_SPLITTING: Final = 1
"""In the third word of counters whose blocks become keys; where numbers are drawn it is 0."""
_STEPS: Final = {dtypes.float16: np.float32(2**11), dtypes.bfloat16: np.float32(2**8)}  # as fine as these get below 1


def state_from(key: Any, lane: int = 0) -> np.ndarray[Any, Any]:
    """The state of a new generator: `lane` is the highest word of its counter."""
    return np.array([0, 0, 0, lane, *key, 0, 0, 0, 0, _BLOCK_USED, 0, 0, 0], np.uint64)


def state_of(seed: Any) -> np.ndarray[Any, Any]:
    """The state that a seed (an int of any size, several, None for one from the system) leads to, as in NumPy."""
    return state_from(np.random.SeedSequence(seed).generate_state(2, np.uint64))


def is_state(words: np.ndarray[Any, Any]) -> bool:
    """Whether words from a file are a state of a generator: NumPy takes any, and of some draws zeros for ever."""
    if words.dtype != np.uint64 or words.shape != (14,):
        return False
    buffer_place, has_half, half = words[10:13].tolist()
    return bool(buffer_place <= _BLOCK_USED and has_half <= 1 and half < 1 << 32)


_lock = threading.Lock()
forking.renew_in_child(__name__, "_lock", threading.Lock)


class Source:
    """The payload of a generator: what kernels draw from. NumPy's own lock keeps threads from drawing the same bits."""

    __slots__ = ("__weakref__", "_children", "_forks", "generator")

    def __init__(self, state: Any) -> None:
        self.set(state)
        _alive.add(self)

    @property
    def array(self) -> np.ndarray[Any, Any]:
        """The state, as words."""
        with _lock:
            bits = self.generator.bit_generator
            with bits.lock:
                at: Any = bits.state
            words = [*at["state"]["counter"], *at["state"]["key"], *at["buffer"]]
            return np.array([*words, at["buffer_pos"], at["has_uint32"], at["uinteger"], self._children], np.uint64)

    def set(self, state: Any) -> Any:
        """Takes up another state; returns it. Whoever is drawing ends on the old one."""
        words = np.asarray(to_host(state), np.uint64)
        bits = np.random.Philox(0)
        bits.state = {
            "bit_generator": "Philox",
            "state": {"counter": words[:4], "key": words[4:6]},
            "buffer": words[6:10],
            "buffer_pos": int(words[10]),
            "has_uint32": int(words[11]),
            "uinteger": int(words[12]),
        }
        with _lock:
            self.generator = np.random.Generator(bits)
            self._children = int(words[13])
            self._forks = 0  # how many processes were forked from this one, since it began with this state
        return state

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keeps other threads from drawing from it."""
        with self.generator.bit_generator.lock:
            yield

    def position(self) -> Any:
        """Where it is now, for `is_at` and `return_to`: a third of the time of `array`."""
        bits = self.generator.bit_generator
        with bits.lock:
            return bits.state

    def is_at(self, position: Any) -> bool:
        """Whether nobody has drawn from it since it was there."""
        state = self.position()
        bits = all(np.array_equal(state["state"][name], position["state"][name]) for name in ("counter", "key"))
        return bits and all(state[name] == position[name] for name in ("buffer_pos", "has_uint32", "uinteger"))

    def return_to(self, position: Any) -> None:
        """Draws from there once more. Splits stay made: nobody is handed a generator twice."""
        bits = self.generator.bit_generator
        with bits.lock:
            bits.state = position

    def note_fork(self) -> None:
        """To be called before a process forks, if its child is to `differ_from_parent`."""
        self._forks += 1

    def differ_from_parent(self) -> None:
        """In a process that has just been forked: draws numbers of its own, which key and number of forks determine."""
        key = self.generator.bit_generator.state["state"]["key"]
        self.set(state_of([*map(int, key), self._forks]))

    def split(self, n: int) -> list[np.ndarray[Any, Any]]:
        """The states of `n` new generators, none of which was handed out before.

        A child's key is a block of this generator that is never drawn from, its lane is its number. So children of one
        generator never meet, and others do only where two keys of 128 bits are equal by chance.
        """
        with _lock:
            first = self._children
            self._children += n
            at: Any = self.generator.bit_generator.state["state"]
        lane = int(at["counter"][3])
        blocks = [np.random.Philox(key=at["key"], counter=[i, 0, _SPLITTING, lane]) for i in range(first, first + n)]
        return [state_from(block.random_raw(2), first + i) for i, block in enumerate(blocks)]


@contextmanager
def alone(generators: Sequence[Source]) -> Iterator[None]:
    """Keeps other threads from drawing. In one order, so that two runs never wait for one another."""
    with ExitStack() as stack:
        for one in sorted(generators, key=id):
            stack.enter_context(one.held())
        yield


def return_to(generators: Sequence[Source], positions: Sequence[Any]) -> None:
    """Has each of them draw from its position once more."""
    for one, position in zip(generators, positions, strict=True):
        one.return_to(position)


_alive: Final[weakref.WeakSet[Source]] = weakref.WeakSet()


def sources() -> list[Source]:
    """All generators' payloads that are alive."""
    return list(_alive)


def _renew_locks() -> None:
    """In a process that has just been forked: a thread that has gone may have held NumPy's own lock of a generator."""
    for source in list(_alive):
        state: Any = source.generator.bit_generator.state
        bits = np.random.Philox(0)
        bits.state = state
        source.generator = np.random.Generator(bits)


forking.in_child(_renew_locks)


def unit_uniform(source: Source, shape: tuple[int, ...], dtype: DType) -> Any:
    """Uniform numbers in [0, 1), 1 excluded in short dtypes as well."""
    if dtype is dtypes.float32:
        return source.generator.random(shape, np.float32)
    if dtype == dtypes.float64:
        return source.generator.random(shape)
    steps = _STEPS[dtype]
    return (np.floor(source.generator.random(shape, np.float32) * steps) / steps).astype(dtype)


def to_host(x: Any) -> np.ndarray[Any, Any]:
    """A kernel's operand as NumPy's array, wherever it is."""
    return x if type(x) is np.ndarray else np.asarray(backends.to_host(x))


def floating(name: str, dtype: DTypeLike) -> DType:
    """The dtype of a distribution on the real line; raises DTypeError for any other kind."""
    drawn_dtype = dtypes.dtype(dtype)
    if not dtypes.is_floating(drawn_dtype):
        raise DTypeError(f"random.{name} draws floating numbers, not {drawn_dtype.name}; see random.integers")
    return drawn_dtype


def moved_and_scaled(z: Any, location: float, scale: float, dtype: DType) -> Any:
    """`location` + `scale` * z.

    Args:
        z: what has just been drawn; it may be written to, as nobody else has seen it.
        location: what is added; 0.0 costs nothing.
        scale: what it is multiplied by; 1.0 costs nothing.
        dtype: that of the result.

    Returns:
        An array of the shape of `z`.
    """
    if scale != 1.0:
        z *= _float32(scale) if dtype is dtypes.float32 and z.dtype is dtype else scale
    if location != 0.0:
        z += _float32(location) if dtype is dtypes.float32 and z.dtype is dtype else location
    return z if z.dtype is dtype else z.astype(dtype)


@functools.lru_cache(maxsize=1024)
def _float32(number: float) -> Any:
    """A number as an array, which NumPy takes up twice as fast."""
    return np.array(number, np.float32)


_CAUSE: Final = "draws, which the host makes"


def handed(xp: Any, drawn: Any) -> Any:
    """What the host has drawn, as an array of the library `xp`."""
    if xp is np:
        return drawn
    return to_gpu(xp, drawn, _CAUSE) if is_cupy(xp) else xp.asarray(drawn)


def defop_draws(name: str, kernel: Callable[..., Any], attrs: str) -> Callable[..., Tensor]:
    """Registers an op (and its form for shapes known at run time) that draws, and returns `run(generator, shape, ...)`.

    `kernel(source, *attrs, shape)` gives NumPy's array; the dtype is the last of `attrs`.
    """

    def on_any(xp: Any, source: Source, *parameters: Any) -> Any:
        return handed(xp, kernel(source, *parameters))

    run = defop_with_shape(
        name,
        inputs="generator:var",
        attrs=attrs,
        infer=lambda generator, *parameters: known(parameters[-1], parameters[-2]),
        kernel=on_any,
        effect="random",
        why_no_gradient=DRAWN,
        batching="draw",
        dynamic_batching="draw_dynamic",
    )
    op = get(name)

    def run_fast(generator: Any, shape: Any, *parameters: Any) -> Tensor:
        if (active and (scopes or local.observer is None)) or type(shape) is not tuple:
            return run((generator,), as_shape(shape), *parameters)
        try:  # a tape that only looks on learns nothing from a draw, which has no gradient
            return wrap(kernel(generator._data, *parameters, shape))
        except LimelightError:
            raise
        except Exception as error:  # noqa: BLE001  # `explain` raises
            as_shape(shape)  # says what is wrong with it, if anything is
            explain(op, (generator,), (*parameters, shape), error)

    return run_fast


def defop_draws_like(name: str, **fields: Any) -> Callable[..., Tensor]:
    """Registers an op that draws one number (or class, or row of counts) for each in a tensor of parameters.

    Returns `run(generator, parameters, *attrs)`. The fields are those of `defop`.
    """
    special = {"cupy": by_host(fields["kernel"], _CAUSE), **fields.pop("special", {})}
    op = defop(name, effect="random", special=special, **fields)
    kernel, accepts, silent = op.kernel_on("numpy"), op.accepts, op.vjp is None

    def run_fast(generator: Any, x: Any, *attrs: Any) -> Tensor:
        watched = active and (scopes or not silent or local.observer is None or bool(getattr(x, "_uid", 0)))
        if watched or type(x) is not Tensor or x._device is not CPU0 or x._data.dtype not in accepts:
            drawn: Tensor = apply(op, prepare(op, (generator, x)), attrs)
            return drawn
        try:
            return wrap(kernel(generator._data, x._data, *attrs))
        except LimelightError:
            raise
        except Exception as error:  # noqa: BLE001  # `explain` raises
            explain(op, (generator, x), attrs, error)

    return run_fast
