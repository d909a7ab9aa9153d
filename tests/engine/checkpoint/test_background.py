"""The thread that writes: jobs that end it, and a thread that cannot be had."""

from __future__ import annotations

import threading

import pytest

import limelight as ll
from limelight.checkpoint.background import BackgroundWriter
from limelight.errors import CheckpointError


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt])
def test_a_job_that_exits_ends_no_thread(error):
    writer, done = BackgroundWriter(), []

    def leave():
        raise error

    writer.add(leave)
    with pytest.raises(CheckpointError, match=f"ended by {error.__name__}"):
        writer.wait()
    writer.add(lambda: done.append(1))
    writer.wait()
    assert done == [1]


def test_where_no_thread_can_be_had_it_is_written_at_once(tmp_path, monkeypatch):
    def start(thread):
        raise RuntimeError("can't start new thread")

    checkpoint = ll.Checkpoint(v=ll.Variable(1.0))
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", start)
        path = checkpoint.write(tmp_path / "one", background=True)
        assert path.exists()
    path = checkpoint.write(tmp_path / "two", background=True)
    checkpoint.wait()
    assert path.exists()


def test_an_interrupt_while_the_caller_writes_is_the_callers(monkeypatch):
    def start(thread):
        raise RuntimeError("can't start new thread")

    def interrupted():
        raise KeyboardInterrupt

    writer = BackgroundWriter()
    monkeypatch.setattr(threading.Thread, "start", start)
    with pytest.raises(KeyboardInterrupt):
        writer.add(interrupted)
    writer.wait()
