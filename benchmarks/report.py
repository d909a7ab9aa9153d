"""What the measurements say: a table, ratios, bars met or missed, a plot, a file of numbers."""

from __future__ import annotations

import contextlib
import importlib
import json
import math
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

from measure import Library, Measured, Row, Samples, ratio, typical

US = "limelight"
UNITS: dict[str, Callable[[float, float], float]] = {
    "us": lambda seconds, size: seconds * 1e6,
    "ms": lambda seconds, size: seconds * 1e3,
    "s": lambda seconds, size: seconds,
    "examples/s": lambda seconds, size: size / seconds,
    "MB": lambda nbytes, size: nbytes / 1e6,
    "": lambda value, size: value,
}
"""From what was measured of a row, and its size, to what is shown."""


class Bar(NamedTuple):
    """A promise: over the rows, our time divided by theirs stays below a limit."""

    text: str
    rows: tuple[str, ...]
    other: str
    limit: float
    mean: bool = False  # the geometric mean of the rows counts, not the worst of them
    ours: str = US


def verdict(bar: Bar, samples: Samples) -> str:
    """The bar with PASS, FAIL or SKIP before it and what was measured behind it."""
    found = {row: ratio(samples, row, bar.ours, bar.other) for row in bar.rows}
    known = {row: value for row, value in found.items() if value is not None}
    if not known:
        return f"SKIP  {bar.text}: not measured"
    if bar.mean:
        value, where = geometric_mean(known.values()), f"the mean of {len(known)} rows"
    else:
        where, value = max(known.items(), key=lambda item: item[1])
        where += "" if len(known) == len(found) else f"; {len(known)} of {len(found)} rows measured"
    return f"{'PASS' if value <= bar.limit else 'FAIL'}  {bar.text}: {value:.2f} ({where})"


def geometric_mean(values: Iterable[float]) -> float:
    given = list(values)
    return math.exp(sum(map(math.log, given)) / len(given))


def show_seconds(seconds: float | None) -> str:
    """A time in microseconds, or in milliseconds where they would be many."""
    if seconds is None:
        return "-"
    return (
        f"{seconds * 1e3:.0f} ms"
        if seconds >= 0.02
        else f"{seconds * 1e6:.0f}"
        if seconds >= 1e-4
        else f"{seconds * 1e6:.2f}"
    )


def times(samples: Samples, libraries: Sequence[Library], rows: Sequence[Row]) -> list[str]:
    """Microseconds a call, the median of the rounds; limelight's ratio to NumPy beside it."""
    lines = [["microseconds a call", *(library.name for library in libraries), f"{US} / numpy"]]
    for row in rows:
        against = ratio(samples, row.name, US, "numpy")
        cells = [show_seconds(typical(samples, library.name, row.name)) for library in libraries]
        lines.append([row.name, *cells, "-" if against is None else f"{against:.2f}"])
    return aligned(lines)


def speedups(samples: Samples, libraries: Sequence[Library], rows: Sequence[Row]) -> list[str]:
    """How many times longer than limelight each of the others takes."""
    others = [library for library in libraries if library.name != US]
    lines = [[f"times {US}'s", *(library.name for library in others)]]
    lines += [[row.name, *(_times(ratio(samples, row.name, other.name, US)) for other in others)] for row in rows]
    for group in dict.fromkeys(row.group for row in rows):
        means = [[ratio(samples, row.name, other.name, US) for row in rows if row.group == group] for other in others]
        known = [[value for value in column if value is not None] for column in means]
        lines.append([f"mean, {group}", *(_times(geometric_mean(column) if column else None) for column in known)])
    return aligned(lines)


