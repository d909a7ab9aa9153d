"""Many small variables: what a save and a restore ask of the system, and of the rest of the process."""

from __future__ import annotations

import gc
import os

import numpy as np
import pytest

import limelight as ll
from limelight.checkpoint import file_system
from limelight.checkpoint.array_files import ArrayFile
from limelight.checkpoint.file_system import Reader
from limelight.core import attachments


def many(value: float, count: int = 2_000):
    return ll.Checkpoint(model=ll.State(v=[ll.Variable(np.full(3, value + i, "float32")) for i in range(count)]))


def test_small_arrays_are_written_together_and_read_together(tmp_path, monkeypatch):
    calls = {"write": 0, "read": 0}
    write, read = file_system.Files.write, file_system._read_at

    def counted_write(self, fd, data):
        calls["write"] += 1
        return write(self, fd, data)

    def counted_read(fd, target, offset):
        calls["read"] += 1
        return read(fd, target, offset)

    monkeypatch.setattr(file_system.Files, "write", counted_write)
    monkeypatch.setattr(file_system, "_read_at", counted_read)
    again = many(0.0)
    path = many(1.0).write(tmp_path / "x")
    again.restore(path).assert_consumed()
    assert calls["write"] <= 3
    assert calls["read"] <= 4
    assert [v.numpy()[0] for v in again.model.v] == [1.0 + i for i in range(2_000)]


def test_small_and_large_arrays_come_back_in_any_order(tmp_path):
    draw = np.random.default_rng(1)
    arrays = {
        f"a{i}": draw.integers(0, 256, int(draw.choice([0, 1, 5, 4096, 4097, 300_000])), "uint8") for i in range(60)
    }
    arrays["flag"] = np.array([True, False])
    path = ll.Checkpoint(**{name: ll.Variable(x) for name, x in arrays.items()}).write(tmp_path / "x")
    file = ArrayFile(Reader(path))
    for name in draw.permutation(list(arrays)):
        assert file.array(name).tobytes() == arrays[name].tobytes()


def test_arrays_that_were_read_together_share_no_memory(tmp_path):
    path = ll.Checkpoint(a=ll.Variable([1.0]), b=ll.Variable([2.0])).write(tmp_path / "x")
    file = ArrayFile(Reader(path))
    first = file.array("a")
    first[:] = 7
    assert file.array("a").tolist() == [1.0]
    assert not np.shares_memory(file.array("a"), file.array("b"))


def test_a_restore_that_waits_walks_no_other_objects(tmp_path, monkeypatch):
    path = ll.Checkpoint(v=[ll.Variable(1.0), ll.Variable(2.0)]).write(tmp_path / "x")
    monkeypatch.setattr(gc, "get_objects", lambda: 1 / 0)
    early = ll.Variable(0.0)
    checkpoint = ll.Checkpoint(v=[ll.Variable(0.0)])
    status = checkpoint.restore(path)
    assert attachments.growing
    checkpoint.v.append(early)
    assert early.numpy() == 2.0
    status.assert_consumed()


def test_a_file_that_is_cut_off_while_it_is_read_is_refused(tmp_path):
    path = many(1.0).write(tmp_path / "x")
    file = ArrayFile(Reader(path))
    os.truncate(path, path.stat().st_size - 10)
    names = sorted(file.entries, key=lambda name: file.entries[name].begin)
    with pytest.raises(ll.errors.CheckpointError, match="ends too early"):
        file.array(names[-1])
