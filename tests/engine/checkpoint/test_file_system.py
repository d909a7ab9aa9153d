"""Writers that are killed, and writes that fail: the last whole checkpoint is there, and nothing stays behind."""

from __future__ import annotations

import contextlib
import os

import pytest

import checkpoint_faults
import limelight as ll
from limelight.checkpoint import file_system
from limelight.errors import CheckpointError

full = pytest.mark.skipif(os.environ.get("LIMELIGHT_TESTS") != "full", reason="many runs; make test has them")
forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="kills a process that was forked")


@forks
@pytest.mark.parametrize("run", range(4))
def test_a_killed_writer_leaves_the_last_whole_checkpoint(tmp_path, run):
    checkpoint_faults.killed(run, tmp_path)
    checkpoint_faults.check_clean(tmp_path)


@forks
@full
@pytest.mark.slow  # a hundred processes
def test_a_hundred_killed_writers(tmp_path):
    reached = [checkpoint_faults.killed(run, tmp_path) for run in range(100)]
    assert reached == sorted(reached)
    checkpoint_faults.check_clean(tmp_path)


@pytest.mark.parametrize("run", range(10))
def test_a_write_that_fails_leaves_the_last_whole_checkpoint(tmp_path, run):
    checkpoint_faults.faulty(run, tmp_path)


@full
@pytest.mark.slow  # hundreds of writes
def test_two_hundred_writes_that_fail(tmp_path):
    for run in range(200):
        checkpoint_faults.faulty(run, tmp_path)


@pytest.mark.parametrize("parts", [False, True])
@pytest.mark.parametrize("fail_at", range(14))
def test_every_system_call_may_fail(tmp_path, monkeypatch, parts, fail_at):
    path = tmp_path / checkpoint_faults.NAME
    checkpoint = ll.Checkpoint(v=ll.Variable([1.0, 2.0]), w=ll.Variable([3.0, 4.0]))
    monkeypatch.setattr(file_system, "files", checkpoint_faults.FaultyFiles(fail_at, 28, False))
    calls = 12 if parts else 5  # the last but one renames, the last flushes the folder
    said = "cannot be written: No" if fail_at < calls - 1 else "whether it is on disk is not known: No"
    fails = pytest.raises(CheckpointError, match=f"{said} space left on device")
    monkeypatch.setattr(file_system.files, "remove", os.unlink)  # removing works on a full disk
    with fails if fail_at < calls else contextlib.nullcontext():
        checkpoint.write(path, most_bytes=8 if parts else 1 << 30)
    monkeypatch.undo()
    assert path.exists() == (fail_at >= calls - 1)
    if path.exists():
        checkpoint.restore(path).assert_consumed()
    checkpoint_faults.check_clean(tmp_path)


def test_a_folder_that_may_not_be_written_to(tmp_path):
    if not hasattr(os, "geteuid") or os.geteuid() == 0:
        pytest.skip("the administrator may write everywhere")
    tmp_path.chmod(0o500)
    with pytest.raises(CheckpointError, match="cannot be written: Permission denied"):
        ll.Checkpoint(v=ll.Variable(1.0)).write(tmp_path / "x")


def test_what_living_writers_write_is_left_alone(tmp_path):
    writer = file_system.Writer(tmp_path / "x")
    ll.Checkpoint(v=ll.Variable(1.0)).write(tmp_path / "x")
    assert writer.temporary.exists()
    writer.close()
    ll.Checkpoint(v=ll.Variable(1.0)).write(tmp_path / "x")
    assert not writer.temporary.exists()


def test_files_of_others_are_left_alone(tmp_path):
    others = [".x.tmp", ".y.0123456789abcdef.tmp", "x.00000000-00001-of-00001", "x.safetensors", ".x.0123.tmp"]
    for name in others:
        (tmp_path / name).write_text("mine")
    ll.Checkpoint(v=ll.Variable(1.0)).write(tmp_path / "x")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*others, "x"])


def test_a_rename_comes_after_the_content_is_on_disk_and_before_the_folder_is(tmp_path, monkeypatch):
    calls = []

    class Noted(file_system.Files):
        def flush(self, fd):
            calls.append("flush folder" if os.path.isdir(f"/proc/self/fd/{fd}") else "flush")
            super().flush(fd)

        def rename(self, old, new):
            calls.append("rename")
            super().rename(old, new)

    monkeypatch.setattr(file_system, "files", Noted())
    ll.Checkpoint(v=ll.Variable([1.0]), w=ll.Variable([2.0])).write(tmp_path / "x", most_bytes=4)
    assert calls == ["flush", "flush", "flush folder", "flush", "rename", "flush folder"]
