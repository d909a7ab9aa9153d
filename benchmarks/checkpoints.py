"""Saving and restoring, beside safetensors alone, and torch.save and Orbax where they are installed.

    python benchmarks/checkpoints.py [--megabytes 1024] [--folder DIR]

Peers take turns in one run, since a disk is not the same from minute to minute; the median counts. Beside the time on
the clock stands the processor time of all threads, which is what counts where others use the machine. `fsync` says
whether what was written was on disk at the end. Each restore of large arrays, and each load, is a process of its own
that holds arrays of that size already, as a program that resumes does: in one process the second of two finds the
memory that the first has let go, and takes half the time. (Orbax needs its threads, and is not forked.)
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from safetensors.numpy import load_file, save_file

import limelight as ll


class Seconds(NamedTuple):
    """On the clock, and of processors."""

    clock: float
    processor: float


def seconds(run: Callable[[], object]) -> Seconds:
    begun, used = time.perf_counter(), time.process_time()
    kept = run()  # letting go of it is not part of it
    taken = Seconds(time.perf_counter() - begun, time.process_time() - used)
    del kept
    return taken


def middle(times: list[Seconds]) -> Seconds:
    """The median of each kind."""
    return Seconds(*map(statistics.median, zip(*times, strict=True)))


def in_a_process(run: Callable[[], object]) -> Seconds:
    """The seconds of a run in a process that was forked for it."""
    heard, said = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.write(said, json.dumps(seconds(run)).encode())
        finally:
            os._exit(0)
    os.close(said)
    with os.fdopen(heard) as lines:
        taken = Seconds(*json.load(lines))
    os.waitpid(child, 0)
    return taken


def medians(
    runs: dict[str, Callable[[], object]], repeats: int, measure: Callable[[Callable[[], object]], Seconds] = seconds
) -> dict[str, Seconds]:
    """The median of each, which take turns."""
    taken: dict[str, list[Seconds]] = {name: [] for name in runs}
    for _ in range(repeats):
        for name, run in runs.items():
            taken[name].append(measure(run))
    return {name: middle(times) for name, times in taken.items()}


def flushed(path: Path) -> None:
    fd = os.open(path, os.O_RDWR)
    os.fsync(fd)
    os.close(fd)


def large(megabytes: int, folder: Path, repeats: int) -> None:
    count = 16
    arrays = {f"a{i}": np.random.default_rng(i).random(megabytes * 2**18 // count, np.float32) for i in range(count)}
    checkpoint = ll.Checkpoint(**{name: ll.Variable(array) for name, array in arrays.items()})
    ours, theirs = folder / "ours.safetensors", folder / "theirs.safetensors"

    def peer_and_flush() -> None:
        save_file(arrays, theirs)
        flushed(theirs)

    saves: dict[str, Callable[[], object]] = {
        "safetensors.numpy.save_file": lambda: save_file(arrays, theirs),
        "safetensors.numpy.save_file, then fsync": peer_and_flush,
        "limelight (with fsync)": lambda: checkpoint.write(ours),
    }
    loads: dict[str, Callable[[], object]] = {
        "safetensors.numpy.load_file": lambda: load_file(theirs),
        "limelight": lambda: checkpoint.restore(ours),
    }
    add_torch(arrays, folder, saves, loads)
    peer_and_flush(), checkpoint.write(ours)
    loaded = medians(loads, repeats, in_a_process)
    with_threads: dict[str, Callable[[], object]] = {}
    add_orbax(arrays, folder, saves, with_threads)
    show(f"saving {megabytes} MB", medians(saves, repeats), "safetensors.numpy.save_file, then fsync")
    show(f"restoring {megabytes} MB", loaded | medians(with_threads, repeats), "safetensors.numpy.load_file")
    stall(checkpoint, arrays, folder)


def add_torch(arrays: Any, folder: Path, saves: Any, loads: Any) -> None:
    try:
        torch = importlib.import_module("torch")
    except ImportError:
        return
    tensors, path = {name: torch.from_numpy(array) for name, array in arrays.items()}, folder / "torch.pt"
    saves["torch.save"] = lambda: torch.save(tensors, path)
    torch.save(tensors, path)
    loads["torch.load"] = lambda: torch.load(path, weights_only=True)


def add_orbax(arrays: Any, folder: Path, saves: Any, loads: Any) -> None:
    try:
        orbax = importlib.import_module("orbax.checkpoint")
    except ImportError:
        return
    checkpointer, path = orbax.PyTreeCheckpointer(), folder / "orbax"
    saves["orbax.checkpoint"] = lambda: checkpointer.save(path, arrays, force=True)
    checkpointer.save(path, arrays, force=True)
    loads["orbax.checkpoint"] = lambda: checkpointer.restore(path)


def stall(checkpoint: Any, arrays: Any, folder: Path) -> None:
    """How long a step waits for `background=True`, beside one copy of the data."""
    copy = middle([seconds(lambda: [x.copy() for x in arrays.values()]) for _ in range(3)])
    waited = []
    for _ in range(3):
        waited.append(seconds(lambda: checkpoint.write(folder / "ours.safetensors", background=True)))
        checkpoint.wait()
    show("stopping a step", {"one copy": copy, "limelight, background=True": middle(waited)}, "one copy")


def small(folder: Path, repeats: int) -> None:
    arrays = {f"v{i:05}": np.full(4, i, "float32") for i in range(10_000)}
    holder = ll.Module()
    holder.variables_by_name = {name: ll.Variable(array) for name, array in arrays.items()}
    checkpoint = ll.Checkpoint(model=holder)
    ours, theirs = folder / "small.safetensors", folder / "small_theirs.safetensors"
    checkpoint.write(ours), save_file(arrays, theirs)
    runs: dict[str, Callable[[], object]] = {
        "safetensors.numpy.save_file": lambda: save_file(arrays, theirs),
        "safetensors.numpy.load_file": lambda: load_file(theirs),
        "limelight, write": lambda: checkpoint.write(ours),
        "limelight, restore": lambda: checkpoint.restore(ours),
        "limelight, restore and assert_consumed": lambda: checkpoint.restore(ours).assert_consumed(),
    }
    show("10,000 variables of four elements", medians(runs, repeats), "safetensors.numpy.load_file")


def show(what: str, times: dict[str, Seconds], unit: str) -> None:
    print(f"\n{what:<44} {'clock':>10}     ratio   {'processor':>10}     ratio")
    for name, one in times.items():
        pairs = zip(one, times[unit], strict=True)
        print(f"  {name:<42}", "  ".join([f"{t * 1000:10.1f} ms {t / other:8.2f}" for t, other in pairs]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=1024)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--folder", help="where to write; a temporary folder by default")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
        small(Path(name), given.repeats)
        large(given.megabytes, Path(name), given.repeats)
        print(f"\nload {os.getloadavg()[0]:.1f} at the end")


if __name__ == "__main__":
    main()
