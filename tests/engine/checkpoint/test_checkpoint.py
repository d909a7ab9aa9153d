"""`Checkpoint` beyond the numbered behaviours: bad input, several files, threads, other state."""

from __future__ import annotations

import json
import os
import random

import numpy as np
import pytest
from safetensors import safe_open

import limelight as ll
from limelight.checkpoint import file_system
from limelight.errors import ArgumentError, CallError, CheckpointError, MissingCheckpointError


def holder(**attributes):
    made = ll.Module()
    for name, value in attributes.items():
        setattr(made, name, value)
    return made


def with_graph(path, change):
    """The file again, with its object graph changed."""
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    graph = json.loads(header["__metadata__"]["limelight"])
    change(graph)
    header["__metadata__"]["limelight"] = json.dumps(graph)
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data[8 + length :])
    return path


# Bad input: the sentence that says what to do, and nothing restored


def test_a_folder_where_a_file_should_be(tmp_path):
    v = ll.Variable(1.0)
    with pytest.raises(CheckpointError, match=r"is a folder; a checkpoint is a file.*CheckpointManager"):
        ll.Checkpoint(v=v).restore(tmp_path)
    with pytest.raises(CheckpointError, match=r"is a folder; a checkpoint is a file: write .*/model.safetensors"):
        ll.Checkpoint(v=v).write(tmp_path)


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(CheckpointError, match=r"there is no folder .*/no; make it with os.makedirs"):
        ll.Checkpoint(v=ll.Variable(1.0)).write(tmp_path / "no" / "x")
    with pytest.raises(MissingCheckpointError, match=r"the folder .*/no does not exist"):
        ll.Checkpoint(v=ll.Variable(1.0)).restore(tmp_path / "no" / "x")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="makes a pipe with a name")
def test_a_pipe_where_a_file_should_be(tmp_path):
    os.mkfifo(tmp_path / "x")
    with pytest.raises(CheckpointError, match="is no file but a pipe or a device"):
        ll.Checkpoint(v=ll.Variable(1.0)).restore(tmp_path / "x")


def test_a_newer_version(tmp_path):
    path = with_graph(ll.Checkpoint(v=ll.Variable(1.0)).write(tmp_path / "x"), lambda graph: graph.update(version=4))
    with pytest.raises(
        CheckpointError, match=r"is of version 4 of the format.*versions up to 3: read it with the lime"
    ):
        ll.Checkpoint(v=ll.Variable(1.0)).restore(path)


def test_what_a_newer_writer_of_this_version_adds_is_ignored(tmp_path):
    def change(graph):
        graph["new"] = 1
        graph["nodes"][1]["new"] = [1]

    path = with_graph(ll.Checkpoint(v=ll.Variable(1.0)).write(tmp_path / "x"), change)
    ll.Checkpoint(v=ll.Variable(0.0)).restore(path).assert_consumed()


@pytest.mark.parametrize("path", [None, 3, "", b"x", "a\0b"])
def test_a_path_that_is_none(path):
    with pytest.raises(ArgumentError, match="needs the name of a file"):
        ll.Checkpoint(v=ll.Variable(1.0)).write(path)


def test_another_dtype_or_kind(tmp_path):
    path = ll.Checkpoint(v=ll.Variable(1.0), g=ll.random.Generator(1)).write(tmp_path / "x")
    with pytest.raises(CheckpointError, match=r"`v` was saved as f32\[\], and the variable is f64\[\] now"):
        ll.Checkpoint(v=ll.Variable(1.0, "float64")).restore(path)
    with pytest.raises(CheckpointError, match="`g` was saved as a generator, and is a Variable now"):
        ll.Checkpoint(g=ll.Variable(1.0)).restore(path)
    with pytest.raises(CheckpointError, match=r"`v` was saved as .*, and is a Module now"):
        ll.Checkpoint(v=ll.Module()).restore(path)


def test_nothing_is_half_restored_where_a_state_is_refused(tmp_path):
    class Picky:
        def __init__(self):
            self.state = 0

        def get_state(self):
            return self.state

        def set_state(self, state):
            if state == 13:
                raise RuntimeError("not thirteen")
            self.state = state

    a, b, v = Picky(), Picky(), ll.Variable(1.0)
    a.state, b.state = 5, 13
    path = ll.Checkpoint(a=a, b=b, v=v).write(tmp_path / "x")
    a.state, b.state = 1, 2
    v.assign(0.0)
    with pytest.raises(CheckpointError, match="`b`, a Picky, did not take its saved state, and nothing was restored"):
        ll.Checkpoint(a=a, b=b, v=v).restore(path)
    assert (a.state, b.state, v.numpy()) == (1, 2, 0.0)


