"""Section 4.3, state: behaviours 94 to 100 and 104: what checkpoints save."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from checkpointed import Holder, X, mlp, saved  # beside this file
from safetensors import safe_open

import limelight as ll
from limelight.errors import CheckpointError, CheckpointWarning


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.safetensors"


# 94 Containers


def containers(value: float) -> Any:
    def v() -> Any:
        return ll.Variable(value)

    return Holder(
        lists=[v(), [v()], (v(), {"k": v()})], pairs=(v(), v()), table={"a": v(), 3: v(), "3": v()}, empty=[], none={}
    )


def test_094_lists_tuples_and_dictionaries(path: Path) -> None:
    one = containers(0.0)
    for i, variable in enumerate(v for _, v in one.named_variables()):
        variable.assign(float(i))
    saved(path, m=one)
    two = containers(-1.0)
    ll.Checkpoint(m=two).restore(path).assert_consumed()
    pairs = zip(one.variables, two.variables, strict=True)
    assert all(a.numpy() == b.numpy() for a, b in pairs)


@pytest.mark.parametrize("old", [False, True], ids=["made later", "made before"])
def test_094_what_is_appended_gets_its_value(path: Path, old: bool) -> None:
    saved(path, m=Holder(items=[ll.Variable(1.0), ll.Variable(2.0)]))
    m = Holder(items=[])
    before = [ll.Variable(0.0), ll.Variable(0.0)]
    status = ll.Checkpoint(m=m).restore(path)
    for i in range(2):
        m.items.append(before[i] if old else ll.Variable(0.0))
        assert m.items[i].numpy() == i + 1
    m.items[0].assign(9.0)
    assert m.items[0].numpy() == 9.0
    status.assert_consumed()
    from limelight.core.storage import Storage

    assert type(ll.Variable(1.0)._data) is Storage


def test_094_entries_of_dictionaries_and_layers_in_lists(path: Path) -> None:
    one = Holder(layers=[ll.nn.Dense(2)], by_name={"a": ll.Variable(3.0)})
    y = one.layers[0](X)
    saved(path, m=one)
    m = Holder(layers=[], by_name={})
    status = ll.Checkpoint(m=m).restore(path)
    m.by_name["a"] = ll.Variable(0.0)
    m.layers.append(ll.nn.Dense(2))
    np.testing.assert_array_equal(m.layers[0](X).numpy(), y.numpy())
    assert m.by_name["a"].numpy() == 3.0
    status.assert_consumed()


def test_094_another_structure_reads_older_files(path: Path) -> None:
    saved(path, m=Holder(items=[ll.Variable(1.0), ll.Variable(2.0)], d={"a": ll.Variable(3.0)}))
    m = Holder(items=(ll.Variable(0.0), ll.Variable(0.0)), d=Holder(a=ll.Variable(0.0)), more=[], f=len)
    ll.Checkpoint(m=m).restore(path).assert_consumed()
    assert ([v.numpy() for v in m.items], m.d.a.numpy()) == ([1.0, 2.0], 3.0)


def test_094_a_shorter_tuple_says_what_is_unused(path: Path) -> None:
    saved(path, m=Holder(items=(ll.Variable(1.0), ll.Variable(2.0))))
    status = ll.Checkpoint(m=Holder(items=(ll.Variable(0.0),))).restore(path).expect_partial()
    (record,) = status.tree().of("unused")
    assert (record.path, record.why) == ("m/items/1", "the tuple has 1 elements")


def test_094_keys_that_no_file_can_keep_are_refused_where_they_matter(path: Path) -> None:
    saved(path, m=Holder(cache={(1, 2): [3]}, v=ll.Variable(1.0)))
    with pytest.raises(CheckpointError, match=r"the dictionary at 'm/d' has the key \(1, 2\)"):
        saved(path, m=Holder(d={(1, 2): ll.Variable(1.0)}))


def test_094_a_list_in_another_order_is_saved_and_restored_by_position(path: Path) -> None:
    a, b = ll.Variable(1.0), ll.Variable(2.0)
    m = Holder(items=[a, b])
    m.items.reverse()
    saved(path, m=m)
    a.assign(0.0), b.assign(0.0)
    ll.Checkpoint(m=m).restore(path).assert_consumed()
    assert (a.numpy(), b.numpy()) == (1.0, 2.0)


def test_094_a_list_that_was_turned_round_since_warns(path: Path) -> None:
    a, b = ll.Variable(1.0), ll.Variable(2.0)
    m = Holder(items=[a, b])
    checkpoint = ll.Checkpoint(m=m)
    checkpoint.write(path)
    m.items.reverse()
    with pytest.warns(CheckpointWarning, match="`m/items` has another order"):
        checkpoint.restore(path)


# 95 NumPy and plain Python state


def test_095_arrays_and_plain_values_of_a_state(path: Path) -> None:
    def made() -> Any:
        return ll.State(
            a=np.arange(3.0), zero=np.array(2, "int8"), scalar=np.float32(1.5), epoch=3, name="run", flag=True,
            none=None,
            big=2**100, inf=float("-inf"), z=1 + 2j, raw=b"\0\xff", pair=(1, [2.5, "x"]), s={1, 2},
            t=ll.constant([1.0]),
            d={"a": 1, 2: (np.ones(2),)}, words=np.array(["ab", "c"]), c=np.array([1 + 2j]),
        )  # fmt: skip

    state = made()
    state.a[1] = 10.0  # in place: the next save sees it
    saved(path, state=state)
    again = ll.State()
    ll.Checkpoint(state=again).restore(path).assert_consumed()  # what is not there is made
    assert vars(again).keys() == vars(state).keys()
    assert again.a.tolist() == [0.0, 10.0, 2.0]
    assert (again.zero.shape, again.zero.dtype, type(again.scalar)) == ((), np.int8, np.float32)
    assert type(again.t) is ll.Tensor
    for name in ("epoch", "name", "flag", "none", "big", "inf", "z", "raw", "pair", "s", "scalar", "zero"):
        assert getattr(again, name) == getattr(state, name), name
    assert again.d[2][0].tolist() == [1.0, 1.0]
    assert again.words.tolist() == ["ab", "c"]
    assert again.c.tolist() == [1 + 2j]


def test_095_lists_and_arrays_are_changed_in_place(path: Path) -> None:
    state = ll.State(losses=[1.0], a=np.zeros(2))
    losses, a = state.losses, state.a
    checkpoint = ll.Checkpoint(state=state)
    checkpoint.write(path)
    losses.append(2.0)
    a += 1
    checkpoint.restore(path)
    assert (losses, a.tolist()) == ([1.0], [0.0, 0.0])
    assert state.losses is losses
    assert state.a is a


def test_095_an_array_of_another_shape_is_replaced(path: Path) -> None:
    saved(path, state=ll.State(a=np.zeros(3)))
    state = ll.State(a=np.ones(2, "int32"))
    ll.Checkpoint(state=state).restore(path).assert_consumed()
    assert (state.a.shape, state.a.dtype) == ((3,), np.float64)


def test_095_the_checkpoint_is_a_state_itself(path: Path) -> None:
    checkpoint = ll.Checkpoint(epoch=1)
    checkpoint.epoch += 1
    checkpoint.write(path)
    again = ll.Checkpoint(epoch=0)
    again.restore(path).assert_consumed()
    assert again.epoch == 2


def test_095_what_a_file_cannot_keep_is_refused_by_name(path: Path) -> None:
    with pytest.raises(ll.errors.ArgumentError, match=r"'thing' is, or holds, a object.*get_state"):
        ll.Checkpoint(thing=object())
    state = ll.State()
    state.f = lambda: 0
    with pytest.raises(CheckpointError, match="'state/f' is, or holds, a function"):
        saved(path, state=state)
    assert not path.exists()


# 96 The position of an iterator


class Rows:
    """An iterator that knows where it is, as those of other libraries."""

    def __init__(self) -> None:
        self.order, self.at = list(np.random.default_rng(3).permutation(10).tolist()), 0

    def __next__(self) -> int:
        self.at += 1
        return int(self.order[self.at - 1])

    def state_dict(self) -> dict[str, Any]:
        return {"order": self.order, "at": self.at}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.order, self.at = state["order"], state["at"]


def test_096_an_iterator_goes_on_at_the_next_element(path: Path) -> None:
    rows = Rows()
    next(rows), next(rows)
    checkpoint = ll.Checkpoint(rows=rows)
    checkpoint.write(path)
    rest = [next(rows) for _ in range(5)]
    again = Rows()
    again.order.reverse()
    ll.Checkpoint(rows=again).restore(path).assert_consumed()
    assert [next(again) for _ in range(5)] == rest
    checkpoint.restore(path)  # to an earlier point
    assert [next(rows) for _ in range(5)] == rest


# 98 Slots


def trained(model: Any, optimizer: Any, steps: int, stage: Any = lambda f: f) -> list[float]:
    @stage
    def step(x: Any) -> Any:
        with ll.GradientTape() as tape:
            loss = ll.mean(model(x) ** 2)
        optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
        return loss

    return [step(X).item() for _ in range(steps)]


@pytest.mark.parametrize("stage", [lambda f: f, ll.function], ids=["eager", "staged"])
@pytest.mark.parametrize("built", [False, True])
def test_098_slots_are_matched_by_their_variable(path: Path, stage: Any, built: bool) -> None:
    model, optimizer = mlp(), ll.optim.Adam(0.1)
    trained(model, optimizer, 3)
    saved(path, model=model, optimizer=optimizer)
    rest = trained(model, optimizer, 3)
    again, fresh = mlp(), ll.optim.Adam(0.5)
    if built:
        again(X)
        fresh.build(again.variables[::-1])  # another order
    status = ll.Checkpoint(optimizer=fresh, model=again).restore(path)
    np.testing.assert_allclose(trained(again, fresh, 3, stage), rest, rtol=1e-5)
    status.assert_consumed()


def test_098_slots_without_their_variables_are_refused(path: Path) -> None:
    model, optimizer = mlp(), ll.optim.Adam(0.1)
    trained(model, optimizer, 1)
    with pytest.raises(CheckpointError, match=r"write ll.Checkpoint\(model=model, optimizer=adam\)"):
        saved(path, optimizer=optimizer)


def test_098_another_optimiser_says_which_slots_it_does_not_keep(path: Path) -> None:
    model, optimizer = mlp(), ll.optim.Adam(0.1)
    trained(model, optimizer, 1)
    saved(path, model=model, optimizer=optimizer)
    status = ll.Checkpoint(model=model, optimizer=ll.optim.SGD(0.1)).restore(path).expect_partial()
    assert {r.why for r in status.tree().of("unused")} == {"SGD keeps no such slot"}


# 99 Numbering and writing


def test_099_save_counts_and_write_does_not(tmp_path: Path) -> None:
    checkpoint = ll.Checkpoint(v=ll.Variable(1.0))
    names = [checkpoint.save(tmp_path / "m.safetensors").name, checkpoint.save(str(tmp_path / "m.safetensors")).name]
    assert names == ["m-1.safetensors", "m-2.safetensors"]
    assert checkpoint.write(np.array(str(tmp_path / "other"))).name == "other"
    assert checkpoint.save_counter == 2
    again = ll.Checkpoint(v=ll.Variable(0.0))
    again.restore(tmp_path / "m-2.safetensors")
    assert again.save(tmp_path / "m.safetensors").name == "m-3.safetensors"
    assert ll.Checkpoint(v=ll.Variable(0.0)).save(tmp_path / "m.safetensors").name == "m-4.safetensors"


def test_099_a_staged_function_writes_at_each_call_what_is_then(tmp_path: Path) -> None:
    v = ll.Variable(0.0)
    checkpoint = ll.Checkpoint(v=v)

    @ll.function
    def step(x: Any) -> Any:
        v.assign_add(x)
        checkpoint.save(tmp_path / "s")
        v.assign_add(100.0)
        return v.read_value()

    step(ll.constant(1.0)), step(ll.constant(1.0))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["s-1", "s-2"]
    values = []
    for name in ("s-1", "s-2"):
        with safe_open(tmp_path / name, "np") as file:
            values.append(file.get_tensor("v").item())
    assert values == [1.0, 102.0]


def test_099_files_are_closed_and_half_a_file_is_no_checkpoint(tmp_path: Path) -> None:
    path = saved(tmp_path / "a", v=ll.Variable(np.ones(100, "float32")))
    whole = path.read_bytes()
    for length in (0, 4, 8, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(CheckpointError):
            ll.Checkpoint(v=ll.Variable(np.zeros(100, "float32"))).restore(path)


# 100 Copies


def test_100_a_copy_is_saved_and_restored_by_itself(tmp_path: Path) -> None:
    one = ll.Checkpoint(m=Holder(v=ll.Variable(1.0)), epoch=1)
    two = copy.deepcopy(one)
    two.m.v.assign(2.0)
    two.epoch = 2
    one.write(tmp_path / "1"), two.write(tmp_path / "2")
    one.m.v.assign(0.0), two.m.v.assign(0.0)
    two.restore(tmp_path / "2").assert_consumed()
    assert (one.m.v.numpy(), two.m.v.numpy(), one.epoch, two.epoch) == (0.0, 2.0, 1, 2)
    one.restore(tmp_path / "1").assert_consumed()
    assert (one.m.v.numpy(), two.m.v.numpy()) == (1.0, 2.0)


# 104 Restoring does not trace again


def test_104_restoring_does_not_trace_again(path: Path) -> None:
    model, optimizer, generator = mlp(), ll.optim.Adam(0.1), ll.random.Generator(1)
    checkpoint = ll.Checkpoint(model=model, optimizer=optimizer, generator=generator)

    @ll.function
    def step(x: Any) -> Any:
        with ll.GradientTape() as tape:
            loss = ll.mean((model(x) + generator.normal((2, 2))) ** 2)
        optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
        return loss

    step(X)
    checkpoint.write(path)
    first = [step(X).item() for _ in range(3)]
    count = step.trace_count
    checkpoint.restore(path).assert_consumed()
    assert [step(X).item() for _ in range(3)] == first
    assert step.trace_count == count


def test_104_the_graph_is_json_and_nothing_is_pickled(path: Path) -> None:
    saved(path, m=mlp(), state=ll.State(x=[1, {"a": (2,)}]))
    with safe_open(path, "np") as file:
        graph = json.loads(file.metadata()["limelight"])
    assert (graph["format"], graph["version"]) == ("limelight.checkpoint", 1)
    assert b"pickle" not in path.read_bytes()
