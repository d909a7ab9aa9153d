"""What a tape keeps alive, tensor by tensor."""

from __future__ import annotations

import limelight as ll


def test_each_saved_tensor_once_with_the_rules_that_need_it():
    x = ll.ones((4, 8))
    with ll.GradientTape() as tape:
        tape.watch(x)
        hidden = ll.tanh(x)
        both = hidden * hidden
        ll.sum(both * hidden)
    saved = tape.saved_tensors
    names = [entry.op for entry in tape.entries]
    (shared,) = [one for one in saved if one.made_by == names.index("tanh")]
    assert shared.nbytes == 128
    assert {names[i] for i in shared.needed_by} >= {"tanh", "multiply"}
    assert len(shared.needed_by) == 3
    assert sum(one.nbytes for one in saved) == tape.saved_bytes
    assert [one.nbytes for one in saved] == sorted([one.nbytes for one in saved], reverse=True)


def test_what_came_from_outside_says_so():
    w = ll.Variable(ll.ones((3, 2)))
    outside = ll.ones((5, 3))
    with ll.GradientTape() as tape:
        outside @ w
    assert [one.made_by for one in tape.saved_tensors if one.spec == "f32[5,3]"] == [None]


def test_a_tape_that_has_answered_keeps_nothing():
    w = ll.Variable(2.0)
    with ll.GradientTape() as tape:
        y = w * w
    assert tape.saved_tensors
    tape.gradient(y, w)
    assert tape.saved_tensors == ()


def test_an_input_that_any_entry_saves_is_told_by_its_type():
    x, w = ll.ones((5, 4)), ll.Variable(ll.ones((4, 3)))
    with ll.GradientTape() as tape:
        tape.watch(x)
        _shifted = x + 1.0
        _squared, _product = x * x, x @ w
    assert [entry.inputs[0] for entry in tape.entries] == ["f32[5,4]", "f32[5,4]", "variable f32[4,3]", "f32[5,4]"]
