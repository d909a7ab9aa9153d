"""How inputs travel: a large container of tensors is compared as a whole until another tensor is put into it."""

from __future__ import annotations

import numpy as np
import pytest

import limelight as ll
from limelight_kernel.inputs import input_keys
from limelight_kernel.inputs.input_keys import as_argument
from limelight_kernel.inputs.pins import Pinned, Pins

MADE = """
one = ll.ones(1)
many = [one + float(i) for i in range(6)]
named, first, at, seen = {f"k{i}": t for i, t in enumerate(many)}, many[0], 3, []
def item(x, k): return x[k] * 2.0
def all_of(): return len(many), sum(many[-2:])
"""
CELL = """
y = item(many, at) + item(named, "k5") + all_of()[1]
with ll.GradientTape() as tape:
    tape.watch(first)
    loss = (many[0] * first + named["k0"]).sum()
slope = tape.gradient(loss, first)
many[1] = many[1] + first
same, kept = many[0] is first, many[5] is named["k5"]
"""
CHANGES = ("", "many[3] = one * 50.0", "first = many[0] = one * 9.0", "at = 4")
SEEN = "seen.append([y.tolist(), slope.tolist(), same, kept, [t.tolist() for t in many]])"


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(input_keys, "MANY", 4)
    monkeypatch.setattr(input_keys, "HUGE", 4)


def test_such_a_container_is_as_in_the_plain_cell(run, small):
    run("%load_ext limelight")
    run("import limelight as ll")
    for magic in ("", "%%stage step -q\n"):
        run(MADE)
        for change in CHANGES:
            run(change)
            run(magic + CELL)
            run(SEEN)
        run("plain = seen" if not magic else "staged = seen")
    assert run("plain == staged").value, run("plain, staged").value
    assert run("len(plain)").value == 4


def test_it_travels_once_a_tensor_has_been_exchanged_and_where_a_pin_would_keep_much_alive(small, monkeypatch):
    tensors, pins = [ll.constant(np.float32(i)) for i in range(5)], Pins()
    whole = as_argument("x", tensors, pins)
    assert isinstance(whole, Pinned)
    assert as_argument("x", tensors, pins) is whole
    tensors[2] = ll.ones([])
    assert as_argument("x", tensors, pins) is tensors
    monkeypatch.setattr(input_keys, "_MOST_BYTES", 16)
    assert as_argument("x", tensors, Pins()) is tensors
