"""Several restores that wait, one object where there were two, and restores that are broken off: no mixture is left."""

from __future__ import annotations

import gc
import warnings

import numpy as np
import pytest

import limelight as ll
from limelight.checkpoint import commit
from limelight.errors import CheckpointError, CheckpointWarning


def trained(folder, name, steps):
    model, optimizer = ll.nn.Dense(1), ll.optim.Adam(0.1)
    x = ll.ones((1, 2))
    model(x)
    for _ in range(steps):
        with ll.GradientTape() as tape:
            loss = ll.sum(model(x) ** 2)
        optimizer.apply(tape.gradient(loss, model.variables), model.variables)
    return ll.Checkpoint(m=model, o=optimizer).write(folder / name), contents(model, optimizer)


def contents(model, optimizer):
    slots = {k: v.numpy().tolist() for k, v in optimizer.slots_of(model.kernel).items()}
    return model.kernel.numpy().tolist(), slots


@pytest.mark.parametrize("later", ["kernel", "optimizer"])
@pytest.mark.parametrize("steps", [(1, 4), (3, 0)])
def test_kernel_and_slots_are_of_one_file(tmp_path, later, steps):
    one, _ = trained(tmp_path, "one.safetensors", steps[0])
    two, expected = trained(tmp_path, "two.safetensors", steps[1])
    model, optimizer = ll.nn.Dense(1), ll.optim.Adam(0.1)
    x = ll.ones((1, 2))
    if later == "optimizer":
        model(x)
    checkpoint = ll.Checkpoint(m=model) if later == "optimizer" else ll.Checkpoint(m=model, o=optimizer)
    statuses = [checkpoint.restore(one).expect_partial(), checkpoint.restore(two).expect_partial()]
    if later == "optimizer":
        checkpoint.o = optimizer
    else:
        model(x)
    if steps[1] or later == "kernel":  # a file without slots says nothing of an optimiser that is attached later
        assert contents(model, optimizer) == expected
    assert len(statuses) == 2


@pytest.mark.parametrize("shapes", [(3, 3), (3, 4), (4, 3)])
def test_an_array_of_a_state_that_comes_later_is_the_newest_files(tmp_path, shapes):
    paths = [
        ll.Checkpoint(s=ll.State(x=np.full(n, float(i)))).write(tmp_path / f"{i}.safetensors")
        for i, n in enumerate(shapes)
    ]
    for state in (ll.State(), ll.State(x=np.zeros(3)), ll.State(x=None)):
        checkpoint = ll.Checkpoint()
        statuses = [checkpoint.restore(path).expect_partial() for path in paths]
        checkpoint.s = state
        np.testing.assert_array_equal(state.x, np.full(shapes[1], 1.0))
        assert [str(status).split(": ")[1] for status in statuses] == ["1 unused", "1 matched"]


def test_what_a_later_restore_has_decided_need_not_fit_an_earlier_one(tmp_path):
    paths = [ll.Checkpoint(v=ll.Variable(np.zeros(n))).write(tmp_path / f"{n}.safetensors") for n in (2, 3)]
    checkpoint = ll.Checkpoint()
    statuses = [checkpoint.restore(path).expect_partial() for path in paths]
    checkpoint.v = ll.Variable(np.ones(3))
    np.testing.assert_array_equal(checkpoint.v.numpy(), np.zeros(3))
    assert len(statuses) == 2
    checkpoint = ll.Checkpoint()
    statuses = [checkpoint.restore(path).expect_partial() for path in paths]
    with pytest.raises(CheckpointError, match="does not fit"):
        checkpoint.v = ll.Variable(np.ones(2))


class Part(ll.Module):
    pass


def test_two_objects_that_have_become_one_wait_for_the_values_of_both(tmp_path):
    a, b, x = Part(), Part(), Part()
    a.v, b.w = ll.Variable(1.0), ll.Variable(2.0)
    a.items, b.others = [ll.Variable(3.0)], [ll.Variable(4.0)]
    path = ll.Checkpoint(a=a, b=b).write(tmp_path / "two.safetensors")
    x.items, x.others = [], []
    status = ll.Checkpoint(a=x, b=x).restore(path)
    x.v, x.w = ll.Variable(0.0), ll.Variable(0.0)
    x.items.append(ll.Variable(0.0))
    x.others.append(ll.Variable(0.0))
    assert [v.item() for v in (x.v, x.w, x.items[0], x.others[0])] == [1.0, 2.0, 3.0, 4.0]
    status.assert_consumed()


class Stateful:
    def __init__(self):
        self.value = 0

    def get_state(self):
        return self.value

    def set_state(self, state):
        self.value = state


def everything(number):
    optimizer = ll.optim.Momentum(0.1, 0.9)
    v = ll.Variable(float(number))
    parts = {"v": v, "array": np.full(2, number), "number": number, "list": [number], "dict": {"a": number},
             "stateful": Stateful(), "generator": ll.random.Generator(number), "optimizer": optimizer}  # fmt: skip
    parts["stateful"].value = number
    return ll.Checkpoint(**parts)


def as_lists(checkpoint):
    parts = vars(checkpoint)
    slots = [slot.item() for _, slots in checkpoint.optimizer.variables_with_slots() for slot in slots.values()]
    return [checkpoint.v.item(), parts["array"].tolist(), parts.get("number"), list(parts["list"]), dict(parts["dict"]),
            checkpoint.stateful.value, checkpoint.generator._data.array.tolist(), slots]  # fmt: skip


