"""Every common op on tiny arrays beside NumPy's own call: microseconds, the ratio, and the ratio with a tape recording.

    python benchmarks/tiny.py [WORDS...]

The words choose rows that contain one of them. NumPy and limelight take turns in one process; a ratio is the median of
fifteen rounds. Sorted by ratio, the dearest first: what is dearest is a view or a constant, for which NumPy takes less
time than Python needs to make any object.
"""

from __future__ import annotations

import gc
import statistics
import sys
import timeit
from typing import Any

import numpy as np

import limelight as ll

ROWS = """
a+b | a*2.0 | 1-a | -a | abs(a) | a**2 | a/b | a>b | a@b | m@m | a[2:7] | a[3] | r[0] | r[:,1:3] | a[i] | a[k] | r.T
maximum(a,b) | exp(a) | sqrt(a) | tanh(a) | square(a) | floor(a) | isnan(a) | isfinite(a) | logical_not(k) | matmul(m,m)
sum(a) | sum(r,axis=0) | mean(a) | max(a) | argmax(a) | std(a) | var(a) | all(k) | any(k) | where(k,a,b) | take(a,i)
reshape(a,(2,5)) | matrix_transpose(r) | expand_dims(a,axis=0) | flip(a) | roll(a,2) | tile(a,(2,)) | repeat(a,2)
stack([a,b]) | broadcast_to(a,(3,10)) | outer(a,b) | diag(a) | zeros((2,3)) | ones((2,3)) | full((2,3),2.0) | eye(3)
zeros_like(a) | ones_like(a) | arange(10) | linspace(0,1,10) | sort(a) | argsort(a) | tril(m) | clip(a,0.2,0.5)
"""
OTHERWISE = {  # (limelight's words, NumPy's)
    "a.reshape((2,5))": ("a.reshape((2,5))", "a.reshape((2,5))"),
    "a.sum()": ("a.sum()", "a.sum()"),
    "a.astype(float64)": ("a.astype(xp.float64)", "a.astype('f8')"),
    "concat([a,b])": ("xp.concat([a,b])", "xp.concatenate([a,b])"),
    "cumulative_sum(a)": ("xp.cumulative_sum(a)", "xp.cumsum(a)"),
    "constant(1.0)": ("xp.constant(1.0)", "xp.array(1.0)"),
    "constant(array)": ("xp.constant(array)", "xp.array(array)"),
    "random.normal((10,))": ("xp.random.normal((10,))", "draw.standard_normal(10, dtype='f4')"),
    "random.uniform((10,))": ("xp.random.uniform((10,))", "draw.random(10, dtype='f4')"),
}
ROUNDS, CALLS = 15, 300


def words() -> tuple[dict[str, Any], dict[str, Any]]:
    """The operands by name, for limelight and for NumPy."""
    a, b = np.random.default_rng(0).uniform(0.1, 1.0, (2, 10)).astype(np.float32)
    arrays = {"a": a, "b": b, "m": a[:4].reshape(2, 2).copy(), "r": a.reshape(2, 5).copy(), "k": a > 0.5}
    arrays["i"] = np.array([3, 1, 2])
    tensors = {name: ll.constant(array) for name, array in arrays.items()}
    return tensors | {"xp": ll, "array": a}, arrays | {"xp": np, "array": a, "draw": np.random.default_rng(0)}


def rows() -> dict[str, tuple[str, str]]:
    found = {}
    for text in ROWS.replace("\n", "|").split("|"):
        word = text.strip()
        code = f"xp.{word}" if word[:2].isalpha() and "(" in word and not word.startswith("abs") else word
        if word:
            found[word] = (code, code)
    return found | OTHERWISE


def measured(ours: timeit.Timer, theirs: timeit.Timer, watched: list[Any]) -> tuple[float, float, float, float]:
    """Seconds a call of NumPy and of limelight, the ratio, and the ratio while a tape records."""
    plain, numpy, recorded = [], [], []
    for _ in range(ROUNDS):
        numpy.append(theirs.timeit(CALLS) / CALLS)
        plain.append(ours.timeit(CALLS) / CALLS)
        with ll.GradientTape() as tape:
            tape.watch(watched)
            recorded.append(ours.timeit(CALLS) / CALLS)
    ratios = [[mine / his for mine, his in zip(times, numpy, strict=True)] for times in (plain, recorded)]
    return min(numpy), min(plain), statistics.median(ratios[0]), statistics.median(ratios[1])


def main(chosen: list[str]) -> None:
    tensors, arrays = words()
    gc.disable()
    found = []
    for word, (ours, theirs) in rows().items():
        if not chosen or any(part in word for part in chosen):
            timers = timeit.Timer(ours, globals=tensors), timeit.Timer(theirs, globals=arrays)
            for timer in timers:
                timer.timeit(3)
            found.append((word, *measured(*timers, [tensors[name] for name in "abmr"])))
    print(f"{'':26s}{'NumPy, us':>10s}{'limelight':>10s}{'ratio':>8s}{'recorded':>10s}")
    for word, numpy, plain, ratio, recorded in sorted(found, key=lambda row: -row[3]):
        print(f"{word:26s}{numpy * 1e6:10.2f}{plain * 1e6:10.2f}{ratio:8.2f}{recorded:10.2f}")
    within = [sum(row[3] <= 3 for row in found), sum(row[4] <= 6 for row in found)]
    means = [statistics.geometric_mean([row[i] for row in found]) for i in (3, 4)]
    print(f"\n{within[0]} of {len(found)} rows within 3 times NumPy, mean {means[0]:.2f};")
    print(f"{within[1]} within 6 times with a tape recording, mean {means[1]:.2f}")


if __name__ == "__main__":
    main(sys.argv[1:])
