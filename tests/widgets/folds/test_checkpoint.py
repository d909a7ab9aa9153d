"""The fold and the view of checkpoints: they follow files and objects, and keep nothing alive."""

from __future__ import annotations

import gc
import json
import warnings
import weakref

import pytest

import limelight as ll
from limelight_widgets import checkpoint
from limelight_widgets.folds.checkpoint import CheckpointFold, state_of


@pytest.fixture
def saved(tmp_path):
    model = ll.nn.Sequential(ll.nn.Dense(2), ll.nn.Dense(1))
    model(ll.ones((1, 3)))
    return model, ll.Checkpoint(model=model, epoch=1).write(tmp_path / "a.safetensors")


def fold_of(view):
    fold = view._feed.fold
    fold.look()
    return fold


def test_contents_are_rows(saved):
    state = checkpoint(saved[1]).state()
    assert state["columns"] == ["saved at", "value", "kind"]
    assert ["model/layers/0/kernel", "f32[3,2]", "variable"] in state["rows"]
    assert state["headline"].partition(",")[0] == "a.safetensors: 5 values"
    assert json.dumps(state)


def test_what_waits_is_matched_when_it_is_built(saved):
    other = ll.nn.Sequential(ll.nn.Dense(2), ll.nn.Dense(1))
    holder = ll.Checkpoint(model=other, epoch=0)
    status = holder.restore(saved[1])
    views = [checkpoint(status), checkpoint(saved[1], holder)]
    assert [view.state()["counts"] for view in views] == [{"waiting": 4, "matched": 1}] * 2
    marks = [fold_of(view).since(0)[1] for view in views]
    assert [fold_of(view).since(mark) for view, mark in zip(views, marks, strict=True)] == [
        ({}, mark) for mark in marks
    ]
    other(ll.ones((1, 3)))
    for view, mark in zip(views, marks, strict=True):
        update, now = fold_of(view).since(mark)
        assert update["counts"] == {"matched": 5}
        assert now != mark
    assert views[0].to_dict() == json.loads(json.dumps(status.tree().to_dict()))


def test_a_file_that_is_written_again_is_read_again(saved, tmp_path):
    model, path = saved
    second = ll.Checkpoint(model=model, epoch=1).write(tmp_path / "b.safetensors")
    view = checkpoint(path, second)
    assert view.state()["counts"] == {"equal": 5}
    model.layers[0].bias.assign_add(ll.ones((2,)))
    ll.Checkpoint(model=model, epoch=2).write(second)
    fold = fold_of(view)
    assert fold.state()["counts"] == {"changed": 2, "equal": 3}
    assert fold.state()["states"] == ["changed", "changed", "equal", "equal", "equal"]
    second.write_bytes(b"no file of ours")
    assert fold_of(view).state()["counts"] == {"changed": 2, "equal": 3}
    second.unlink()
    assert "2 changed, 3 equal" in repr(view)


def test_a_view_keeps_no_object_alive(saved):
    model = ll.nn.Dense(1)
    model(ll.ones((1, 3)))
    holder = ll.Checkpoint(model=model)
    view = checkpoint(saved[1], holder)
    gone = weakref.ref(model)
    before = view.state()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        del model, holder
        gc.collect()
    assert gone() is None
    ll.Variable(1.0)
    assert fold_of(view).state() == before


def test_many_rows_are_cut_and_counted(monkeypatch, saved):
    from limelight_widgets.folds import checkpoint as module

    monkeypatch.setattr(module, "MOST_ROWS", 3)
    answer = ll.checkpoint.contents(saved[1])
    state = state_of(answer)
    assert (len(state["rows"]), state["hidden"]) == (3, 2)
    assert CheckpointFold(lambda: answer, []).state() == state


def test_what_cannot_be_shown_is_refused(saved, tmp_path):
    with pytest.raises(ll.errors.MissingCheckpointError):
        checkpoint(tmp_path / "none")
    with pytest.raises(ll.errors.ArgumentError, match="needs the name of a file"):
        checkpoint(saved[0])