def test_names_and_objects_that_cannot_be(tmp_path):
    with pytest.raises(CallError, match=r"write ll.Checkpoint\(model=model\)"):
        ll.Checkpoint(ll.Module())
    with pytest.raises(ArgumentError, match="the name 'save' is a method's"):
        ll.Checkpoint(save=ll.Variable(1.0))
    with pytest.raises(ArgumentError, match="begins with an underscore"):
        ll.Checkpoint(_v=ll.Variable(1.0))
    with pytest.raises(ArgumentError, match="of functions and their like nothing is saved"):
        ll.Checkpoint(f=len)


def test_restoring_while_tracing_is_refused(tmp_path):
    checkpoint = ll.Checkpoint(v=ll.Variable(1.0))
    path = checkpoint.write(tmp_path / "x")
    with pytest.raises(CallError, match="restore outside of it"):
        ll.function(lambda: checkpoint.restore(path))()


# Several files


def test_large_checkpoints_are_several_files(tmp_path):
    values = {f"v{i}": ll.Variable(np.full(10, i, "float32")) for i in range(5)}
    checkpoint = ll.Checkpoint(**values)
    path = checkpoint.write(tmp_path / "x", most_bytes=80)
    assert len(list(tmp_path.iterdir())) == 4
    for v in values.values():
        v.assign(np.zeros(10, "float32"))
    checkpoint.restore(path).assert_consumed()
    assert [v.numpy()[0] for v in values.values()] == [0, 1, 2, 3, 4]
    checkpoint.write(path)  # what the file before it named is gone with it
    assert os.listdir(tmp_path) == ["x"]


@pytest.mark.parametrize("name", ["../y", "/etc/passwd", "sub/y", "..", "y"])
def test_files_elsewhere_are_not_opened(tmp_path, monkeypatch, name):
    path = ll.Checkpoint(v=ll.Variable([1.0]), w=ll.Variable([1.0])).write(tmp_path / "x", most_bytes=4)
    with_graph(path, lambda graph: graph.update(files={name: ["v", "w"]}))
    opened = []
    reader = file_system.Reader.__init__
    monkeypatch.setattr(
        file_system.Reader, "__init__", lambda self, at, **more: opened.append(at) or reader(self, at, **more)
    )
    with pytest.raises(CheckpointError, match="none of a checkpoint's, in its own folder"):
        ll.Checkpoint(v=ll.Variable([1.0])).restore(path)
    assert opened == [path]


def test_a_link_to_elsewhere_is_not_followed(tmp_path):
    path = ll.Checkpoint(v=ll.Variable([1.0]), w=ll.Variable([1.0])).write(tmp_path / "x", most_bytes=4)
    part = next(p for p in tmp_path.iterdir() if p != path)
    moved = part.rename(tmp_path / "elsewhere")
    part.symlink_to(moved)
    with pytest.raises(CheckpointError, match="cannot be read"):
        ll.Checkpoint(v=ll.Variable([1.0])).restore(path)


def test_parts_of_another_save_are_not_taken(tmp_path):
    checkpoint = ll.Checkpoint(v=ll.Variable([1.0]), w=ll.Variable([1.0]))
    one, two = (checkpoint.write(tmp_path / name, most_bytes=4) for name in "ab")
    parts = [sorted(p for p in tmp_path.iterdir() if p.name.startswith(f"{name}.")) for name in "ab"]
    parts[0][0].write_bytes(parts[1][0].read_bytes())
    with pytest.raises(CheckpointError, match="is no part of a: copy all files of one save together"):
        checkpoint.restore(one)
    checkpoint.restore(two)


# Writing on a thread


def test_a_thread_writes_the_values_of_when_it_was_asked(tmp_path, monkeypatch):
    import threading

    v, a = ll.Variable(1.0), np.ones(3)
    checkpoint = ll.Checkpoint(v=v, s=ll.State(a=a, items=[1]))
    go, wrote = threading.Event(), []

    class Waits(file_system.Files):
        def create(self, path):
            assert go.wait(300)
            wrote.append(threading.current_thread())
            return super().create(path)

    monkeypatch.setattr(file_system, "files", Waits())
    path = checkpoint.write(tmp_path / "x", background=True)
    v.assign(2.0)
    a += 1
    checkpoint.s.items.append(2)
    assert not path.exists()
    go.set()
    checkpoint.wait()
    assert threading.current_thread() not in wrote
    checkpoint.restore(path).assert_consumed()
    assert (v.numpy(), a.tolist(), checkpoint.s.items) == (1.0, [1.0] * 3, [1])


