"""A training step of one and the same program in each library: what `l2hmc`, `resnet50` and `memory` measure.

The words of a row are `batch(...)`, data as the library's own arrays, `step(data)`, which returns the loss when it is
there, `peak(data, small)`, the most bytes that a step takes, and `losses`, those of the first steps.
"""

from __future__ import annotations

import ctypes
import functools
import gc
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from measure import Library

Arrays = list[Any]
Step = Callable[..., Any]


class Task(NamedTuple):
    """A program: `loss(xp, parameters, data)` with a library's operations `xp`, which differ from task to task."""

    loss: Callable[[Any, Arrays, Sequence[Any]], Any]
    parameters: Callable[[], list[np.ndarray[Any, Any]]]
    batch: Callable[..., list[np.ndarray[Any, Any]]]
    operations: Mapping[str, Callable[[], Any]]  # by the name of the package
    rate: float
    torch_array: Callable[[Any], Any] | None = None  # PyTorch's own array of one of NumPy, where its axes are others


def _words(task: Task, convert: Callable[[Any], Any], make: Callable[[Arrays], Step]) -> Mapping[str, Any]:
    """What rows may say; `make(parameters)` gives a step, a function of a batch that returns the loss."""
    losses: list[float] = []
    step_of = make([convert(array) for array in task.parameters()])

    @functools.cache
    def batch(*size: int) -> list[Any]:
        return [convert(array) for array in task.batch(*size)]

    def step(data: Sequence[Any]) -> float:
        loss = float(step_of(*data))
        if not losses:
            losses.append(loss)
        return loss

    def peak(data: Sequence[Any], small: Sequence[Any]) -> int:
        return _peak(lambda: step(data), lambda: step(small))

    return {"batch": batch, "step": step, "peak": peak, "losses": losses}


def limelight(
    task: Task, executor: str = "", *, stage: bool = True, read_once: bool = True, device: str = "CPU:0"
) -> Mapping[str, Any]:
    """In limelight, staged for an executor or not staged; `read_once` has variables read once in a step."""
    import limelight as ll

    if executor:
        ll.config.executor(executor)
    xp = task.operations["limelight"]()

    def convert(array: Any) -> Any:
        return ll.constant(array).to(device)

    def make(parameters: Arrays) -> Step:
        with ll.device(device):
            variables = [ll.Variable(p) for p in parameters]

        def step(*batch: Any) -> Any:
            with ll.GradientTape() as tape:
                values = [v.read_value() for v in variables] if read_once else variables
                loss = task.loss(xp, values, batch)
            for variable, gradient in zip(variables, tape.gradient(loss, variables), strict=True):
                variable.assign_sub(task.rate * gradient)
            return loss

        return ll.function(step) if stage else step

    return _words(task, convert, make)


def torch(task: Task, stage: bool = False, device: str = "cpu") -> Mapping[str, Any]:
    import torch

    xp = task.operations["torch"]()
    array_of = task.torch_array or torch.tensor

    def convert(array: Any) -> Any:
        return array_of(array).to(device)

    def make(parameters: Arrays) -> Step:
        for p in parameters:
            p.requires_grad_()

        def step(*batch: Any) -> Any:
            loss = task.loss(xp, parameters, batch)
            gradients = torch.autograd.grad(loss, parameters)
            with torch.no_grad():
                for parameter, gradient in zip(parameters, gradients, strict=True):
                    parameter.sub_(task.rate * gradient)
            return loss.detach()

        return torch.compile(step) if stage else step

    return _words(task, convert, make)


def jax(task: Task, stage: bool = True) -> Mapping[str, Any]:
    import jax
    import jax.numpy as jnp

    xp = task.operations["jax"]()

    def make(parameters: Arrays) -> Step:
        state = [parameters]

        def update(parameters: Arrays, *batch: Any) -> Any:
            loss, gradients = jax.value_and_grad(lambda p: task.loss(xp, p, batch))(parameters)
            return loss, [p - task.rate * g for p, g in zip(parameters, gradients, strict=True)]

        run = jax.jit(update, donate_argnums=0) if stage else update

        def step(*batch: Any) -> Any:
            loss, state[0] = run(state[0], *batch)
            jax.block_until_ready(state[0])
            return loss

        return step

    return _words(task, jnp.array, make)


def autograd(task: Task) -> Mapping[str, Any]:
    import autograd

    xp = task.operations["autograd"]()

    def make(parameters: Arrays) -> Step:
        def step(*batch: Any) -> Any:
            loss, gradients = autograd.value_and_grad(lambda p: task.loss(xp, p, batch))(parameters)
            for parameter, gradient in zip(parameters, gradients, strict=True):
                parameter[...] -= task.rate * gradient
            return loss

        return step

    return _words(task, np.array, make)


def tensorflow(task: Task, stage: bool = True, **options: Any) -> Mapping[str, Any]:
    import tensorflow as tf

    xp = task.operations["tensorflow"]()

    def make(parameters: Arrays) -> Step:
        variables = [tf.Variable(p) for p in parameters]

        def step(*batch: Any) -> Any:
            with tf.GradientTape() as tape:
                loss = task.loss(xp, [v.read_value() for v in variables], batch)
            for variable, gradient in zip(variables, tape.gradient(loss, variables), strict=True):
                variable.assign_sub(task.rate * gradient)
            return loss

        return tf.function(step, autograph=False, **options) if stage else step

    return _words(task, tf.constant, make)


def libraries(task: Task) -> list[Library]:
    """All that can run the task, each in a process of its own: peak memory is a process's."""
    eager = ("first call",)
    found = [
        Library("limelight", "limelight", lambda: limelight(task, stage=False), lacks=eager),
        Library("variables", "limelight", lambda: limelight(task, stage=False, read_once=False), lacks=eager),
        Library("limelight plan", "limelight", lambda: limelight(task, "plan")),
        Library("limelight loops", "limelight", lambda: limelight(task, "loops"), needs=("limelight_native",)),
        Library("limelight xla", "limelight", lambda: limelight(task, "xla"), patience=1, needs=("jax",)),
        Library("tf eager", "tensorflow", lambda: tensorflow(task, False), lacks=eager),
        Library("tf function", "tensorflow", lambda: tensorflow(task)),
        Library("tf XLA", "tensorflow", lambda: tensorflow(task, jit_compile=True), patience=1),
        Library("jax", "jax", lambda: jax(task), patience=1),
        Library("torch", "torch", lambda: torch(task), lacks=eager),
        Library("torch compile", "torch", lambda: torch(task, True), patience=2),
        Library("autograd", "autograd", lambda: autograd(task), lacks=eager),
    ]
    return [library for library in found if library.package in task.operations]


# Memory


def _peak(run: Callable[[], object], small: Callable[[], object]) -> int:
    """The most bytes that the process takes in the third run above what it takes before the first one.

    What compilers keep of their first program is no part of that, since the small step comes before; what an executor
    keeps for the next run is.
    """
    small()
    _trim()
    before = _resident("VmRSS")
    for _ in range(2):
        run()
    _trim()
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the most is counted from now on
    run()
    return _resident("VmHWM") - before


def _trim() -> None:
    """Gives back what nobody uses."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)


def _resident(name: str) -> int:
    """Bytes of memory that the process has: now (VmRSS), or at most (VmHWM). Of Linux."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))
