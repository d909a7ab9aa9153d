"""The call of a program that assigns variables, as straight-line code.

A training step has a variable for each weight; looping over them, with a dictionary and a pair for each, took a third
of what a small program takes. It is for programs that draw nothing and refuse no value.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from limelight import forking
from limelight.core import storage

committing = threading.Lock()
"""Held while the variables of a run are assigned."""
forking.renew_in_child(__name__, "committing", threading.Lock)


def stateful_call(
    run: Callable[..., Any],
    tensors: Sequence[int],
    variables: Sequence[int],
    written: Sequence[int],
    on_host: Sequence[bool],
) -> Callable[..., tuple[Any, ...]]:
    """What gives the outputs for the payloads of all inputs, and assigns.

    All variables are assigned together, and the run is made again where another thread has assigned one meanwhile.

    Args:
        run: the program: takes the arrays of tensors, then those of variables; gives outputs, then values to assign.
        tensors: which inputs are tensors.
        variables: which inputs are variables.
        written: those of the variables that are assigned, at least one.
        on_host: for each result of the program, whether it becomes an array of NumPy.
    """
    inputs = ", ".join([f"p{i}" for i in range(len(tensors) + len(variables))])
    given = ", ".join([*[f"p{i}" for i in tensors], *[f"a{i}" for i in variables]])
    outputs = [f"r{i}" for i in range(len(on_host) - len(written))]
    results = [*outputs, *[f"n{i}" for i in written]]
    same = " and ".join([f"p{i}.array is a{i}" for i in written])
    lines = [
        *[f"a{i} = p{i}.array" for i in variables],
        f"{', '.join(results)}, = run({given})",
        *[f"{name} = asarray({name})" for name, host in zip(results, on_host, strict=True) if host],
        "with module.committing:",  # a forked process has another one
        f"    done = {same}",
        f"    if done: {'; '.join([f'p{i}.array = n{i}' for i in written])}",
        "if done:",  # told after the lock is given back: a listener may make such a call itself
        f"    if told: {'; '.join([f'p{i}._tell(n{i})' for i in written])}",
        f"    return ({''.join([f'{name}, ' for name in outputs])})",
    ]
    code = f"def call({inputs}):\n    while True:\n" + "\n".join([f"        {line}" for line in lines])
    names: dict[str, Any] = {"run": run, "asarray": np.asarray, "module": sys.modules[__name__], "told": storage.told}
    exec(compile(code, "<call of a program>", "exec"), names)  # written here, of our own words
    made: Callable[..., tuple[Any, ...]] = names.pop("call")
    return made
