"""Interrupts at every system call of a writer: the checkpoint of before, or the new one, can be read."""

from __future__ import annotations

import errno
import os

import numpy as np
import pytest

import limelight as ll
from limelight.checkpoint import file_system
from limelight.errors import CheckpointError


class Breaking(file_system.Files):
    """Fails at one of the calls, before or after it is done."""

    def __init__(self, at, done, error):
        self.calls = []
        self._at, self._done, self._error = at, done, error

    def __getattribute__(self, name):
        real = super().__getattribute__(name)
        if name not in ("create", "write", "flush", "rename", "remove"):
            return real

        def call(*given):
            self.calls.append(name)
            broken = len(self.calls) == self._at + 1
            if broken and not self._done:
                raise self._error
            answer = real(*given)
            if broken:
                if name == "create":
                    os.close(answer)
                raise self._error
            return answer

        return call


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(errno.EIO, "broken")], ids=["interrupt", "error"])
@pytest.mark.parametrize("done", [False, True])
@pytest.mark.parametrize("most_bytes", [500, 1 << 20])
def test_a_checkpoint_can_be_read_whatever_breaks_it_off(tmp_path, monkeypatch, most_bytes, done, error):
    a, b = ll.Variable(np.zeros(100)), ll.Variable(np.zeros(100))
    checkpoint, path = ll.Checkpoint(a=a, b=b), tmp_path / "x.safetensors"
    at, broke = 0, True
    while broke:
        for v, value in ((a, 1.0), (b, 2.0)):
            v.assign(np.full(100, value))
        checkpoint.write(path, most_bytes=most_bytes)
        a.assign(np.full(100, 3.0))
        with monkeypatch.context() as patch:
            files = Breaking(at, done, error)
            patch.setattr(file_system, "files", files)
            said = ""
            try:
                checkpoint.write(path, most_bytes=most_bytes)
            except (KeyboardInterrupt, CheckpointError) as raised:
                said = f"{type(raised).__name__}: {raised}"
        broke = bool(said)
        replaced = "rename" in files.calls[: at + done]
        known = "is written, but whether it is on disk" not in said
        assert known == (not (said.startswith("CheckpointError") and replaced))
        checkpoint.restore(path).assert_consumed()
        assert b.numpy()[0] == 2.0
        assert a.numpy()[0] == (3.0 if not broke or replaced else 1.0)
        at += 1
    assert at > 5


def test_the_names_of_parts_are_on_disk_before_the_file_that_names_them(tmp_path, monkeypatch):
    files = Breaking(-2, False, None)
    monkeypatch.setattr(file_system, "files", files)
    v = {str(i): ll.Variable(np.zeros(100)) for i in range(2)}
    ll.Checkpoint(v=v).write(tmp_path / "x.safetensors", most_bytes=500)
    before = files.calls[: files.calls.index("rename")]
    assert before.count("flush") == 4  # two parts, their folder, and the file that names them