def test_no_array_of_a_variable_is_copied(tmp_path):
    from limelight.checkpoint import snapshot

    v = ll.Variable(np.ones(1000, "float32"))
    taken = snapshot.take(ll.State(v=v), copied=True)
    assert np.shares_memory(taken.arrays["v"].get(), v._data.array)


@pytest.mark.parametrize("call", ["write", "wait", "restore"])
def test_what_fails_on_the_thread_is_raised_by_the_next_call(tmp_path, call):
    checkpoint = ll.Checkpoint(v=ll.Variable(1.0))
    good = checkpoint.write(tmp_path / "x")
    checkpoint.write(tmp_path / "no" / "x", background=True)
    checkpoint._background._jobs.join()
    with pytest.raises(CheckpointError, match="there is no folder"):
        {"write": lambda: checkpoint.write(good), "wait": checkpoint.wait, "restore": lambda: checkpoint.restore(good)}[
            call
        ]()
    checkpoint.restore(good)


# State of other kinds


def test_generators_of_python_and_numpy(tmp_path):
    made = [random.Random(1), np.random.default_rng(2), np.random.RandomState(3)]
    checkpoint = ll.Checkpoint(a=made[0], b=made[1], m=holder(c=[made[2]]))
    path = checkpoint.write(tmp_path / "x")
    first = [made[0].random(), made[1].random(), made[2].random_sample()]
    checkpoint.restore(path).assert_consumed()
    assert [made[0].random(), made[1].random(), made[2].random_sample()] == first


def test_open_shapes_take_other_sizes(tmp_path):
    v = ll.Variable([1.0, 2.0], shape=(None,))
    path = ll.Checkpoint(v=v).write(tmp_path / "x")
    v.assign([0.0, 0.0, 0.0])
    ll.Checkpoint(v=v).restore(path)
    assert v.numpy().tolist() == [1.0, 2.0]


def test_values_go_where_their_variable_is(tmp_path, second_cpu):
    with ll.device("cpu:1"):
        v = ll.Variable([1.0, 2.0])
    path = ll.Checkpoint(v=v).write(tmp_path / "x")
    v.assign([0.0, 0.0])
    ll.Checkpoint(v=v).restore(path).assert_consumed()
    assert v.numpy().tolist() == [1.0, 2.0]
    assert v.read_value().device == v.device
    assert v.device.short == "CPU:1"


def test_tapes_and_events_see_no_op(tmp_path):
    v = ll.Variable(1.0)
    checkpoint = ll.Checkpoint(v=v)
    path = checkpoint.write(tmp_path / "x")
    with ll.GradientTape() as tape:
        checkpoint.restore(path)
    assert not tape.entries


def test_the_tree_is_read_by_people_and_programs(tmp_path):
    path = ll.Checkpoint(m=holder(v=ll.Variable([1.0]), old=ll.Variable(2.0)), f=ll.Variable(1.0)).write(tmp_path / "x")
    target = ll.Checkpoint(m=holder(v=ll.Variable([0.0]), old=len, new=ll.Variable(3)), f=ll.Variable(0.0))
    tree = target.restore(path).expect_partial().tree()
    assert tree.counts == {"matched": 2, "unused": 1, "new": 1}
    assert str(tree).splitlines()[:6] == [
        "x: 2 matched, 1 unused, 1 new",
        "f  f32[]            matched",
        "m",
        "  v    f32[1]           matched",
        "  old  f32[]            unused: a builtin_function_or_method is there now, which has no state",
        "  new  i32[]            new",
    ]
    assert tree.to_dict()["records"][0]["path"] == "f"


def test_ten_thousand_variables_cost_no_more_than_a_few_calls_each(tmp_path):
    """Python calls are counted, since times say little: 10,000 variables shall take less than a second each way."""
    import sys

    checkpoint = ll.Checkpoint(m=holder(vs=[ll.Variable(float(i)) for i in range(500)]))
    counted = []
    for run in (lambda: checkpoint.write(tmp_path / "x"), lambda: checkpoint.restore(tmp_path / "x")):
        calls = []
        sys.setprofile(lambda frame, event, argument, calls=calls: calls.append(1) if event == "call" else None)
        try:
            run()
        finally:
            sys.setprofile(None)
        counted.append(len(calls) / 500)
    assert max(counted) < 110, counted


def test_names_that_safetensors_readers_see(tmp_path):
    path = ll.Checkpoint(model=ll.nn.Sequential(ll.nn.Dense(1))).write(tmp_path / "x")
    with safe_open(path, "np") as file:
        assert list(file.keys()) == []  # its weights are not made yet
