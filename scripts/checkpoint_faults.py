"""Lets checkpoints fail, many times: killed writers, writes that fail, and files that strangers have changed.

    python scripts/checkpoint_faults.py kill 1000
    python scripts/checkpoint_faults.py faults 1000
    python scripts/checkpoint_faults.py mutate 1000000

Each run is drawn from its number, which is printed with the error where one fails. The tests run a few of them.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import json
import os
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np

import limelight as ll
from limelight.checkpoint import file_system
from limelight.errors import CheckpointError

NAME = "model.safetensors"
ROOM = 64 << 20
SECONDS = 1.0  # of processor time, that reading a changed file may take at most


# Killed writers


def objects(n: float) -> Any:
    """A checkpoint whose arrays are full of its number."""
    v, w = (ll.Variable(np.full(size, n, "float32")) for size in (20_000, 3_000))
    return ll.Checkpoint(v=v, w=w, n=int(n))


def write_for_ever(path: Path, parts: bool, said: int) -> None:
    """Writes one checkpoint after the other, and their numbers to a pipe."""
    checkpoint = objects(0)
    checkpoint.restore(path)
    os.write(said, b"ready\n")
    for n in range(checkpoint.n + 1, 1_000_000):
        for variable in (checkpoint.v, checkpoint.w):
            variable.assign(np.full(variable.shape, n, "float32"))
        checkpoint.n = n
        checkpoint.write(path, most_bytes=40_000 if parts else 1 << 30)
        os.write(said, b"%d\n" % n)


def killed(run: int, folder: Path) -> int:
    """Kills a process that writes one checkpoint after the other; returns the number that is there after it.

    Raises AssertionError where it is not the last that was whole, or is not one at all.
    """
    draw, path = random.Random(run), folder / NAME
    parts = bool(draw.randrange(2))
    if not path.exists():
        objects(0).write(path)
    heard, said = os.pipe()
    child = os.fork()
    if not child:
        try:
            write_for_ever(path, parts, said)
        finally:
            os._exit(1)
    os.close(said)
    with os.fdopen(heard) as lines:
        assert lines.readline() == "ready\n"
        time.sleep(draw.uniform(0.0, 0.02))
        os.kill(child, signal.SIGKILL)
        numbers = [int(line) for line in lines if line.endswith("\n")]
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1]), "the writer ended by itself"
    return check_whole(path, numbers[-1] if numbers else 0)


def check_whole(path: Path, written: int) -> int:
    """Raises AssertionError unless the checkpoint is whole, and is the last that was written or the one after it."""
    checkpoint = objects(0)
    checkpoint.restore(path).assert_consumed()
    n = int(checkpoint.n)
    assert n in (written, written + 1) or not written, f"{n} after {written} had been written"
    values = {float(x) for v in (checkpoint.v, checkpoint.w) for x in np.unique(v.numpy())}
    assert values == {float(n)}, f"half of {values}"
    return n


def check_clean(folder: Path) -> None:
    """Raises AssertionError where a further save leaves files that do not belong to it."""
    checkpoint = ll.Checkpoint(v=ll.Variable(1.0))
    checkpoint.write(folder / NAME)
    names = sorted(path.name for path in folder.iterdir())
    assert names == [NAME], f"left behind: {names}"


# Writes that fail


class FaultyFiles(file_system.Files):
    """System calls of which one fails: writes nothing more, or only a part, and so do those after it until `heal`."""

    def __init__(self, fail_at: int, error: int, tears: bool) -> None:
        self.calls = 0
        self._fail_at = fail_at
        self._error = error
        self._tears = tears
        self._healed = False

    def heal(self) -> None:
        self._healed = True

    def _fails(self) -> bool:
        self.calls += 1
        return not self._healed and self.calls > self._fail_at

    def _check(self) -> None:
        if self._fails():
            raise OSError(self._error, os.strerror(self._error))

    def create(self, path: str) -> int:
        self._check()
        return super().create(path)

    def write(self, fd: int, data: memoryview) -> int:
        if self._fails():
            if self._tears and len(data) > 1:
                self._tears = False
                return super().write(fd, data[: len(data) // 2])
            raise OSError(self._error, os.strerror(self._error))
        return super().write(fd, data)

    def flush(self, fd: int) -> None:
        self._check()
        super().flush(fd)

    def rename(self, old: str, new: str) -> None:
        self._check()
        super().rename(old, new)

    def remove(self, path: str) -> None:
        if not self._tears:  # on a full disk removing works, in a folder that may not be changed it does not
            self._check()
        super().remove(path)


def faulty(run: int, folder: Path) -> None:
    """Lets one write fail at a random system call. Raises AssertionError where no whole checkpoint is there."""
    draw, path = random.Random(run), folder / NAME
    v, parts = ll.Variable(np.zeros(2_000, "float32")), draw.randrange(2)
    w = ll.Variable(np.zeros(10))
    checkpoint = ll.Checkpoint(v=v, w=w)
    most = 4_000 if parts else 1 << 30
    checkpoint.write(path, most_bytes=most)
    v.assign(np.ones(2_000, "float32"))
    error = draw.choice([errno.ENOSPC, errno.EROFS, errno.EIO, errno.EACCES, errno.EDQUOT])
    before, file_system.files = file_system.files, FaultyFiles(draw.randrange(20), error, bool(draw.randrange(2)))
    failed = False
    try:
        checkpoint.write(path, most_bytes=most)
    except CheckpointError:
        failed = True
    finally:
        file_system.files = before
    again = ll.Variable(np.full(2_000, -1.0, "float32"))
    ll.Checkpoint(v=again, w=ll.Variable(np.zeros(10))).restore(path).assert_consumed()
    values = set(np.unique(again.numpy()).tolist())
    assert values in ([{0.0}, {1.0}] if failed else [{1.0}]), f"{values} after a write that failed: {failed}"
    check_clean(folder)


# Files of strangers


def specimen(folder: Path) -> dict[str, bytes]:
    """The files of a small checkpoint that has everything, in one file and in several."""
    layer, optimizer = ll.nn.Dense(2), ll.optim.Adam(0.1)
    with ll.GradientTape() as tape:
        loss = ll.sum(layer(ll.ones((1, 3))))
    optimizer.apply(tape.gradient(loss, layer.trainable_variables), layer.trainable_variables)
    state = ll.State(
        a=np.arange(3), b=[1, "x", {"y": (2.0, None)}], c=1j, d={1: np.ones(2)}, e=b"ab", f=np.array(["q"])
    )
    checkpoint = ll.Checkpoint(
        model=layer, optimizer=optimizer, state=state, g=ll.random.Generator(1), z=ll.Variable(np.ones(2, complex)),
        r=np.random.default_rng(1), flag=ll.Variable(np.array([True, False])),
    )  # fmt: skip
    checkpoint.write(folder / "one")
    checkpoint.write(folder / "many", most_bytes=40)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def fresh() -> Any:
    """Objects for the specimen."""
    layer = ll.nn.Dense(2)
    layer(ll.ones((1, 3)))
    state = ll.State()
    return ll.Checkpoint(
        model=layer, optimizer=ll.optim.Adam(0.1), state=state, g=ll.random.Generator(2),
        z=ll.Variable(np.zeros(2, complex)), r=np.random.default_rng(2), flag=ll.Variable(np.array([False, False])),
    )  # fmt: skip


def mutated(draw: random.Random, data: bytes) -> bytes:
    """A file with something wrong in it, or several things."""
    for _ in range(draw.choice([1, 1, 1, 2, 5])):
        data = draw.choice(MUTATIONS)(draw, data)
    return data


def _length(draw: random.Random, data: bytes) -> bytes:
    claim = draw.choice(
        [0, 1, 7, len(data), max(len(data) - 8, 0), 10**8, 10**8 + 1, 2**31, 2**63, 2**64 - 1, draw.getrandbits(16)]
    )
    return claim.to_bytes(8, "little") + data[8:]


def _cut(draw: random.Random, data: bytes) -> bytes:
    return data[: draw.randrange(len(data) + 1)]


def _longer(draw: random.Random, data: bytes) -> bytes:
    return data + draw.randbytes(draw.choice([1, 8, 1000]))


def _flip(draw: random.Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(draw.choice([1, 1, 4, 30])):
        if changed:
            changed[draw.randrange(len(changed))] = draw.randrange(256)
    return bytes(changed)


def _splice(draw: random.Random, data: bytes) -> bytes:
    a, b, c = sorted(draw.randrange(len(data) + 1) for _ in range(3))
    return data[:a] + data[b:c] + data[a:b] + data[c:]


def _header(change: Callable[[random.Random, Any], Any]) -> Callable[[random.Random, bytes], bytes]:
    """A mutation of the header's JSON, with the length set right."""

    def mutation(draw: random.Random, data: bytes) -> bytes:
        length = int.from_bytes(data[:8], "little")
        try:
            header = json.loads(data[8 : 8 + length])
            text = change(draw, header)
            encoded = text if isinstance(text, bytes) else json.dumps(text).encode()
        except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError):
            return data
        return len(encoded).to_bytes(8, "little") + encoded + data[8 + length :]

    return mutation