def _times(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"


def by_library(samples: Samples, libraries: Sequence[Library], rows: Sequence[Row]) -> list[str]:
    """A line for each library: the median of each row in its unit, with the least and the most where they differ."""
    named = [f"{row.name}, {row.unit}".removesuffix(", ") for row in rows]
    lines = [["", *named]]
    lines += [[library.name, *[spread(samples, library, row) for row in rows]] for library in libraries]
    return aligned(lines)


def spread(samples: Samples, library: Library, row: Row) -> str:
    found = samples.get((library.name, row.name))
    if not found:
        return "-"
    shown = [UNITS[row.unit](value, row.size) for value in found]
    if len(shown) == 1:
        return _number(shown[0])
    return f"{_number(statistics.median(shown))} ({_number(min(shown))}-{_number(max(shown))})"


def _number(value: float) -> str:
    """Three digits, or all before the point."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def aligned(lines: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    text = ["  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]) for line in lines]
    return [text[0], "-" * len(text[0]), *text[1:]]


def machine(packages: Iterable[str]) -> dict[str, Any]:
    """What was measured on, and with which versions."""
    versions = {package: _version(package) for package in dict.fromkeys(["numpy", *packages])}
    return {
        "date": time.strftime("%Y-%m-%d"),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "blas": _blas(),
        "load": load(),
        "versions": {package: number for package, number in versions.items() if number},
    }


def load() -> list[float] | None:
    return [round(load, 2) for load in os.getloadavg()] if hasattr(os, "getloadavg") else None


def _version(package: str) -> str:
    for name in (package, f"{package}-cpu"):
        with contextlib.suppress(PackageNotFoundError):
            return version(name)
    return str(getattr(importlib.import_module(package), "__version__", "")) if package == US else ""


def _blas() -> str:
    """Which kernels NumPy's matrix products run on, and on how many threads."""
    try:
        import numpy as np  # noqa: F401  # loads it
        from threadpoolctl import threadpool_info
    except ImportError:
        return "unknown (threadpoolctl is not installed)"
    pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    named = [f"{p['internal_api']} {p['version']}, {p.get('architecture')} ({p['num_threads']} threads)" for p in pools]
    return "; ".join(named) or "unknown"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown"
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")


def describe(facts: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in facts["versions"].items())
    return (
        f"{facts['date']}, {facts['processor']}, {facts['cores']} cores, {facts['system']}, {facts['python']}\n"
        f"{versions}\nBLAS of NumPy: {facts['blas']}; load before: {facts['load']}"
    )


def save(file: Path, facts: dict[str, Any], measured: Measured, verdicts: list[str]) -> None:
    """All samples, in seconds a call, as JSON."""
    problems = [{"library": library, "row": row, "problem": text} for (library, row), text in measured.failed.items()]
    missing = [{"library": library, "row": row, "reason": text} for (library, row), text in measured.missing.items()]
    content = {
        "machine": facts,
        "seconds": _by_row(measured.wall),
        "processor seconds": _by_row(measured.processor),
        "failed": problems,
        "missing": missing,
        "bars": verdicts,
    }
    file.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def _by_row(samples: Samples) -> dict[str, dict[str, list[float]]]:
    found: dict[str, dict[str, list[float]]] = {}
    for (library, row), values in samples.items():
        found.setdefault(row, {})[library] = values
    return found


def pyplot() -> Any:
    """matplotlib's, drawing text as text and the same bytes for the same numbers; None where it is not installed."""
    try:
        import matplotlib as mpl
    except ImportError:
        return None
    mpl.use("agg")
    mpl.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "limelight", "figure.facecolor": "white"}
    from matplotlib import pyplot

    return pyplot


def curves(file: Path, samples: Samples, libraries: Sequence[Library], rows: Sequence[Row]) -> str:
    """Draws each group of rows against their size, a line for each library, with bars from the least to the most."""
    drawn = pyplot()
    if drawn is None:
        return "no plot: matplotlib is not installed"
    groups = {row.group: [other for other in rows if other.group == row.group] for row in rows if row.size}
    figure, many = drawn.subplots(1, len(groups), figsize=(5.2 * len(groups), 4.6), layout="constrained", squeeze=False)
    for axes, (group, members) in zip(many[0], groups.items(), strict=True):
        for i, library in enumerate(libraries):
            points = [
                _point(samples[library.name, row.name], row) for row in members if (library.name, row.name) in samples
            ]
            if points:
                x, y, below, above = zip(*points, strict=True)
                style = {"color": f"C{i % 10}", "marker": "os^Dvx*Ph<>"[i % 11], "markersize": 5, "linewidth": 1.2}
                axes.errorbar(x, y, (below, above), label=library.name, **style)
        axes.set(xscale="log", yscale="log", title=group, xlabel="size", ylabel=members[0].unit)
        axes.set_xticks([row.size for row in members], [f"{row.size:g}" for row in members])
        axes.minorticks_off()
        axes.grid(alpha=0.3)
    figure.legend(*_labels(many[0]), loc="outside lower center", ncols=5, fontsize="small", frameon=False)
    figure.savefig(file, metadata={"Date": None})
    return f"wrote {file}"


def _labels(many: Iterable[Any]) -> tuple[list[Any], list[str]]:
    """One entry of the legend for each library, whichever plots it is on."""
    found = {label: handle for axes in many for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    return list(found.values()), list(found)


def _point(values: list[float], row: Row) -> tuple[float, float, float, float]:
    """Where a line goes through, and how far the bar goes down and up."""
    shown = [UNITS[row.unit](value, row.size) for value in values]
    middle = statistics.median(shown)
    return row.size, middle, middle - min(shown), max(shown) - middle


def dots(file: Path, samples: Samples, libraries: Sequence[Library], rows: Sequence[Row]) -> str:
    """Draws each library's time over NumPy's."""
    drawn = pyplot()
    if drawn is None:
        return "no plot: matplotlib is not installed"
    shown = [row for row in rows if typical(samples, "numpy", row.name) is not None]
    figure, axes = drawn.subplots(figsize=(9, 0.36 * len(shown) + 1.5), layout="constrained")
    for marker, library in zip("os^Dvx*", libraries, strict=False):
        points = [(ratio(samples, row.name, library.name, "numpy"), i) for i, row in enumerate(shown)]
        known = [(value, i) for value, i in points if value is not None]
        axes.scatter([value for value, _ in known], [i for _, i in known], marker=marker, label=library.name, s=36)
    axes.axvline(1, color="gray", linewidth=0.8)
    axes.set(xscale="log", xlabel="times NumPy's own time (less is better)", yticks=range(len(shown)))
    axes.set_yticklabels([row.name for row in shown])
    axes.set_ylim(len(shown) - 0.4, -0.6)
    axes.grid(axis="x", alpha=0.3)
    figure.legend(loc="outside upper center", ncols=len(libraries), fontsize="small", frameon=False)
    figure.savefig(file, metadata={"Date": None})
    return f"wrote {file}"
