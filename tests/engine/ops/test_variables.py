"""Variables stand wherever tensors do: every family reads them."""

from __future__ import annotations

import pytest

import limelight as ll

CALLS = {
    "add": lambda v: v + 1.0,
    "reflected": lambda v: 1.0 - v,
    "sum": lambda v: ll.sum(v, axis=0),
    "method": lambda v: v.sum(),
    "matmul": lambda v: v @ v,
    "where": lambda v: ll.where(v > 1.0, v, 0.0),
    "index": lambda v: v[0, 1:],
    "reshape": lambda v: ll.reshape(v, (4,)),
    "transpose": lambda v: v.T,
    "concat": lambda v: ll.concat([v, v]),
    "stack": lambda v: ll.stack([v, v]),
    "split": lambda v: ll.split(v, 2)[0],
    "expand_dims": lambda v: ll.expand_dims(v, axis=0),
    "pad": lambda v: ll.pad(v, 1),
    "flip": ll.flip,
    "clip": lambda v: ll.clip(2.0 * v, 0.0, v),
    "tensordot": lambda v: ll.tensordot(v, v, axes=1),
    "softmax": ll.nn.softmax,
    "cross entropy": lambda v: ll.nn.softmax_cross_entropy(v, ll.constant([0, 1])),
    "dropout": lambda v: ll.nn.dropout(v, 0.0),
    "take": lambda v: ll.take(v, [0, 0]),
    "likes": lambda v: v * ll.ones_like(v),
    "parameters of a draw": lambda v: ll.random.normal((2, 2), v, 0.0),
    "permutation": lambda v: ll.sum(ll.random.permutation(v)),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_variable_is_read_and_watched(name):
    call = CALLS[name]
    v, t = ll.Variable([[1.0, 2.0], [3.0, 4.0]]), ll.constant([[1.0, 2.0], [3.0, 4.0]])
    with ll.GradientTape() as tape:
        y = call(v)
    assert y.tolist() == call(t).tolist()
    assert tape.gradient(y, v).shape == (2, 2)
