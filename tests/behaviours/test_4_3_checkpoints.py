"""Section 4.3, state: behaviours 85 to 93: how checkpoints are matched."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from checkpointed import Holder, X, keys, mlp, saved  # beside this file

import limelight as ll
from limelight.errors import CheckpointError, CheckpointWarning, MissingCheckpointError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.safetensors"


# 85 Keys come from edges


def test_085_keys_are_paths_of_attributes(path: Path) -> None:
    a = Holder(first=ll.Variable(1.0, name="w"), second=Holder(third=ll.Variable(2.0, name="w")))
    saved(path, model=a)
    assert keys(path) == {"model/first", "model/second/third"}


def test_085_separators_and_reserved_names_are_escaped(path: Path) -> None:
    names = ["a/b", "a", "a.b", "~", "~1", "ü", "0", "__metadata__", "", "a b", "名", "~s"]
    root = Holder(d={name: ll.Variable(float(i)) for i, name in enumerate(names)} | {0: ll.Variable(50.0)})
    vars(root)["__metadata__"] = ll.Variable(60.0)
    saved(path, m=root)
    assert len(keys(path)) == len(names) + 2
    again = Holder(d={name: ll.Variable(-1.0) for name in names} | {0: ll.Variable(-1.0)})
    vars(again)["__metadata__"] = ll.Variable(-1.0)
    ll.Checkpoint(m=again).restore(path).assert_consumed()
    assert [again.d[name].numpy() for name in names] == list(range(len(names)))
    assert (again.d[0].numpy(), vars(again)["__metadata__"].numpy()) == (50.0, 60.0)


def test_085_the_order_of_creation_and_names_of_variables_do_not_matter(path: Path) -> None:
    saved(path, m=Holder(a=ll.Variable(1.0, name="x"), b=ll.Variable(2.0, name="y")))
    again = Holder(b=ll.Variable(0.0, name="x"), a=ll.Variable(0.0, name="y"))
    ll.Checkpoint(m=again).restore(path).assert_consumed()
    assert (again.a.numpy(), again.b.numpy()) == (1.0, 2.0)


# 86 Matching is local


def test_086_a_second_copy_is_restored_and_the_first_is_not_touched(path: Path) -> None:
    one, two = mlp(), mlp()
    y, _ = one(X), two(X)
    saved(path, model=one)
    before = [v._data.array for v in one.variables]
    ll.Checkpoint(model=two).restore(path).assert_consumed()
    assert bool((two(X) == y).all())
    assert all(v._data.array is array for v, array in zip(one.variables, before, strict=True))


def test_086_a_part_is_restored_from_the_file_of_the_whole(path: Path) -> None:
    saved(path, a=ll.Variable(1.0), b=Holder(c=ll.Variable(2.0)))
    b = Holder(c=ll.Variable(0.0))
    ll.Checkpoint(b=b).restore(path).expect_partial()
    assert b.c.numpy() == 2.0


# 87 Deferred restoration


def test_087_the_value_arrives_when_the_attribute_does(path: Path) -> None:
    saved(path, m=Holder(v=ll.Variable(3.0)))
    m = Holder()
    status = ll.Checkpoint(m=m).restore(path)
    m.v = ll.Variable(0.0)
    assert m.v.numpy() == 3.0
    status.assert_consumed()


def test_087_a_subtree_is_attached_after_its_variables_were_made(path: Path) -> None:
    saved(path, m=Holder(inner=Holder(deep=Holder(v=ll.Variable(3.0)))))
    inner = Holder(deep=Holder(v=ll.Variable(0.0)))
    m = Holder()
    status = ll.Checkpoint(m=m).restore(path)
    assert inner.deep.v.numpy() == 0.0
    m.inner = inner
    assert inner.deep.v.numpy() == 3.0
    status.assert_consumed()


@pytest.mark.parametrize("stage", [lambda f: f, ll.function], ids=["eager", "staged"])
def test_087_layers_get_their_weights_on_the_first_call_and_initialisers_do_not_win(path: Path, stage: Any) -> None:
    one = mlp()
    y = one(X)
    saved(path, model=one)
    two = mlp()
    status = ll.Checkpoint(model=two).restore(path)
    assert status.tree().counts == {"waiting": 4}
    run = stage(two)
    np.testing.assert_array_equal(run(X).numpy(), y.numpy())
    status.assert_consumed()


def test_087_a_variable_that_a_staged_function_makes_on_its_first_call(path: Path) -> None:
    saved(path, m=Holder(v=ll.Variable(5.0)))
    m = Holder(v=None)

    @ll.function
    def f(x: Any) -> Any:
        if m.v is None:
            m.v = ll.Variable(1.0)
        return x * m.v

    ll.Checkpoint(m=m).restore(path)
    assert f(ll.constant(2.0)).item() == 10.0


def test_087_a_first_call_that_fails_leaves_the_values_waiting(path: Path) -> None:
    class Fails(ll.nn.Layer):
        fail = True

        def build(self, features: int) -> None:
            self.w = self.weight("w", (features,), ll.nn.initializers.ones)

        def call(self, x: Any) -> Any:
            x = self.ready(x)
            if self.fail:
                raise RuntimeError("not yet")
            return x * self.w

    first = Fails()
    first.fail = False
    first(X)
    first.w.assign([1.0, 2.0, 3.0])
    saved(path, layer=first)
    layer = Fails()
    status = ll.Checkpoint(layer=layer).restore(path)
    with pytest.raises(RuntimeError, match="not yet"):
        layer(X)
    layer.fail = False
    layer(X)
    assert layer.w.numpy().tolist() == [1.0, 2.0, 3.0]
    status.assert_consumed()


def test_087_a_successor_of_what_was_restored_begins_anew(path: Path) -> None:
    saved(path, m=Holder(head=Holder(v=ll.Variable(3.0)), rest=ll.Variable(1.0)))
    m = Holder(head=Holder(v=ll.Variable(0.0)))
    ll.Checkpoint(m=m).restore(path).expect_partial()
    m.head = Holder(v=ll.Variable(-1.0))
    assert m.head.v.numpy() == -1.0


def test_087_initial_values_that_are_overwritten_draw_nothing(path: Path) -> None:
    model, generator = mlp(), ll.random.default_generator()
    model(X)
    saved(path, model=model, generator=generator)
    draws = ll.random.normal((3,)).tolist()
    again = ll.nn.Sequential(ll.nn.Dense(4), ll.nn.relu, ll.nn.Dense(2), ll.nn.Dense(3))
    ll.Checkpoint(model=ll.nn.Sequential(again[0], again[1], again[2]), generator=generator).restore(path)
    ll.function(again[:3])(X)
    assert ll.random.normal((3,)).tolist() == draws


# 88 The last restore wins


@pytest.mark.parametrize("swapped", [False, True])
def test_088_the_last_restore_wins(tmp_path: Path, swapped: bool) -> None:
    first = saved(tmp_path / "1", m=Holder(v=ll.Variable(1.0)), n=Holder(v=ll.Variable(10.0)))
    second = saved(tmp_path / "2", m=Holder(v=ll.Variable(2.0)))
    m, n = Holder(), Holder()
    one = ll.Checkpoint(m=m, n=n).restore(first).expect_partial()
    two = ll.Checkpoint(m=m).restore(second)
    shared = ll.Variable(0.0)
    for holder in (n, m) if swapped else (m, n):
        holder.v = shared
    assert shared.numpy() == 2.0
    two.assert_consumed()
    assert one.tree().of("unused")


def test_088_an_older_file_restored_later_wins(tmp_path: Path) -> None:
    v = ll.Variable(1.0)
    checkpoint = ll.Checkpoint(v=v)
    first = checkpoint.save(tmp_path / "x")
    v.assign(2.0)
    second = checkpoint.save(tmp_path / "x")
    checkpoint.restore(second)
    checkpoint.restore(first)
    assert v.numpy() == 1.0


# 89 Restore on assign


def test_089_an_existing_variable_is_given_the_value_when_it_is_attached(path: Path) -> None:
    saved(path, m=Holder(v=ll.Variable(3.0)))
    old = ll.Variable(7.0)
    m = Holder(v=None)
    ll.Checkpoint(m=m).restore(path)
    m.v = old
    assert old.numpy() == 3.0
    old.assign(8.0)
    m.v = old  # once only
    assert old.numpy() == 8.0


# 90 Ambiguity and merging


def test_090_one_saved_object_that_is_two_now_warns_and_fails_the_assertions(path: Path) -> None:
    shared = ll.Variable(3.0)
    saved(path, a=Holder(v=shared), b=Holder(v=shared))
    a, b = Holder(v=ll.Variable(0.0)), Holder(v=ll.Variable(0.0))
    with pytest.warns(CheckpointWarning, match="saved as one object, and is two now"):
        status = ll.Checkpoint(a=a, b=b).restore(path)
    assert (a.v.numpy(), b.v.numpy()) == (3.0, 0.0)
    with pytest.raises(CheckpointError, match="is two now"):
        status.assert_existing_objects_matched()
    with pytest.raises(CheckpointError, match="is two now"):
        status.assert_consumed()


def test_090_two_saved_objects_may_become_one(path: Path) -> None:
    saved(path, a=ll.Variable(3.0), b=ll.Variable(3.0))
    v = ll.Variable(0.0)
    ll.Checkpoint(a=v, b=v).restore(path).assert_consumed()
    assert v.numpy() == 3.0


# 91 Cycles and sharing


def circle(value: float) -> Any:
    a, b = Holder(v=ll.Variable(value)), Holder()
    a.other, b.other, b.same = b, a, a.v
    return a


def test_091_circles_and_shared_children_are_saved_once(path: Path) -> None:
    saved(path, a=circle(3.0))
    assert keys(path) == {"a/v"}
    again = circle(0.0)
    ll.Checkpoint(a=again).restore(path).assert_consumed()
    assert again.other.same.numpy() == 3.0


def test_091_circles_are_restored_later_too(path: Path) -> None:
    saved(path, a=circle(3.0))
    a = Holder()
    status = ll.Checkpoint(a=a).restore(path)
    a.other = Holder()
    a.other.other = a
    a.other.same = a.v = ll.Variable(0.0)
    assert a.v.numpy() == 3.0
    status.assert_consumed()


def test_091_what_waits_keeps_nothing_alive(path: Path) -> None:
    saved(path, m=Holder(v=ll.Variable(3.0), items=[ll.Variable(1.0)]))
    m = Holder(items=[])
    ll.Checkpoint(m=m).restore(path).expect_partial()
    gone = weakref.ref(m)
    gc.disable()
    try:
        del m
        assert gone() is None
    finally:
        gc.enable()
    from limelight.core import attachments

    assert not attachments.waiting


# 92 The status tells the truth


def test_092_assertions(path: Path) -> None:
    saved(path, a=ll.Variable(1.0), b=ll.Variable(2.0))
    status = ll.Checkpoint(a=ll.Variable(0.0), c=ll.Variable(9.0)).restore(path)
    with pytest.raises(CheckpointError, match="`b` is waiting"):
        status.assert_consumed()
    with pytest.raises(CheckpointError, match="`c` is new"):
        status.assert_existing_objects_matched()
    assert status.expect_partial() is status
    ll.Checkpoint(a=ll.Variable(0.0)).restore(path).assert_existing_objects_matched()


def test_092_the_status_stays_right(path: Path) -> None:
    saved(path, m=Holder(v=ll.Variable(3.0)))
    m = Holder()
    status = ll.Checkpoint(m=m).restore(path)
    with pytest.raises(CheckpointError, match="waiting"):
        status.assert_consumed()
    m.v = ll.Variable(0.0)
    status.assert_consumed()
    m.w = ll.Variable(0.0)
    with pytest.raises(CheckpointError, match="`m/w` is new"):
        status.assert_existing_objects_matched()


def test_092_what_was_given_to_nothing_is_told_once_when_it_is_too_late(path: Path) -> None:
    saved(path, m=Holder(v=ll.Variable(3.0), w=ll.Variable(4.0)))
    m = Holder(v=ll.Variable(0.0))
    ll.Checkpoint(m=m).restore(path)
    gone = [m]
    del m
    with pytest.warns(CheckpointWarning, match=r"1 saved values were given to no object: `m/w`") as told:
        gone.clear()
    assert len(told) == 1


def test_092_a_missing_file(tmp_path: Path) -> None:
    saved(tmp_path / "there.safetensors", v=ll.Variable(1.0))
    with pytest.raises(MissingCheckpointError, match=r"there is no file .*; .* has there.safetensors"):
        ll.Checkpoint(v=ll.Variable(0.0)).restore(tmp_path / "not.safetensors")
    assert issubclass(MissingCheckpointError, FileNotFoundError)


# 93 Shapes


def test_093_another_shape_is_a_value_error_and_nothing_is_restored(path: Path) -> None:
    saved(path, a=ll.Variable(1.0), b=ll.Variable([1.0, 2.0]))
    a, b = ll.Variable(0.0), ll.Variable([0.0, 0.0, 0.0])
    with pytest.raises(ValueError, match=r"`b` was saved as f32\[2\], and the variable is f32\[3\]") as raised:
        ll.Checkpoint(a=a, b=b).restore(path)
    assert isinstance(raised.value, CheckpointError)
    assert a.numpy() == 0.0


def test_093_another_shape_of_a_variable_that_is_made_later(path: Path) -> None:
    one = ll.nn.Dense(2)
    one(X)
    saved(path, layer=one)
    layer = ll.nn.Dense(2)
    ll.Checkpoint(layer=layer).restore(path).expect_partial()
    with pytest.raises(ValueError, match=r"`layer/kernel` was saved as f32\[3,2\], and the variable is f32\[5,2\]"):
        layer(ll.ones((1, 5)))
    layer(X)
    np.testing.assert_array_equal(layer.kernel.numpy(), one.kernel.numpy())
