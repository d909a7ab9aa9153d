"""`CheckpointManager`: what is kept, what is restored, and runs that go on where they were killed."""

from __future__ import annotations

import datetime
import os
import random
import signal

import numpy as np
import pytest

import limelight as ll
from limelight.errors import ArgumentError, CheckpointError, CheckpointWarning, MissingCheckpointError


def train(folder, steps, background, said):
    """A training script: it goes on where its folder says, and tells each step."""
    ll.random.seed(1)
    model = ll.nn.Sequential(ll.nn.Dense(8, "relu"), ll.nn.Dropout(0.5), ll.nn.Dense(1))
    optimizer, noise, history = ll.optim.Adam(0.01), np.random.default_rng(7), []
    rows = np.random.default_rng(8).normal(size=(22, 3)).astype("float32")
    batches = iter(ll.data.from_arrays(rows).shuffle().repeat().shuffle(window=9).batch(4).prefetch(2))
    objects = {"model": model, "optimizer": optimizer, "noise": noise, "batches": batches}
    objects["progress"] = ll.State(history=history)
    manager = ll.CheckpointManager(objects, folder, keep=2, every=3, best="loss", background=background)
    manager.restore()

    @ll.function
    def step(x):
        with ll.GradientTape() as tape:
            loss = ll.mean((model(x, training=True) + ll.random.normal((4, 1)) - 1.0) ** 2)
        optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
        return loss

    while manager.step < steps:
        loss = step(next(batches) + noise.normal(size=(4, 3)).astype("float32"))
        history.append(loss.item())
        manager.save(loss=loss)
        os.write(said, b"step\n")
    manager.wait()
    os.write(said, f"done {' '.join(map(repr, history))}\n".encode())


def run(folder, steps, background, most_steps=1000):
    """Runs the script in a process, which is killed after so many steps; returns the losses, None if it was killed."""
    heard, said = os.pipe()
    child = os.fork()
    if not child:
        try:
            train(folder, steps, background, said)
        finally:
            os._exit(0)
    os.close(said)
    with os.fdopen(heard) as lines:
        for i, line in enumerate(lines):
            if line.startswith("done"):
                os.waitpid(child, 0)
                return [float(word) for word in line.split()[1:]]
            if i >= most_steps:
                os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills processes that were forked")
@pytest.mark.slow  # a dozen processes
@pytest.mark.parametrize("background", [False, True])
def test_a_run_that_is_killed_at_random_goes_on_bit_for_bit(tmp_path, background):
    whole = run(tmp_path / "whole", 40, background)
    draw, killed, history = random.Random(3), 0, None
    while history is None and killed < 100:
        history = run(tmp_path / "killed", 40, background, draw.randrange(12))
        killed += history is None
    assert killed >= 3
    assert len(whole) == 40
    assert history == whole


def manager(folder, **options):
    v = ll.Variable(0.0)
    return v, ll.CheckpointManager({"v": v}, folder, **options)


def test_so_many_are_kept_and_the_best(tmp_path):
    v, kept = manager(tmp_path, keep=2, best="-accuracy")
    for accuracy in (0.1, 0.9, 0.5, 0.5, 0.4):
        v.assign_add(1.0)
        kept.save(accuracy=accuracy)
    assert [saved.step for saved in kept.checkpoints] == [2, 4, 5]
    assert (kept.newest.step, kept.best.step, kept.best.metrics) == (5, 2, {"accuracy": 0.9})
    kept.restore("best")
    assert (v.numpy(), kept.step) == (2.0, 2)
    kept.restore(4)
    assert (v.numpy(), kept.step) == (4.0, 4)


def test_another_process_sees_the_same_folder(tmp_path):
    v, first = manager(tmp_path, keep=None, best="loss")
    for loss in (2.0, 1.0, 3.0):
        v.assign_add(1.0)
        first.save(loss=ll.constant(loss))
    w, second = manager(tmp_path, best="loss")
    assert [saved.step for saved in second.checkpoints] == [1, 2, 3]
    assert second.best.step == 2
    second.restore().assert_consumed()
    assert (w.numpy(), second.step) == (3.0, 3)


