"""What a first run changed is as it was in the second one, and as it is now after that, whatever refuses to be."""

import pytest

import limelight as ll


def _gradient(f, x=3.0):
    x = ll.constant(x)
    with ll.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, x).item()


class TestDictionaries:
    def test_a_key_that_there_was_has_its_value_again(self):
        state = {"scale": 1.0}

        @ll.recompute_grad
        def f(x):
            state["scale"] *= 2
            return x * x * state["scale"]

        assert _gradient(f) == 12.0
        assert state == {"scale": 2.0}

    def test_a_key_that_was_deleted_is_there_again(self):
        state = {"scale": 2.0}

        @ll.recompute_grad
        def f(x):
            return x * x * state.pop("scale")

        assert _gradient(f) == 12.0
        assert state == {}

    @pytest.mark.parametrize("before", [{}, {"w": None}, {"other": 1.0}], ids=str)
    def test_what_is_made_on_the_first_use_stays(self, before):
        state = dict(before)

        @ll.recompute_grad
        def f(x):
            if state.get("w") is None:
                state["w"] = ll.Variable(2.0)
            return x * x * state["w"]

        assert _gradient(f) == 12.0
        assert state["w"].item() == 2.0


class Proud:
    """Has a slot, which is set by `__setattr__`."""

    __slots__ = ("level",)


def test_python_is_set_back_beside_a_variable():
    count, state = ll.Variable(0.0), [1.0]

    @ll.recompute_grad
    def f(x):
        count.assign_add(1.0)
        state[0] *= 2
        return x * x * state[0] * count

    assert _gradient(f) == 12.0
    assert (count.item(), state) == (1.0, [2.0])


def test_all_others_are_as_they_were_though_an_object_refuses_what_it_had(monkeypatch):
    proud, count, other = Proud(), ll.Variable(0.0), [1.0]
    proud.level = 1.0

    @ll.recompute_grad
    def f(x):
        count.assign_add(1.0)
        proud.level = proud.level + 1.0
        other[0] += 1.0
        return x * x * count

    x = ll.constant(3.0)
    with ll.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    count.assign(7.0)
    other[0] = 8.0

    calls = []

    def counted(self, name, value):
        calls.append(value)
        if len(calls) >= 3:  # set back, set by the second run, then put back after it
            raise RuntimeError("not back")
        object.__setattr__(self, name, value)

    monkeypatch.setattr(Proud, "__setattr__", counted)
    with pytest.raises(RuntimeError, match="not back"):
        tape.gradient(y, x)
    assert (count.item(), other) == (7.0, [8.0])
