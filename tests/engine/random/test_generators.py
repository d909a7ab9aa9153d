"""Generators: seeds, states, splitting, threads."""

from __future__ import annotations

import copy
import pickle
import threading

import numpy as np
import pytest

import limelight as ll
from limelight.errors import ArgumentError, DTypeError, ShapeError


def drawn(g, n=4):
    return g.uniform((n,)).tolist()


def test_a_seed_decides_the_stream_which_is_numpys_philox():
    assert drawn(ll.random.Generator(5)) == drawn(ll.random.Generator(5))
    assert drawn(ll.random.Generator(5)) != drawn(ll.random.Generator(6))
    assert (
        drawn(ll.random.Generator([5, 6])) == drawn(ll.random.Generator([5, 6])) != drawn(ll.random.Generator([5, 7]))
    )
    reference = np.random.Generator(np.random.Philox(5))
    assert ll.random.Generator(5).normal((3,), dtype="float64").tolist() == reference.standard_normal(3).tolist()


def test_without_a_seed_each_generator_differs():
    assert drawn(ll.random.Generator()) != drawn(ll.random.Generator())
    g = ll.random.Generator(5)
    g.reset()
    assert drawn(g) != drawn(ll.random.Generator(5))


@pytest.mark.parametrize("seed", [-1, 1.5, "one"])
def test_a_seed_is_a_whole_number(seed):
    with pytest.raises(ArgumentError, match="seed is an int"):
        ll.random.Generator(seed)


def test_the_module_draws_from_the_default_generator():
    g = ll.random.default_generator()
    assert g is ll.random.default_generator()
    ll.random.seed(3)
    first = [ll.random.uniform().item(), g.uniform().item()]
    g.reset(3)
    assert first == [g.uniform().item(), ll.random.uniform().item()]
    assert drawn(ll.random.Generator(3), 2) == first


@pytest.mark.parametrize("between", [0, 1, 2, 3, 5])
def test_a_state_holds_everything_half_used_blocks_included(between):
    g = ll.random.Generator(1)
    for _ in range(between):
        g.integers(9, dtype="int32")  # takes half a word
    state = g.state
    first = [g.integers(100, shape=(3,)).tolist(), g.normal((2,)).tolist(), g.split(1)[0].uniform().item()]
    g.state = state
    again = [g.integers(100, shape=(3,)).tolist(), g.normal((2,)).tolist(), g.split(1)[0].uniform().item()]
    assert first == again
    assert state.shape == (14,)
    assert state.dtype == ll.uint64


def test_a_state_of_another_kind_is_refused():
    g = ll.random.Generator(1)
    with pytest.raises(DTypeError, match="uint64"):
        g.state = ll.zeros(14)
    with pytest.raises(ShapeError, match="14"):
        g.state = ll.zeros(3, dtype="uint64")


@pytest.mark.parametrize("clone", [copy.copy, copy.deepcopy, lambda g: pickle.loads(pickle.dumps(g))])
def test_a_copy_goes_on_alike_and_on_its_own(clone):
    g = ll.random.Generator(4)
    g.uniform((3,))
    other = clone(g)
    assert type(other) is ll.random.Generator
    ours = drawn(g)
    assert ours == drawn(other)
    assert drawn(g) == drawn(other)


def test_splitting_does_not_depend_on_draws_but_on_splits():
    g, h = ll.random.Generator(8), ll.random.Generator(8)
    h.uniform((1000,))
    a, b = g.split(2)
    c, d, e = h.split(3)
    assert drawn(a) == drawn(c)
    assert drawn(b) == drawn(d)
    assert drawn(g.split(1)[0]) == drawn(e)
    assert g.split(0) == []
    with pytest.raises(ArgumentError, match="at least 0"):
        g.split(-1)


def test_no_two_generators_of_a_family_meet():
    root = ll.random.Generator(0)
    family = [root]
    for member in list(root.split(30)):
        family += [member, *member.split(10)]
        family += family[-1].split(3)
    keys = [tuple(member.state.tolist()[3:6]) for member in family]  # lane and key
    assert len(set(keys)) == len(family) == 1 + 30 * 14
    first = {tuple(drawn(member, 2)) for member in family}
    assert len(first) == len(family)


def test_the_childs_number_counts_where_keys_are_equal():
    g = ll.random.Generator(0)
    assert [child.state[3].item() for child in g.split(3)] == [0, 1, 2]
    other = copy.copy(g)
    words = other.state.tolist()
    other.state = ll.constant(np.array([*words[:3], 5, *words[4:]], np.uint64))
    assert drawn(g) != drawn(other)
    assert g.split(1)[0].state.tolist() != other.split(1)[0].state.tolist()


def test_split_streams_are_uncorrelated():
    root = ll.random.Generator(3)
    n, streams = 4000, [root, *root.split(7)]
    streams += streams[1].split(4)
    table = np.stack([g.normal((n,), dtype="float64").numpy() for g in streams])
    apart = np.corrcoef(table) - np.eye(len(streams))
    assert np.abs(apart).max() < 5 / n**0.5
    lagged = np.corrcoef(table[:, 1:], table[:, :-1])[: len(streams), len(streams) :]
    assert np.abs(lagged).max() < 5 / n**0.5


def test_threads_never_draw_the_same_numbers():
    g = ll.random.Generator(2)
    shares: list[list[float]] = [[] for _ in range(4)]

    def draw(mine):
        for _ in range(300):
            mine += g.uniform((3,), dtype="float64").tolist()

    threads = [threading.Thread(target=draw, args=(mine,)) for mine in shares]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    together = sorted(x for mine in shares for x in mine)
    assert together == sorted(ll.random.Generator(2).uniform((3600,), dtype="float64").tolist())


def test_threads_never_split_off_the_same_generator():
    g = ll.random.Generator(2)
    found: list[tuple[int, ...]] = []

    def split():
        for _ in range(50):
            found.extend(tuple(child.state.tolist()) for child in g.split(2))

    threads = [threading.Thread(target=split) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 400


def test_a_generator_says_what_it_is():
    assert "generator" in repr(ll.random.Generator(1))
    assert str(ll.random.Generator(1).spec) == "generator"
