"""Runs that go back: to an earlier checkpoint, to one from before the first step, to the best of several."""

from __future__ import annotations

import math
import subprocess
import sys
import threading

import numpy as np
import pytest

import limelight as ll
from limelight.errors import ArgumentError, CheckpointError, CheckpointWarning


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_metrics_may_be_nan_or_infinite(tmp_path, value):
    v = ll.Variable(0.0)
    manager = ll.CheckpointManager({"v": v}, tmp_path, keep=3, best="loss")
    for loss in (2.0, value, 3.0):
        v.assign_add(1.0)
        manager.save(loss=loss, other=value)
    w = ll.Variable(0.0)
    again = ll.CheckpointManager({"v": w}, tmp_path, best="loss")
    again.restore().assert_consumed()
    assert (w.item(), again.step) == (3.0, 3)
    assert again.checkpoints[1].metrics["loss"] == pytest.approx(value, nan_ok=True)
    assert again.best.step == (2 if value == -math.inf else 1)


@pytest.mark.parametrize("make", [lambda: ll.optim.Momentum(0.1, 0.9), lambda: ll.optim.Adam(0.1)])
@pytest.mark.parametrize("staged", [False, True])
def test_a_checkpoint_from_before_the_first_step_begins_anew(tmp_path, make, staged):
    v, other, optimizer = ll.Variable([1.0, 2.0]), ll.Variable(3.0), make()
    checkpoint = ll.Checkpoint(v=v, optimizer=optimizer)
    path = checkpoint.write(tmp_path / "begin")
    optimizer.apply([other.read_value()], [other])
    kept = [slot.numpy() for slot in optimizer.slots_of(other).values()]
    step = lambda: optimizer.apply([v.read_value()], [v])  # noqa: E731
    step = ll.function(step) if staged else step
    folds = []
    for _ in range(3):
        checkpoint.restore(path).expect_partial()
        for _ in range(3):
            step()
        folds.append(v.numpy())
    np.testing.assert_array_equal(folds[0], folds[1])
    np.testing.assert_array_equal(folds[0], folds[2])
    now = [slot.numpy() for slot in optimizer.slots_of(other).values()]
    np.testing.assert_array_equal(kept, now, err_msg="slots of a variable that is not in the file")


def test_a_run_that_went_back_goes_on_where_it_went(tmp_path):
    v = ll.Variable(0.0)
    manager = ll.CheckpointManager({"v": v}, tmp_path, keep=3, best="loss")
    for loss in (3.0, 2.0, 1.0, 4.0, 5.0, 6.0):
        v.assign_add(1.0)
        manager.save(loss=loss)
    manager.restore("best")
    for _ in range(2):
        v.assign(v + 100.0)
        manager.save(loss=1.5)
    assert [saved.step for saved in manager.checkpoints] == [3, 6, 4, 5]  # in the order in which they were written
    w = ll.Variable(0.0)
    again = ll.CheckpointManager({"v": w}, tmp_path)
    again.restore()
    assert (w.item(), again.step) == (203.0, 5)


def test_a_file_without_a_count_of_files_is_older(tmp_path):
    v = ll.Variable(1.0)
    for step in (9, 10):
        ll.Checkpoint(v=v).write_now(tmp_path / f"checkpoint-{step}.safetensors", step=step, metrics={})
    manager = ll.CheckpointManager({"v": v}, tmp_path)
    assert manager.newest.step == 10
    manager.save(3)
    assert [saved.step for saved in manager.checkpoints] == [9, 10, 3]


@pytest.mark.parametrize(
    ("steps", "every", "written"),
    [
        (range(32, 700, 32), 100, [128, 224, 320, 416, 512, 608]),
        ((50, 150, 199, 250, 320), 100, [150, 250, 320]),
        ((1, 3, 5, 7), 2, [3, 5, 7]),
        (range(1, 8), 3, [3, 6]),
    ],
)
def test_every_counts_steps_that_are_done_by_many(tmp_path, steps, every, written):
    manager = ll.CheckpointManager({"v": ll.Variable(1.0)}, tmp_path, every=every, keep=None)
    assert [step for step in steps if manager.save(step)] == written


