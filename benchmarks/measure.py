"""Fair timing of several libraries on a shared machine.

Libraries that would disturb one another (thread pools, allocators) run in processes of their own, and the processes
take turns: in each round every library measures every row once, one after the other, so that a busy moment of the
machine strikes all of them alike. Ratios are taken within a round, and their median is what counts.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import importlib.util
import math
import multiprocessing
import os
import signal
import statistics
import sys
import time
import timeit
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

SLICE = 0.004
"""Seconds that one measurement takes, at least."""
MOST = 20_000
"""Calls in one measurement, at most."""

Run = Callable[[int], tuple[float, float]]
"""From a number of calls to the seconds they took together: by the clock, and of all processors."""
TIME_IS_OVER = "the time given was over"
INTERRUPTED = "the run was interrupted"
_CHOOSE_KERNELS = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")


def fair_environment() -> None:
    """Starts the script anew without the variables that hold OpenBLAS to other kernels than the processor's own.

    OpenBLAS reads them when NumPy is imported, so that it is too late to unset them here.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # TensorFlow's greetings would break into the table
    os.environ["LIMELIGHT_COMPILATION_CACHE"] = "0"  # a first call is to compile, as that of the peers does
    if any(name in os.environ for name in _CHOOSE_KERNELS):
        for name in _CHOOSE_KERNELS:
            os.environ.pop(name, None)
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


class Row(NamedTuple):
    """One line of the table: the code to time, in words that each library's namespace gives a meaning to.

    The code of a `block` is the name of a function that makes about a number of calls and returns how many; other code
    is one call. A `once` row is what happens the first time, and so is not repeated. The value of a `figure`'s code is
    itself what is wanted, not the time that it takes.
    """

    name: str
    group: str
    code: str
    block: bool = False
    once: bool = False
    finish: bool = False  # wait for the result, where the library computes behind the caller's back
    figure: bool = False
    whole: bool = False  # long enough to be called once a round, with nothing before it
    setup: str = "pass"  # is run before, and not timed
    size: float = 0  # of the workload: where it stands on a plot, and examples a call
    unit: str = "ms"  # see `report.UNITS`


class Library(NamedTuple):
    """What a row's code means in one library; `words` is called in the process that measures."""

    name: str
    package: str
    words: Callable[[], Mapping[str, Any]]
    beside: str = ""  # the library in whose process it is measured
    finish: str = "{}"  # how to wait for a result
    lacks: tuple[str, ...] = ()  # rows, or groups of rows, that it has nothing for
    patience: int = 0  # 1: compiles for long, so not in a quick run; 2: for minutes, so in no run by itself
    needs: tuple[str, ...] = ()  # other packages that must be there


def installed(wanted: str | None, libraries: Sequence[Library]) -> list[Library]:
    """The libraries to measure; NumPy and limelight always."""
    names = None if wanted is None else {"numpy", "limelight", *filter(None, wanted.split(","))}
    unknown = (names or set()) - {"numpy"} - {library.package for library in libraries}
    if unknown:
        sys.exit(f"no such peer: {', '.join(sorted(unknown))}; there are {_listed(libraries)}")
    chosen = [library for library in libraries if names is None or library.package in names]
    return [library for library in chosen if not absent(library)]


def absent(library: Library) -> list[str]:
    """The packages that it needs and that are not installed."""
    return [name for name in (library.package, *library.needs) if importlib.util.find_spec(name) is None]


def _listed(libraries: Sequence[Library]) -> str:
    *most, last = sorted({library.package for library in libraries} - {"numpy", "limelight"})
    return f"{', '.join(most)} and {last}" if most else last


def runner(row: Row, words: Mapping[str, Any], finish: str = "{}") -> Run:
    """The row as something to time."""
    if row.figure:
        compute = f"{row.setup}\nfigure = {row.code}"

        def found(number: int) -> tuple[float, float]:
            names = dict(words)
            exec(compute, names)
            return (float(names["figure"]) * number,) * 2

        return found
    if row.block:
        block: Callable[[int], int] = words[row.code]

        def run(number: int) -> tuple[float, float]:
            start, processor = time.perf_counter(), time.process_time()
            done = block(number)
            wall, processor = time.perf_counter() - start, time.process_time() - processor
            return wall * number / done, processor * number / done

        return run
    code = finish.format(row.code) if row.finish else row.code
    timer = timeit.Timer(code, row.setup, timer=_both_clocks, globals=dict(words))

    def both(number: int) -> tuple[float, float]:
        took: Any = timer.timeit(number)
        return took.real, took.imag

    return both


def _both_clocks() -> Any:
    """The clock, and the time of all processors: as one number, since `timeit` subtracts what its timer returns."""
    return complex(time.perf_counter(), time.process_time())


def calibrate(run: Run, limit: float = SLICE) -> int:
    """How many calls fill a slice of time, found by as many: until then, nothing is measured, in any library.

    The first call is apart, since it may trace and compile, and so tells nothing of the others: it would have the next
    few taken for the row, in which libraries still learn the arguments, and one that compiles for long measured by a
    single call.
    """
    run(1)
    number = 1
    while (wall := run(number)[0]) < limit and number < MOST:
        number = min(number * 4, MOST)
    if wall > 100 * limit:
        return 1
    return max(1, min(MOST, int(number * limit / max(min(run(number)[0], run(number)[0]), 1e-9))))


def _words_of(library: Library) -> Mapping[str, Any]:
    """The library's words; where it cannot be set up, each of its rows says why."""
    try:
        return library.words()
    except Exception as error:
        raise UnreadyError(f"{type(error).__name__}: {error}") from error


class UnreadyError(Exception):
    """A library could not be imported or set up."""


