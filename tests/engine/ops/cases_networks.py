"""Cases of what networks are made of that are compositions of ops: activations, losses, normalisations, attention.

They are no ops, so each stands under an op that takes what it takes (floating operands), with its own name as the note.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from opcase import Case, Input, raw
from scipy import special

import limelight as ll
from limelight.core import dtypes

I32 = dtypes.int32
WIDE = frozenset([dtypes.float32, dtypes.float64])


def composed(call: Callable[..., Any], reference: Callable[..., Any], *inputs: Input, **more: Any) -> Case:
    """A case of `call`, a function of `ll.nn`."""
    name = more.pop("name", getattr(call, "__name__", ""))
    return Case("softplus", call, reference, inputs, note=name, **more)


def _elu(x, alpha=1.0):
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


X = Input((2, 3), "distinct")
ACTIVATIONS = [
    composed(ll.nn.relu6, lambda x: np.clip(x, 0, 6), Input((30,), "distinct"), smooth=False),
    composed(ll.nn.leaky_relu, lambda x: np.where(x > 0, x, 0.01 * x), X),
    composed(ll.nn.prelu, lambda x, a: np.where(x > 0, x, a * x), X, Input((3,))),
    composed(ll.nn.elu, _elu, X),
    composed(lambda x: ll.nn.celu(x, 0.5), lambda x: _elu(x / 0.5) * 0.5, X, name="celu"),
    composed(ll.nn.selu, lambda x: 1.0507009873554805 * _elu(x, 1.6732632423543772), X),
    composed(ll.nn.gelu, lambda x: x * special.ndtr(x), X),
    composed(ll.nn.silu, lambda x: x * _sigmoid(x), X),
    composed(ll.nn.mish, lambda x: x * np.tanh(np.logaddexp(x, 0)), X),
    composed(ll.nn.softsign, lambda x: x / (1 + np.abs(x)), X),
    composed(ll.nn.hard_tanh, lambda x: np.clip(x, -1, 1), X, smooth=False),
    composed(ll.nn.hard_sigmoid, lambda x: np.clip(x / 6 + 0.5, 0, 1), Input((30,), "distinct"), smooth=False),
    composed(ll.nn.hard_silu, lambda x: x * np.clip(x / 6 + 0.5, 0, 1), X),
    composed(ll.nn.log_sigmoid, lambda x: -np.logaddexp(-x, 0), X),
    composed(
        lambda x: ll.nn.glu(x, axis=0), lambda x: x[:1] * _sigmoid(x[1:]), Input((2, 3)), name="glu", needs_sizes=True
    ),
]


def _cross_entropy(x, labels):
    return -np.log(special.softmax(x, -1)[np.arange(len(labels)), labels])


def _smooth_cross_entropy(x, labels):
    return 0.9 * _cross_entropy(x, labels) - 0.1 * np.log(special.softmax(x, -1)).mean(-1)


def _divergence(x, t):
    return (special.xlogy(t, t) - t * x).sum(-1)


def _cosine(x, y):
    return (x * y).sum(-1) / np.sqrt((x * x).sum(-1) * (y * y).sum(-1))


def _huber(x, t, delta):
    d = np.abs(x - t)
    return np.where(d < delta, d * d / 2, delta * (d - delta / 2))


T = Input((2, 3))
SCORES, CLASSES = Input((3, 4)), Input((3,), "class", I32, 4)
LOSSES = [
    composed(ll.nn.mean_squared_error, lambda x, t: ((x - t) ** 2).mean(), X, T),
    composed(
        lambda x, t: ll.nn.mean_absolute_error(x, t, reduction="none"),
        lambda x, t: np.abs(x - t),
        X,
        T,
        name="mean_absolute_error",
    ),
    composed(lambda x, t: ll.nn.huber(x, t, 1.5), lambda x, t: _huber(x, t, 1.5), X, T, name="huber"),
    composed(ll.nn.log_cosh, lambda x, t: np.log(np.cosh(x - t)), T, T),
    composed(ll.nn.hinge, lambda x, t: np.maximum(0, 1 - x * t), T, T),
    composed(
        lambda x, t: ll.nn.sigmoid_cross_entropy(x, t, reduction="mean"),
        lambda x, t: (np.logaddexp(x, 0) - x * t).mean(),
        X,
        T,
        name="mean of sigmoid_cross_entropy",
    ),
    composed(
        lambda x, y: ll.nn.softmax_cross_entropy(x, y, label_smoothing=0.1),
        _smooth_cross_entropy,
        SCORES,
        CLASSES,
        name="smoothed softmax_cross_entropy",
    ),
    composed(
        lambda x, y: ll.nn.nll(x, y, axis=0, reduction="sum"),
        lambda x, y: -x[y, np.arange(3)].sum(),
        Input((4, 3)),
        CLASSES,
        name="sum of nll",
    ),
    composed(ll.nn.kl_divergence, _divergence, T, Input((2, 3), "positive")),
    composed(ll.nn.cosine_similarity, _cosine, T, Input((2, 3), "positive")),
]


def _standard(x, axis):
    return (x - x.mean(axis, keepdims=True)) / np.sqrt(x.var(axis, keepdims=True) + 1e-5)


def _group_norm(x, s, b):
    return _standard(x.reshape(len(x), -1, 2, 2), (1, 3)).reshape(x.shape) * s + b


CHANNELS = Input((3,), "positive")


def _moments(x, axis):
    return x.mean(axis, keepdims=True), x.var(axis, keepdims=True)


def _trained(x, s, o):
    return _standard(x, (0, 1)) * s + o, x.mean((0, 1)), x.var((0, 1))


def _trained_gradient(h, x, m, v, s):
    y = (x - m) / np.sqrt(v + 0.5)
    inner = h - h.mean((0, 1)) - y * (h * y).mean((0, 1))
    return inner * s / np.sqrt(v + 0.5), (h * y).sum((0, 1)), h.sum((0, 1))


_VARIANCE = Input((2, 1), "positive")
NORMALISATIONS = [
    Case(
        "standardise",
        lambda x: ll.nn.standardise(x, (1, 2), 1e-5),
        lambda x: (_standard(x, (1, 2)), *_moments(x, (1, 2))),
        (Input((2, 2, 3), "distinct"),),
        dtypes=WIDE,
    ),
    Case(
        "standardise",
        lambda x: ll.nn.standardise(x, -1, 0.1),
        lambda x: ((x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 0.1), *_moments(x, -1)),
        (Input((2, 3)),),
    ),
    Case("standardise", lambda x: ll.nn.standardise(x, 1), lambda x: (x, *_moments(x, 1)), (Input((0, 3)),)),
    Case(
        "standardise_gradient",
        raw("standardise_gradient", (1,), 0.5),
        lambda h, y, v: (h - h.mean(1, keepdims=True) - y * (h * y).mean(1, keepdims=True)) / np.sqrt(v + 0.5),
        (Input((2, 3)), Input((2, 3)), _VARIANCE),
    ),
    Case(
        "batch_norm_training",
        ll.nn.batch_norm_training,
        _trained,
        (Input((2, 2, 3), "distinct"), *(Input((3,)),) * 2),
        dtypes=WIDE,
        note="batch_norm_training",
    ),
    Case(
        "batch_norm_gradient",
        raw("batch_norm_gradient", 0.5),
        _trained_gradient,
        (*(Input((2, 2, 3)),) * 2, Input((3,)), *(CHANNELS,) * 2),
        dtypes=WIDE,
    ),
    composed(
        lambda x, o: ll.nn.batch_norm_training(x, None, o),
        lambda x, o: _trained(x, 1.0, o),
        Input((2, 2, 3), "distinct"),
        Input((3,)),
        dtypes=WIDE,
        name="batch_norm_training",
    ),
    composed(lambda x: ll.nn.moments(x, (0, 1)), lambda x: (x.mean((0, 1)), x.var((0, 1))), X, name="moments"),
    composed(
        ll.nn.batch_norm,
        lambda x, m, v, s, o: (x - m) / np.sqrt(v + 1e-5) * s + o,
        X,
        *(CHANNELS,) * 4,
        dtypes=WIDE,
    ),
    composed(ll.nn.layer_norm, lambda x, s, o: _standard(x, -1) * s + o, X, CHANNELS, CHANNELS, dtypes=WIDE),
    composed(
        lambda x: ll.nn.layer_norm(x, axis=(0, 2)),
        lambda x: _standard(x, (0, 2)),
        Input((2, 2, 3), "distinct"),
        name="layer_norm over two axes",
        dtypes=WIDE,
    ),
    composed(
        ll.nn.rms_norm,
        lambda x, s: x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * s,
        X,
        CHANNELS,
    ),
    composed(
        lambda x, s, o: ll.nn.group_norm(x, 2, s, o),
        _group_norm,
        Input((2, 2, 4), "distinct"),
        Input((4,)),
        Input((4,)),
        name="group_norm",
        dtypes=WIDE,
        needs_sizes=True,
    ),
]


def _attention(q, k, v, allowed=True):
    scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    return special.softmax(np.where(allowed, scores, -np.inf), -1) @ v


QKV = (Input((2, 2, 3)), Input((2, 4, 3)), Input((4, 2)))
ATTENTION = [
    composed(
        lambda q, k, v: ll.nn.dot_product_attention(q, k, v, scale=3**-0.5),
        _attention,
        *QKV,
        name="dot_product_attention",
    ),
    composed(
        lambda q, k, v: ll.nn.dot_product_attention(q, k, v, causal=True, scale=3**-0.5),
        lambda q, k, v: _attention(q, k, v, np.tril(np.ones((2, 4)), 2) > 0),
        *QKV,
        name="causal dot_product_attention",
    ),
    composed(
        lambda q, k, v, m: ll.nn.dot_product_attention(q, k, v, mask=m > 0, scale=3**-0.5),
        lambda q, k, v, m: _attention(q, k, v, m > 0),
        *QKV,
        Input((4,), "positive", dtypes.float32),
        name="masked dot_product_attention",
    ),
]


def _lstm(x, h, c, kernel, recurrent, bias):
    i, f, g, o = np.split(x @ kernel + h @ recurrent + bias, 4, -1)
    c = _sigmoid(f) * c + _sigmoid(i) * np.tanh(g)
    return _sigmoid(o) * np.tanh(c), c


def _gru(x, h, kernel, recurrent):
    (r, z, n), (ur, uz, un) = np.split(x @ kernel, 3, -1), np.split(recurrent, 3, -1)
    r, z = _sigmoid(r + h @ ur), _sigmoid(z + h @ uz)
    return z * h + (1 - z) * np.tanh(n + (r * h) @ un)


RECURRENCE = [
    composed(
        ll.nn.lstm_cell,
        _lstm,
        Input((2, 1)),
        Input((2, 1)),
        Input((2, 1)),
        Input((1, 4)),
        Input((1, 4)),
        Input((4,)),
        needs_sizes=True,
    ),
    composed(ll.nn.gru_cell, _gru, Input((2, 1)), Input((2, 2)), Input((1, 6)), Input((2, 6)), needs_sizes=True),
]

CASES = [*ACTIVATIONS, *LOSSES, *NORMALISATIONS, *ATTENTION, *RECURRENCE]