def _graph(change: Callable[[random.Random, Any], Any]) -> Callable[[random.Random, bytes], bytes]:
    """A mutation of the object graph."""

    def mutation(draw: random.Random, header: Any) -> Any:
        graph = change(draw, json.loads(header["__metadata__"]["limelight"]))
        header["__metadata__"]["limelight"] = graph if isinstance(graph, str) else json.dumps(graph)
        return header

    return _header(mutation)


STRANGE: Final[tuple[Any, ...]] = (
    None, True, -1, 0, 1, 2**62, 2**64, 10**400, 1.5, float("nan"), "", "x", "../x", "/etc/passwd", "a/../../b",
    "\0", "é" * 99,
    [], {}, [[]], [0], [-1], [0, 2**63], {"~": "tuple"}, {"~": "array", "key": "model/kernel"}, {"~": "nothing"},
    "F8_E4M3",
    {"~": "strings", "items": ["x" * 10_000, *[""] * 100], "shape": [101]}, {"~": "int", "hex": "f" * 9999},
)  # fmt: skip


def _anything(draw: random.Random, tree: Any) -> Any:
    """JSON with one value, somewhere, replaced, removed, doubled or renamed."""
    at = tree
    while True:
        inner = [x for x in (at.values() if isinstance(at, dict) else at) if isinstance(x, (dict, list)) and x]
        if not inner or draw.random() < 0.25:
            break
        at = draw.choice(inner)
    keys = list(at) if isinstance(at, dict) else list(range(len(at)))
    key = draw.choice(keys)
    kind = draw.randrange(4)
    if kind == 0:
        del at[key]
    elif kind == 1 and isinstance(at, dict):
        at[draw.choice(["../x", "", "dtype", "children", "é", key * 2])] = at.pop(key)
    elif kind == 1:
        at.append(at[key])
    else:
        at[key] = draw.choice(STRANGE)
    return tree


