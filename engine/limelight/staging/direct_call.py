"""Direct calls: code for calls that are one compiled program and nothing else.

A bare call of `jax.jit` takes 4.4 microseconds. Looking its trace up, counting the hit and handing payloads on took 2.3
more, half of it for what the processor's caches lose on so many lines. So such a call has a line of code for each
argument, which asks whether it is just what the program takes, and calls that. Whatever is not goes by the other ways,
as does any call while an interpreter, a scope or a listener is active.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from limelight import events
from limelight.core.devices import CPU0, Device
from limelight.core.tensor import Tensor
from limelight.executors.base import Runnable

MISSED: Final = object()
"""What a direct call returns where it is for another way to decide."""
MOST: Final = 64
"""Arguments; beyond them it is the program that counts."""
Direct = Callable[[tuple[Any, ...]], Any]


def direct_call(
    args: tuple[Any, ...], captures: Sequence[Callable[[], Any]], home: Device, run: Runnable, counter: Any, name: str
) -> Direct | None:
    """A function of the positional arguments that returns the result, or MISSED.

    Args:
        args: those of a call for which it is made.
        captures: references to what the trace has captured, which give None for what has been deleted.
        home: the device on which its tensors must be.
        run: what runs the trace; its `program` is called once that is there. What that raises is for `run` to explain.
        counter: counts hits.
        name: of the staged function, for profilers.

    Returns:
        None where there is none: for other arguments or results than tensors on that device, or for runnables without
        programs.
    """
    plain = all(type(x) is Tensor and x._device is home for x in args)
    if not plain or not 0 < len(args) <= MOST or not hasattr(run, "program") or run.output_devices[0] is not home:
        return None  # a literal, or a shape, is on the host wherever the arguments are
    places = range(len(args))
    alike = "dtype is a{0} and d{0}.shape == s{0}" if home is CPU0 else "aval is a{0}"  # JAX keeps one of each
    check = "type(x{0}) is Tensor and x{0}._device is home and (d{0} := x{0}._data)." + alike
    alive = [f"(c{i} := r{i}()) is not None" for i in range(len(captures))]
    same = " and ".join([*[check.format(i) for i in places], *alive])
    payloads = [*[f"d{i}" for i in places], *[f"c{i}._data" for i in range(len(captures))]]
    code = f"""def direct(args):
    program = run.program
    if program is None or len(args) != {len(args)} or hit in listeners:
        return missed
    {"".join([f"x{i}, " for i in places])}= args
    if not ({same}):
        return missed
    try:
        result, = program({", ".join(payloads)})
    except RuntimeError:
        return missed
    counter[0] += 1
    tensor = new(Tensor)  # `wrap`, which would be one call more
    tensor._data, tensor._device, tensor._uid = result, home, 0
    return tensor
"""
    names: dict[str, Any] = {f"r{i}": get for i, get in enumerate(captures)}
    for i, x in enumerate(args):
        names |= {f"a{i}": x._data.dtype, f"s{i}": x._data.shape} if home is CPU0 else {f"a{i}": x._data.aval}
    names |= {"Tensor": Tensor, "home": home, "run": run, "counter": counter, "new": object.__new__, "missed": MISSED}
    names |= {"hit": events.CacheHit, "listeners": events._listeners}
    exec(compile(code, f"<direct call of {name}>", "exec"), names)  # written here, of our own words
    made: Direct = names.pop("direct")
    return made