def test_the_first_run_and_the_next_begin_alike(tmp_path):
    _, kept = manager(tmp_path / "new" / "folder")
    status = kept.restore()
    assert (status.path, kept.step) == (None, 0)
    assert str(status.tree()).startswith("no checkpoint: 2 new")
    with pytest.raises(MissingCheckpointError, match="has no checkpoint of 7 steps; it has none"):
        kept.restore(7)
    with pytest.raises(ArgumentError, match="which one is the best was not said"):
        kept.restore("best")
    of_loss = ll.CheckpointManager({"w": ll.Variable(1.0)}, tmp_path / "new", best="loss")
    with pytest.raises(MissingCheckpointError, match=r"no checkpoint in .* has the metric 'loss'"):
        of_loss.restore("best")


def test_every_so_many_steps(tmp_path):
    _, kept = manager(tmp_path, every=3)
    assert [bool(kept.save()) for _ in range(7)] == [False, False, True, False, False, True, False]
    assert kept.save(force=True).name == "checkpoint-8.safetensors"
    _, timed = manager(tmp_path / "t", every=datetime.timedelta(hours=1))
    assert timed.save() is None
    timed._last_write -= 3601
    assert timed.save() is not None


def test_the_default_generator_goes_on(tmp_path):
    ll.random.seed(5)
    _, kept = manager(tmp_path)
    kept.save()
    draws = ll.random.normal((3,)).tolist()
    ll.random.seed(6)
    kept.restore().assert_consumed()
    assert ll.random.normal((3,)).tolist() == draws


def test_a_damaged_newest_is_passed_over(tmp_path):
    v, kept = manager(tmp_path)
    for _ in range(2):
        v.assign_add(1.0)
        path = kept.save()
    path.write_bytes(path.read_bytes()[:50])
    w, again = manager(tmp_path)
    with pytest.warns(CheckpointWarning, match="it is passed over"):
        again.restore()
    assert (w.numpy(), again.step) == (1.0, 1)


def test_what_a_killed_run_left_behind_is_removed(tmp_path):
    (tmp_path / ".checkpoint-3.safetensors.0123456789abcdef.tmp").write_text("half")
    manager(tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_checkpoint_may_be_given_and_goes_on_being_asked(tmp_path):
    checkpoint = ll.Checkpoint(epoch=0)
    kept = ll.CheckpointManager(checkpoint, tmp_path)
    checkpoint.epoch = 3
    kept.save()
    checkpoint.epoch = 0
    kept.restore()
    assert checkpoint.epoch == 3


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"keep": 0}, "keep must be at least 1, got 0"),
        ({"every": 1.5}, "every must be an int"),
        ({"best": 3}, "best is the name of a metric"),
    ],
)
def test_wrong_arguments(tmp_path, change, said):
    with pytest.raises(ArgumentError, match=said):
        manager(tmp_path, **change)


def test_wrong_calls(tmp_path):
    with pytest.raises(ArgumentError, match=r"write ll.CheckpointManager"):
        ll.CheckpointManager([ll.Variable(1.0)], tmp_path)
    _, kept = manager(tmp_path, best="loss")
    with pytest.raises(ArgumentError, match=r"write manager.save\(loss=...\)"):
        kept.save()
    with pytest.raises(ArgumentError, match="the metric 'loss' is no number"):
        kept.save(loss="low")
    with pytest.raises(ArgumentError, match="'newest', 'best' or a number of steps"):
        kept.restore("last")
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match="cannot be a folder of checkpoints"):
        manager(tmp_path / "file")


def test_written_on_a_thread(tmp_path):
    v, kept = manager(tmp_path, keep=2, background=True)
    with kept:
        for _ in range(4):
            v.assign_add(1.0)
            kept.save()
    assert sorted(os.listdir(tmp_path)) == ["checkpoint-3.safetensors", "checkpoint-4.safetensors"]