def _deep(draw: random.Random, header: Any) -> bytes:
    depth = draw.choice([50, 200, 5_000, 100_000])
    nest = draw.choice([("[", "]"), ('{"a":', "}")])
    text = nest[0] * depth + "1" + nest[1] * depth
    return json.dumps(header).encode()[:-1] + b',"x":' + text.encode() + b"}"


def _twice(draw: random.Random, header: Any) -> bytes:
    key = draw.choice(list(header))
    return (
        json.dumps(header).encode()[:-1]
        + b","
        + json.dumps(key).encode()
        + b":"
        + json.dumps(header[key]).encode()
        + b"}"
    )


def _deep_graph(draw: random.Random, graph: Any) -> str:
    depth = draw.choice([50, 70, 5_000, 100_000])
    return json.dumps(graph)[:-1] + ',"x":' + "[" * depth + "]" * depth + "}"


def _deep_value(draw: random.Random, graph: Any) -> Any:
    value: Any = 1
    for _ in range(draw.choice([63, 66, 300])):
        value = [value]
    values = [node for node in graph["nodes"] if "value" in node]
    draw.choice(values)["value"] = value
    return graph


def _outside(draw: random.Random, graph: Any) -> Any:
    names = ["../one", "/etc/passwd", "many", "..", "sub/x", "..\\one", f"many.{'0' * 8}-00001-of-00001.safetensors"]
    graph["files"] = {draw.choice(names): ["model/kernel"]}
    return graph


def _long_chain(draw: random.Random, graph: Any) -> Any:
    first = len(graph["nodes"])
    count = draw.choice([10, 3_000])
    graph["nodes"] += [{"kind": "object", "children": [["a" * 50, first + i + 1]]} for i in range(count)]
    graph["nodes"].append({"kind": "value", "value": 1})
    graph["nodes"][0]["children"].append(["chain", first])
    return graph


MUTATIONS = (
    _length, _cut, _longer, _flip, _splice, _header(_anything), _header(_anything), _header(_deep), _header(_twice),
    _graph(_anything), _graph(_anything), _graph(_anything), _graph(_deep_graph), _graph(_deep_value), _graph(_outside),
    _graph(_long_chain),
)  # fmt: skip


_objects: Final[list[Any]] = []
"""Those of the run before, if its file was refused: nothing of them was changed, as is checked here and there."""


