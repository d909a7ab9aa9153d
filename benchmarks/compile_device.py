"""ResNet-50 on a device that only compiles: op by op, and staged (the paper's Table 1).

    python benchmarks/compile_device.py [--quick] [--sizes 1,4] [--peers jax] [--minutes 10] [--out FOLDER]

The device is XLA:0, a TPU or GPU where JAX has one and its CPU client elsewhere. Op by op, each op is a program of its
own, compiled where it is met first; staged, the step is one program. JAX without and with `jit` is beside it.

Images are of 32 x 32, and of 224 x 224: a CPU works on the latter for so long that it hides what starting a program
takes, which is what Table 1 shows of a TPU, where a step took a second at every batch size. The tables below count in
three ways: runs of ten steps, the first of a process, in which building a staged step does not count, and compiling
ops, which is how they are run, does; the same with all counted; and the steady state. Of the processors' time of a
step, that of the calling thread is dispatch (with the arithmetic of very small ops, which XLA does there), the rest
arithmetic.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import evaluation
import report
import resnet50
import training
from measure import Library, Measured, Row, typical
from report import Bar

STEPS_OF_A_RUN = 10
SIZES = resnet50.SIZES
PIXELS = (32, resnet50.PIXELS)
STEADY, FIRST, CALLING = "steady state", "first call", "the calling thread, of a step"
OURS, STAGED = "op by op", "staged"


def _of(pixels: int, group: str) -> str:
    return f"{group}, {pixels} x {pixels}"


def _rows(size: int, pixels: int) -> list[Row]:
    """The first call, the steady state and the calling thread's part of it."""
    step = resnet50.row(size, pixels)
    calling = f"{CALLING}, {step.name}"
    return [
        resnet50.first(step)._replace(group=_of(pixels, FIRST)),
        step._replace(group=_of(pixels, STEADY)),
        step._replace(name=calling, group=_of(pixels, CALLING), code="calling(data)", figure=True, unit="s"),
    ]


STEPS = [row for size in SIZES for pixels in PIXELS for row in _rows(size, pixels)]
ROWS = [*STEPS, evaluation.LOSS]
NAMES = {pixels: tuple(resnet50.row(size, pixels).name for size in SIZES) for pixels in PIXELS}
BARS = [
    Bar(f"steady state, {pixels} x {pixels}: staged at least 10 times as fast", NAMES[pixels], OURS, 0.1, ours=STAGED)
    for pixels in PIXELS
]


def _measured(words: Mapping[str, Any]) -> Mapping[str, Any]:
    """With `calling(data)`: the seconds of processor time of the thread that calls a step."""
    step: Callable[[Any], float] = words["step"]

    def calling(data: Any) -> float:
        start = time.thread_time()
        step(data)
        return time.thread_time() - start

    return {**words, "calling": calling}


def _ours(stage: bool) -> Mapping[str, Any]:
    return _measured(training.limelight(resnet50.TASK, "xla" if stage else "", stage=stage, device="XLA:0"))


def _jax(stage: bool) -> Mapping[str, Any]:
    return _measured(training.jax(resnet50.TASK, stage=stage))


LIBRARIES = [
    Library(OURS, "limelight", functools.partial(_ours, False), needs=("jax",)),
    Library(STAGED, "limelight", functools.partial(_ours, True), needs=("jax",)),
    Library("jax op by op", "jax", functools.partial(_jax, False)),
    Library("jax jit", "jax", functools.partial(_jax, True)),
]


def more(measured: Measured, libraries: Sequence[Library], rows: Sequence[Row]) -> list[str]:
    """Examples a second as runs are counted, with ratios, for images of each size; then where the time goes."""
    lines: list[str] = []
    for pixels in PIXELS:
        steps = [row for row in rows if row.group == _of(pixels, STEADY)]
        if steps:
            lines += [*_runs(measured, libraries, steps, pixels), "", *_shares(measured, libraries, steps, pixels), ""]
    return lines


def _runs(measured: Measured, libraries: Sequence[Library], steps: Sequence[Row], pixels: int) -> list[str]:
    counted = {
        f"{STEPS_OF_A_RUN} steps, building not counted": lambda first, step, staged: step if staged else first,
        f"{STEPS_OF_A_RUN} steps, all counted": lambda first, step, staged: first,
        "steady state": lambda first, step, staged: step,
    }
    lines = [[f"examples/s, {pixels} x {pixels}", *[row.name.partition(" of ")[0] for row in steps]]]
    for way, begin in counted.items():
        speeds = {library.name: [_speed(measured, library.name, row, begin) for row in steps] for library in libraries}
        lines += [[f"{way}: {name}", *[_shown(value) for value in values]] for name, values in speeds.items()]
        pairs = zip(speeds.get(OURS, ()), speeds.get(STAGED, ()), strict=False)
        lines.append([f"{way}: staged / op by op", *[_shown(b / a if a and b else None) for a, b in pairs]])
    return report.aligned([line for line in lines if len(line) == len(lines[0])])


def _speed(measured: Measured, library: str, row: Row, begin: Callable[..., float]) -> float | None:
    first, step = (typical(measured.wall, library, name) for name in (f"first call, {row.name}", row.name))
    if first is None or step is None:
        return None
    seconds = begin(first, step, "op by op" not in library) + (STEPS_OF_A_RUN - 1) * step
    return row.size * STEPS_OF_A_RUN / seconds


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"


def _shares(measured: Measured, libraries: Sequence[Library], steps: Sequence[Row], pixels: int) -> list[str]:
    """Of the processors' time of ten steps from nothing: compiling and tracing, dispatch, arithmetic."""
    lines = [[f"share of {STEPS_OF_A_RUN} steps, {pixels} x {pixels}", "s", "compiling", "dispatch", "arithmetic"]]
    for row in steps:
        for library in libraries:
            names = (f"first call, {row.name}", row.name, f"{CALLING}, {row.name}")
            first, step, calling = (typical(measured.processor, library.name, name) for name in names)
            if first is None or step is None or calling is None:
                continue
            parts = (max(first - step, 0.0), STEPS_OF_A_RUN * calling, STEPS_OF_A_RUN * max(step - calling, 0.0))
            cells = [f"{part / sum(parts):.0%}" for part in parts]
            lines.append([f"{row.name.partition(' of ')[0]}, {library.name}", f"{sum(parts):.1f}", *cells])
    return report.aligned(lines)


QUICK = [*_rows(1, PIXELS[0]), evaluation.LOSS]
EVALUATION = evaluation.Evaluation(
    "compile_device", LIBRARIES, ROWS, QUICK, BARS, rounds=3, minutes=10, sizes=SIZES, more=more
)


if __name__ == "__main__":
    evaluation.run(EVALUATION, __doc__)
