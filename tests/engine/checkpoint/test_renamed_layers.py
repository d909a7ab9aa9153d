"""A restore into renamed layers: told at once, where no object can come any more, and not at the end of the program."""

from __future__ import annotations

import warnings

import pytest

import limelight as ll
from limelight.errors import CheckpointWarning

RENAMED = "`m/enc/kernel`, `m/enc/bias`, while nothing was saved for `m/encoder/kernel`, `m/encoder/bias`"


class Model(ll.Module):
    def __init__(self, name, *, is_built=True):
        setattr(self, name, ll.nn.Dense(4))
        if is_built:
            getattr(self, name).build(3)


@pytest.fixture
def folder(tmp_path):
    ll.CheckpointManager({"m": Model("enc")}, tmp_path).save()
    return tmp_path


def test_as_soon_as_the_answer_is_dropped(folder):
    model = Model("encoder")
    manager = ll.CheckpointManager({"m": model}, folder)
    with pytest.warns(CheckpointWarning, match=RENAMED) as told:
        manager.restore()
    assert told[0].filename == __file__
    with warnings.catch_warnings(action="error"):  # and once
        manager.save()


def test_before_a_manager_saves_what_was_not_restored(folder):
    manager = ll.CheckpointManager({"m": Model("encoder")}, folder)
    status = manager.restore()
    with pytest.warns(CheckpointWarning, match=RENAMED):
        manager.save()
    status.expect_partial()


def test_not_where_it_is_meant_or_weights_are_still_to_be_made(folder):
    with warnings.catch_warnings(action="error"):
        ll.CheckpointManager({"m": Model("encoder")}, folder).restore().expect_partial()
        model = Model("enc", is_built=False)
        manager = ll.CheckpointManager({"m": model, "new": ll.Variable(1.0)}, folder)
        manager.restore()
        model.enc.build(3)
        manager.save()


def test_weights_alone_are_told_of_as_well(tmp_path):
    path = str(tmp_path / "w.safetensors")
    saved, live = Model("enc"), Model("enc")
    saved.old, live.new = ll.Variable(1.0), ll.Variable(2.0)
    ll.nn.save_weights(saved, path)
    with pytest.warns(CheckpointWarning, match="`old`, while nothing was saved for `new`"):
        ll.nn.load_weights(live, path)


class Lazy(ll.Module):
    def __init__(self):
        self.w = None
        self.net = None

    def call(self, x):
        if self.w is None:
            self.w, self.net = ll.Variable(ll.ones(3)), ll.nn.Dense(2)
        return self.net(x * self.w)


def test_not_where_the_attribute_is_there_and_is_none_so_far(tmp_path):
    """A module of the user's may make its variables when it is first called."""
    saved, live = Lazy(), Lazy()
    saved(ll.ones((1, 3)))
    path = ll.Checkpoint(m=saved).save(tmp_path / "m")
    live.extra = ll.Variable(1.0)
    with warnings.catch_warnings(action="error"):
        status = ll.Checkpoint(m=live).restore(path)
        status.warn_of_renamed()
        assert live(ll.ones((1, 3))).tolist() == saved(ll.ones((1, 3))).tolist()
        status.expect_partial()