class Opened:
    """The files that Python opens, renames or removes from now on, outside of a folder and of what it imports from."""

    _names = ("open", "os.rename", "os.remove", "os.link", "os.symlink", "os.mkdir", "os.rmdir", "os.truncate")

    def __init__(self) -> None:
        self.folder = ""
        self.outside: list[str] = []
        self._imported = tuple({os.path.realpath(part) for part in (*sys.path, sys.prefix, sys.base_prefix) if part})
        sys.addaudithook(self._hear)  # which nothing removes, and Python calls it for each frame that is asked for

    def _hear(self, event: str, args: tuple[Any, ...]) -> None:
        if self.folder and event in self._names and isinstance(args[0], (str, bytes)):
            folder, name = os.path.split(os.fsdecode(args[0]))
            if folder != self.folder or name in ("", ".", ".."):
                path = os.path.realpath(os.fsdecode(args[0]))
                if path != self.folder and not path.startswith(self._imported):
                    self.outside.append(f"{event} {path}")


_opened: Final[list[Opened]] = []  # one for a process


@contextlib.contextmanager
def nothing_outside(folder: Path) -> Iterator[None]:
    """Raises AssertionError where a file that lies not in the folder itself is opened or changed."""
    if not _opened:
        _opened.append(Opened())
    _opened[0].outside.clear()
    _opened[0].folder = os.path.realpath(folder)
    try:
        yield
    finally:
        _opened[0].folder = ""
    assert not _opened[0].outside, f"outside of the folder: {_opened[0].outside}"


def mutate(run: int, folder: Path, files: dict[str, bytes], measured: bool = False) -> str:
    """Restores a changed file; returns "refused" or "restored".

    Raises whatever else than a CheckpointError is raised, and AssertionError for too much memory or time, and for a
    file outside of the folder that is opened.
    """
    draw = random.Random(run)
    names = sorted(files)
    name = draw.choice(names)
    changed = mutated(draw, files[name])
    target = folder / name
    target.write_bytes(changed)
    opened = "one" if name == "one" else "many"
    checkpoint = _objects.pop() if _objects else fresh()
    if measured:
        tracemalloc.start()
    begun = time.process_time()
    try:
        with nothing_outside(folder):
            status = checkpoint.restore(folder / opened).expect_partial()
            str(status.tree())
        outcome = "restored"
    except CheckpointError:
        outcome = "refused"
        assert (checkpoint.flag.numpy() == [False, False]).all(), "half restored"
        assert not vars(checkpoint.state), "half restored"
        _objects.append(checkpoint)
    finally:
        took = time.process_time() - begun
        peak = tracemalloc.get_traced_memory()[1] if measured else 0
        tracemalloc.stop()
        target.write_bytes(files[name])
    assert peak < len(changed) + ROOM, f"{peak} bytes for a file of {len(changed)}"
    assert took < SECONDS or measured, f"{took:.1f} s"  # measuring memory takes ten times as long
    return outcome


def outcomes(runs: Iterable[int], folder: Path, files: dict[str, bytes], measured: bool = False) -> set[str]:
    """What came of several runs of `mutate`."""
    return {mutate(run, folder, files, measured) for run in runs}


def main() -> None:
    """Runs as many as the command line says, and prints what came of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["kill", "faults", "mutate"])
    parser.add_argument("count", type=int)
    parser.add_argument("--first", type=int, default=0, help="the number of the first run")
    given = parser.parse_args()
    found: Counter[str] = Counter()
    begun, longest = time.perf_counter(), 0.0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = specimen(folder) if given.what == "mutate" else {}
        for run in range(given.first, given.first + given.count):
            try:
                if given.what == "mutate":
                    measured, since = run % 500 == 0, time.perf_counter()
                    found[mutate(run, folder, files, measured)] += 1
                    longest = max(longest, 0.0 if measured else time.perf_counter() - since)
                else:
                    (killed if given.what == "kill" else faulty)(run, folder)
                    found["whole"] += 1
            except Exception:  # noqa: BLE001  # whatever a file makes us raise is what is looked for
                found["failed"] += 1
                print(f"run {run}\n{traceback.format_exc()}", file=sys.stderr)
        if given.what == "kill":
            check_clean(folder)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    took = time.perf_counter() - begun
    print(f"{given.what}: {dict(found)} in {took:.0f} s, at most {memory:.0f} MiB resident; longest {longest:.2f} s")
    sys.exit(bool(found["failed"]))


if __name__ == "__main__":
    main()
