"""What the measurements say: a table, ratios, bars met or missed, a plot, a file of numbers."""

from __future__ import annotations

import json
import math
import os
import platform
import time
from collections.abc import Iterable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

from measure import Library, Row, Samples, ratio, typical

US = "limelight"


class Bar(NamedTuple):
    """A promise: over the rows, our time divided by theirs stays below a limit."""

    text: str
    rows: tuple[str, ...]
    other: str
    limit: float
    mean: bool = False  # the geometric mean of the rows counts, not the worst of them


def verdict(bar: Bar, samples: Samples, ours: str = US) -> str:
    """The bar with PASS, FAIL or SKIP before it and what was measured behind it."""
    found = {row: ratio(samples, row, ours, bar.other) for row in bar.rows}
    known = {row: value for row, value in found.items() if value is not None}
    if not known:
        return f"SKIP  {bar.text}: not measured"
    if bar.mean:
        value, where = geometric_mean(known.values()), f"the mean of {len(known)} rows"
    else:
        where, value = max(known.items(), key=lambda item: item[1])
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


def aligned(lines: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    text = ["  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]) for line in lines]
    return [text[0], "-" * len(text[0]), *text[1:]]


def machine(packages: Iterable[str]) -> dict[str, Any]:
    """What was measured on, and with which versions."""
    versions = {}
    for package in dict.fromkeys(packages):
        try:
            versions[package] = version("tensorflow-cpu" if package == "tensorflow" else package)
        except PackageNotFoundError:
            continue
    return {
        "date": time.strftime("%Y-%m-%d"),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "load": [round(load, 2) for load in os.getloadavg()] if hasattr(os, "getloadavg") else None,
        "versions": versions,
    }


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
        f"{versions}; load before: {facts['load']}"
    )


def save(
    file: str, facts: dict[str, Any], samples: Samples, failed: dict[tuple[str, str], str], verdicts: list[str]
) -> None:
    """All samples, in seconds a call, as JSON."""
    found: dict[str, dict[str, list[float]]] = {}
    for (library, row), values in samples.items():
        found.setdefault(row, {})[library] = values
    problems = [{"library": library, "row": row, "problem": text} for (library, row), text in failed.items()]
    content = {"machine": facts, "seconds": found, "failed": problems, "bars": verdicts}
    Path(file).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def plot(file: str, samples: Samples, libraries: Sequence[Library], rows: Sequence[Row]) -> str | None:
    """Draws each library's time over NumPy's; returns why not, where there is no matplotlib."""
    try:
        import matplotlib as mpl

        mpl.use("agg")
        from matplotlib import pyplot
    except ImportError:
        return "no plot: matplotlib is not installed"
    shown = [row for row in rows if typical(samples, "numpy", row.name) is not None]
    figure, axes = pyplot.subplots(figsize=(9, 0.36 * len(shown) + 1.5), layout="constrained")
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
    figure.savefig(file, dpi=130)
    return None