def test_an_interrupt_at_any_point_restores_nothing(tmp_path, monkeypatch):
    path = everything(1).write(tmp_path / "x.safetensors")
    interrupted = []
    for name in ("_give", "_note", "set_state", "renew_slots"):
        for at in range(9):
            checkpoint = everything(5)
            checkpoint.optimizer.apply([checkpoint.v.read_value()], [checkpoint.v])
            before, calls, real = as_lists(checkpoint), [], getattr(commit, name)

            def broken(*given, at=at, calls=calls, real=real):
                calls.append(given)
                if len(calls) == at + 1:
                    raise KeyboardInterrupt
                return real(*given)

            with monkeypatch.context() as patch:
                patch.setattr(commit, name, broken)
                try:
                    checkpoint.restore(path).expect_partial()
                except KeyboardInterrupt:
                    interrupted.append(name)
                    assert as_lists(checkpoint) == before, (name, at)
            if len(calls) <= at:
                assert as_lists(checkpoint) == [*as_lists(everything(1))[:-1], [0.0]]
    assert set(interrupted) == {"_give", "_note", "set_state", "renew_slots"}


def test_a_warning_that_is_an_error_restores_nothing(tmp_path):
    x = ll.State(v=ll.Variable(1.0))
    path = ll.Checkpoint(a=x, b=x).write(tmp_path / "w.safetensors")
    y, z = ll.State(v=ll.Variable(9.0)), ll.State(v=ll.Variable(9.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(CheckpointWarning):
            ll.Checkpoint(a=y, b=z).restore(path)
    assert (y.v.item(), z.v.item()) == (9.0, 9.0)


class Network(ll.Module):
    def __init__(self):
        self.weights = []

    def call(self, x):
        if not self.weights:
            for _ in range(3):
                self.weights.append(ll.Variable(lambda: ll.random.normal((3,))))
        for weight in self.weights:
            x = x * weight
        return x


def test_what_several_initial_values_drew_is_given_back(tmp_path):
    ll.random.seed(0)
    network, x = Network(), ll.ones(3)
    network(x)
    ll.CheckpointManager({"n": network}, tmp_path).save()
    expected = ll.random.normal(()).item()
    ll.random.seed(99)
    again = Network()
    ll.CheckpointManager({"n": again}, tmp_path).restore()
    np.testing.assert_array_equal(again(x).numpy(), network(x).numpy())
    assert ll.random.normal(()).item() == expected


@pytest.mark.parametrize("steps", [(1, 1), (1, 0)])
def test_a_restore_that_a_later_one_overruled_gives_no_warning(tmp_path, steps):
    one, _ = trained(tmp_path, "one.safetensors", steps[0])
    two, _ = trained(tmp_path, "two.safetensors", steps[1])
    model, optimizer = ll.nn.Dense(1), ll.optim.Adam(0.1)
    checkpoint = ll.Checkpoint(m=model, o=optimizer)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        checkpoint.restore(one)
        checkpoint.restore(two)
        model(ll.ones((1, 2)))
        del model, optimizer, checkpoint
        gc.collect()
    assert not told


def restored_in_vain(path):
    model = ll.nn.Dense(1)
    ll.Checkpoint(m=model).restore(path)
    ll.Checkpoint(m=ll.nn.Dense(1)).restore(path).expect_partial()
    model(ll.ones((1, 2)))
    del model
    gc.collect()


def test_values_that_neither_restore_could_give_are_told_of(tmp_path):
    path, _ = trained(tmp_path, "one.safetensors", 1)
    with pytest.warns(CheckpointWarning, match="6 saved values were given to no object") as told:
        restored_in_vain(path)
    assert len(told) == 1


@pytest.mark.parametrize("built", [False, True])
def test_of_two_restores_that_wait_for_the_same_the_later_one_warns(tmp_path, built):
    one, _ = trained(tmp_path, "one.safetensors", 1)
    two, _ = trained(tmp_path, "two.safetensors", 1)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        first = restored_twice(one, two, built)
        gc.collect()
        del first
        gc.collect()
    assert [str(w.message).partition(",")[0] for w in told] == [f"of {two}"]


def restored_twice(one, two, built):
    model = ll.nn.Dense(1)
    if built:  # then slots wait for an optimiser
        model(ll.ones((1, 2)))
    checkpoint = ll.Checkpoint(m=model)
    first, second = checkpoint.restore(one), checkpoint.restore(two)
    assert {record.why for record in first.tree().of("unused")} == {"a later restore decides"}
    assert not first.tree().of("waiting")
    assert second.tree().of("waiting")
    return first


def test_a_value_that_the_later_restore_lacks_is_told_of(tmp_path):
    one = ll.Checkpoint(m=ll.State(a=ll.Variable(1.0), b=ll.Variable(1.0))).write(tmp_path / "one.safetensors")
    two = ll.Checkpoint(m=ll.State(a=ll.Variable(2.0))).write(tmp_path / "two.safetensors")

    def restored():
        checkpoint = ll.Checkpoint()
        checkpoint.restore(one), checkpoint.restore(two)

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        restored()
        gc.collect()
    said = sorted(str(w.message).partition(". ")[0] for w in told)
    assert said == [
        f"of {one}, 1 saved values were given to no object: `m/b`",
        f"of {two}, 1 saved values were given to no object: `m/a`",
    ]