def _serve(module: str, pipe: Connection) -> None:
    """The loop of a measuring process: answers (library, row) with seconds a call, or with an error's text."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the script, which shows what there is
    libraries = {library.name: library for library in importlib.import_module(module).LIBRARIES}
    words: dict[str, Mapping[str, Any]] = {}
    numbers: dict[tuple[str, str], tuple[Run, int]] = {}
    gc.disable()
    for name, row in iter(pipe.recv, None):
        try:
            if name not in words:
                words[name] = _words_of(libraries[name])
            if (name, row.name) not in numbers:
                run = runner(row, words[name], libraries[name].finish)
                numbers[name, row.name] = (run, 1 if row.once or row.figure or row.whole else calibrate(run))
            run, number = numbers[name, row.name]
            gc.collect(1)
            wall, processor = run(number)
            pipe.send((wall / number, processor / number))
        except Exception as error:  # noqa: BLE001 # a peer that cannot do a row must not end the run
            pipe.send(f"{type(error).__name__}: {error}".splitlines()[0][:160])


class Worker:
    """A process that measures the rows of some libraries, when asked."""

    def __init__(self, module: str) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(module, theirs), daemon=True)
        self._process.start()
        theirs.close()
        self._waited_for = False

    def measure(self, library: str, row: Row, seconds: float = math.inf) -> tuple[float, float] | str | None:
        """Seconds a call, by the clock and of all processors, or why there is no answer; None: not in `seconds`."""
        try:
            self._pipe.send((library, row))
            self._waited_for = True
            if seconds < math.inf and not self._pipe.poll(max(seconds, 0.0)):
                return None
            answer: tuple[float, float] | str = self._pipe.recv()
            self._waited_for = False
        except (EOFError, BrokenPipeError):
            return "its process died"
        return answer

    def close(self) -> None:
        """Ends the process: at once where it still measures."""
        if not self._waited_for:
            with contextlib.suppress(BrokenPipeError):
                self._pipe.send(None)
            self._process.join(10)
        if self._process.is_alive():
            self._process.kill()


Samples = dict[tuple[str, str], list[float]]
"""Seconds a call of each round, by (library, row)."""


class Measured(NamedTuple):
    """What came of the rounds: seconds by the clock, seconds of all processors, and reasons for what could not be.

    `missing` is what nobody tried, or waited for: no failure, but to be said.
    """

    wall: Samples
    processor: Samples
    failed: dict[tuple[str, str], str]
    missing: dict[tuple[str, str], str]


def interleave(
    libraries: Sequence[Library],
    rows: Sequence[Row],
    rounds: int,
    module: str,
    say: Callable[[str], None] = str,
    seconds: float = math.inf,
    patience: float = math.inf,
) -> Measured:
    """Measures everything `rounds` times, the libraries in turn.

    Args:
        libraries: what is measured.
        rows: in this order.
        rounds: how often.
        module: whose LIBRARIES has these.
        say: is told what is measured next.
        seconds: after them it ends, in the middle of a round as well, and of a row.
        patience: seconds for one row; a library that needs more is left out from then on.

    Returns:
        What there is by then; an interrupt (Ctrl-C) ends it in the same way.
    """
    end = time.monotonic() + seconds
    homes = {library.name: library.beside or library.name for library in libraries}
    workers = {home: Worker(module) for home in dict.fromkeys(homes.values())}
    found = Measured({}, {}, {}, {})
    stopped: dict[str, str] = {}  # homes whose process is busy with what nobody waits for
    try:
        for turn, row, library in _turns(libraries, rows, rounds):
            key, home = (library.name, row.name), homes[library.name]
            left = end - time.monotonic()
            if key in found.failed:
                continue
            if left <= 0 or home in stopped:
                if key not in found.wall:
                    found.missing[key] = stopped.get(home, TIME_IS_OVER)
                continue
            say(f"round {turn + 1} of {rounds}: {row.name}, {library.name}")
            answer = workers[home].measure(library.name, row, min(left, patience))
            if answer is None:
                stopped[home] = TIME_IS_OVER if left <= patience else f"{row.name} took more than {patience:.0f} s"
                if key not in found.wall:
                    found.missing[key] = stopped[home]
            elif isinstance(answer, str):
                found.failed[key] = answer
            else:
                for samples, figure in zip((found.wall, found.processor), answer, strict=True):
                    samples.setdefault(key, []).append(figure)
    except KeyboardInterrupt:
        todo = [(library.name, row.name) for _, row, library in _turns(libraries, rows, 1)]
        found.missing.update({key: INTERRUPTED for key in todo if key not in found.wall and key not in found.failed})
    finally:
        for worker in workers.values():
            worker.close()
    return found


def _turns(libraries: Sequence[Library], rows: Sequence[Row], rounds: int) -> Iterator[tuple[int, Row, Library]]:
    """What is measured, in order: the round, the row, the library, without what a library has nothing for."""
    for turn in range(rounds):
        for row in rows:
            for library in _in_turn(libraries, turn):
                if not ({row.name, row.group} & {*library.lacks} or (row.once and turn)):
                    yield turn, row, library


def _in_turn(libraries: Sequence[Library], turn: int) -> Iterable[Library]:
    """Nobody is always first: the order turns around from round to round."""
    return libraries if turn % 2 == 0 else list(reversed(libraries))


def typical(samples: Samples, library: str, row: str) -> float | None:
    """The median of the seconds a call, None where there is none."""
    found = samples.get((library, row))
    return statistics.median(found) if found else None


def ratio(samples: Samples, row: str, one: str, other: str) -> float | None:
    """The median over the rounds of `one`'s time by `other`'s."""
    pairs = list(zip(samples.get((one, row), ()), samples.get((other, row), ()), strict=False))
    return statistics.median([mine / theirs for mine, theirs in pairs]) if pairs else None