@pytest.mark.parametrize("second", [1.0, 2.0])
def test_one_object_for_two_saved_values(tmp_path, second):
    path = ll.Checkpoint(a=ll.Variable(1.0), b=ll.Variable(second)).write(tmp_path / "two")
    x = ll.Variable(0.0)
    if second == 1.0:
        ll.Checkpoint(a=x, b=x).restore(path).assert_consumed()
        assert x.item() == 1.0
    else:
        with pytest.raises(CheckpointError, match="`a` and `b` were saved with two values, and are one Variable now"):
            ll.Checkpoint(a=x, b=x).restore(path)
        assert x.item() == 0.0


def test_tied_weights_take_equal_arrays_only():
    module = ll.nn.Sequential(ll.nn.Embedding(3, 2))
    module.build(ll.TensorSpec((None,), "int32"))
    module.head = module.layers[0]
    ones = np.ones((3, 2), "f4")
    ll.nn.load_weights(module, {"layers.0.table": ones, "head.table": ones})
    with pytest.raises(CheckpointError, match="saved with two values"):
        ll.nn.load_weights(module, {"layers.0.table": ones, "head.table": 0 * ones})
    np.testing.assert_array_equal(module.head.table.numpy(), ones)


def test_pytorchs_names_without_its_layout_are_refused():
    dense = ll.nn.Sequential(ll.nn.Dense(3))
    arrays = {"fc.weight": np.ones((3, 2), "f4"), "fc.bias": np.ones(3, "f4")}
    with pytest.raises(CheckpointError, match=r"PyTorch's name for the 'kernel' of a Dense: .*layout=\"torch\""):
        ll.nn.load_weights(dense, arrays, rename={"fc": "layers.0"})


def test_threads_save_under_numbers_of_their_own(tmp_path):
    checkpoint, paths = ll.Checkpoint(v=ll.Variable(1.0)), []
    threads = [
        threading.Thread(target=lambda: paths.extend([checkpoint.save(tmp_path / "run") for _ in range(10)]))
        for _ in range(4)
    ]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(set(paths)) == len(list(tmp_path.iterdir())) == 40


def test_a_script_that_ends_says_what_was_given_to_nothing(tmp_path):
    path = ll.Checkpoint(model=ll.Variable(1.0)).write(tmp_path / "model")
    script = tmp_path / "script.py"
    script.write_text(
        "import limelight as ll\nw = ll.Variable(0.0)\n"
        f"checkpoint = ll.Checkpoint(net=w)\nstatus = checkpoint.restore({str(path)!r})\n"
    )
    said = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True).stderr
    assert "script.py:4: CheckpointWarning" in said
    assert "restore(...).expect_partial()" in said
    assert "1 saved values were given to no object: `model`" in said


@pytest.mark.parametrize("metrics", [{}, {"loss": "low"}, {"loss": [1.0, 2.0]}, {"loss": 1.0, "other": None}])
def test_wrong_metrics_are_refused_at_each_step(tmp_path, metrics):
    manager = ll.CheckpointManager({"v": ll.Variable(0.0)}, tmp_path, every=3, best="loss")
    for wrong in (metrics, metrics or {"loss": ll.ones(3)}):
        with pytest.raises(ArgumentError):
            manager.save(**wrong)
    assert manager.step == 0
    assert manager.save(loss=ll.constant(1.0)) is None


def test_a_newest_one_that_lacks_a_part_is_passed_over_with_a_warning(tmp_path):
    v = ll.Variable(0.0)
    manager = ll.CheckpointManager({"v": v}, tmp_path)
    for _ in range(2):
        v.assign_add(1.0)
        path = manager.save()
    v.assign(5.0)
    manager.checkpoint.write_now(path, most_bytes=1, step=2, metrics={}, written=2)
    next(iter(tmp_path.glob("*-of-*"))).unlink()
    again = ll.CheckpointManager({"v": v}, tmp_path)
    with pytest.warns(CheckpointWarning, match="checkpoint-2.safetensors is passed over"):
        again.restore().expect_partial()
    assert (v.item(), again.step) == (1.0, 1)


@pytest.mark.parametrize("path", [".", "..", "/"])
def test_numbered_files_need_a_name(path):
    with pytest.raises(ArgumentError, match="is a folder: write"):
        ll.Checkpoint(v=1).save(path)
