"""Cases of products, diagonals, creation, and what networks are made of."""

from __future__ import annotations

import numpy as np
from cases_shapes import vector
from opcase import Case, Input, binary, raw, unary

import limelight as ll
from limelight import linalg
from limelight.core import dtypes
from limelight.ops.nn import activations

F32, F64, I32, I64 = dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64
_FLOATS = (dtypes.float16, dtypes.bfloat16, F32, F64)

PRODUCTS = [
    Case("matmul", ll.matmul, np.matmul, (Input(a), Input(b)))
    for a, b in (
        ((2, 3), (3, 4)),
        ((3,), (3,)),
        ((3,), (3, 2)),
        ((2, 3), (3,)),
        ((4, 2, 3), (3, 2)),
        ((2, 3), (4, 3, 2)),
        ((4, 1, 2, 3), (2, 3, 2)),
        ((3,), (2, 3, 2)),
        ((4, 2, 3), (3,)),
        ((0, 3), (3, 2)),
        ((2, 0), (0, 3)),
        ((1, 1), (1, 1)),
    )
] + [
    Case("matmul", lambda x: x @ x, lambda x: x @ x, (Input((2, 2)),), note="with itself"),
    Case("matmul", ll.dot, np.dot, (Input((3,)), Input((3,))), note="dot"),
    Case("tensordot", ll.dot, np.dot, (Input((2, 2, 3)), Input((2, 3, 2))), note="dot"),
    *[
        Case(
            "tensordot",
            lambda x, y, a=a: ll.tensordot(x, y, axes=a),
            lambda x, y, a=a: np.tensordot(x, y, a),
            (Input(m), Input(n)),
        )
        for m, n, a in (
            ((2, 3), (3, 4), 1),
            ((2, 3), (2, 3), 2),
            ((2,), (3,), 0),
            ((2, 3, 4), (4, 5, 2), ((2, 0), (0, 2))),
            ((2, 3, 4), (3, 4, 2), ((-1, 1), (1, 0))),
        )
    ],
    Case("multiply", ll.outer, np.outer, (Input((2,)), Input((3,))), note="outer"),
]

DIAGONALS = [
    *[
        Case(
            "diagonal",
            lambda x, k=k: ll.diagonal(x, offset=k),
            lambda x, k=k: np.diagonal(x, k, -2, -1),
            (Input(shape),),
            note=f"{k}",
        )
        for shape, k in (((3, 3), 0), ((2, 4), 1), ((4, 2), -1), ((2, 3, 3), 0), ((2, 2), 5))
    ],
    *[
        Case(
            "from_diagonal",
            lambda x, k=k: ll.diag(x, offset=k),
            lambda x, k=k: np.diag(x, k),
            (Input((2,)),),
            note=f"{k}",
        )
        for k in (0, 1, -2)
    ],
    Case(
        "from_diagonal_dynamic",
        lambda x: raw("from_diagonal_dynamic", 1, 2)(x, vector(3, 3)),
        lambda x: np.diag(x, 1),
        (Input((2,)),),
    ),
    Case(
        "diagonal",
        linalg.trace,
        np.trace,
        (Input((3, 2)),),
        note="trace",
        out="total",
        dtypes=frozenset([I32, F32, F64]),
    ),
]


def _made(op, call, reference, out):
    """A case without inputs, of one dtype."""
    return Case(op, call, reference, out=out, dtypes=frozenset([out]))


CREATION = [
    *[_made("full", lambda d=d: ll.full((2, 1), 3, dtype=d), lambda: np.full((2, 1), 3), d) for d in dtypes.ALL[1:]],
    _made("full", lambda: ll.zeros((2, 0)), lambda: np.zeros((2, 0)), F32),
    _made("full", lambda: ll.ones(3, dtype=dtypes.bool_), lambda: np.ones(3, bool), dtypes.bool_),
    _made("full", lambda: ll.full((), 2.5), lambda: np.array(2.5), F32),
    _made("full_dynamic", lambda: ll.zeros(vector(2, 3)), lambda: np.zeros((2, 3)), F32),
    Case("full_like", ll.ones_like, np.ones_like, (Input((2, 3)),), dtypes=frozenset(dtypes.ALL)),
    Case("full_like", ll.zeros_like, np.zeros_like, (Input(()),), dtypes=frozenset(dtypes.ALL)),
    Case(
        "full_like",
        lambda x: ll.full_like(x, 3),
        lambda x: np.full_like(x, 3),
        (Input((2,)),),
        dtypes=frozenset(dtypes.ALL[1:]),
    ),
    *[_made("arange", lambda d=d: ll.arange(1, 8, 3, dtype=d), lambda: np.arange(1, 8, 3), d) for d in dtypes.ALL[1:]],
    _made("arange", lambda: ll.arange(5), lambda: np.arange(5), I32),
    _made("arange", lambda: ll.arange(5, 0, -2), lambda: np.arange(5, 0, -2), I32),
    _made("arange", lambda: ll.arange(0.0, 1.0, 0.25), lambda: np.arange(0.0, 1.0, 0.25), F32),
    _made("arange", lambda: ll.arange(3, 1), lambda: np.arange(3, 1), I32),
    Case("arange_dynamic", ll.arange, np.arange, (Input((), "positive"),)),
    _made("linspace", lambda: ll.linspace(1, 2, 5), lambda: np.linspace(1, 2, 5), F32),
    _made(
        "linspace",
        lambda: ll.linspace(1, 2, 4, endpoint=False, dtype=F64),
        lambda: np.linspace(1, 2, 4, endpoint=False),
        F64,
    ),
    _made("eye", lambda: ll.eye(2, 3), lambda: np.eye(2, 3), F32),
    _made("eye", lambda: ll.eye(3, k=-1, dtype=I32), lambda: np.eye(3, k=-1), I32),
]


def _softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def _class_loss(x, labels):
    p = _softmax(x).reshape(-1, x.shape[-1])
    return -np.log(p[np.arange(len(p)), labels.reshape(-1)]).reshape(labels.shape)


def _residual(x, labels):
    return _softmax(x) - np.eye(x.shape[-1])[labels]


def _bits_loss(x, z):
    return np.maximum(x, 0) - x * z + np.log1p(np.exp(-np.abs(x)))


def _gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


NETWORKS = [
    *unary("relu", ll.nn.relu, lambda x: np.maximum(x, 0), "distinct", smooth=False),
    *binary("gate", raw("gate"), lambda x, s: x * s),
    *binary("relu_grad", raw("relu_grad"), lambda g, y: g * (y > 0), "distinct", smooth=False, differentiable=False),
    Case(
        "relu_grad",
        lambda g: raw("relu_grad")(g, ll.constant([1.0, -1.0, 2.0], g.dtype)),
        lambda g: g * np.array([1, 0, 1]),
        (Input((3,)),),
    ),
    *unary("softplus", ll.nn.softplus, lambda x: np.logaddexp(x, 0)),
    *unary("tanh", lambda x: ll.nn.gelu(x, approximate=True), _gelu, note="gelu", dtypes=frozenset(_FLOATS)),
    *[
        Case(name, lambda x, f=f, a=a: f(x, axis=a), lambda x, g=g, a=a: g(x, a), (Input(shape),), note=f"{a}")
        for name, f, g in (
            ("softmax", ll.nn.softmax, _softmax),
            ("log_softmax", ll.nn.log_softmax, lambda x, a: np.log(_softmax(x, a))),
        )
        for shape, a in (((3,), -1), ((2, 3), 0), ((2, 3), -1), ((2, 2, 2), 1), ((0, 3), 1), ((2, 1), 1))
    ],
    *[
        Case(
            "softmax_cross_entropy",
            ll.nn.softmax_cross_entropy,
            _class_loss,
            (Input((*shape, 3)), Input(shape, "class", d, 3)),
        )
        for shape, d in (((4,), I32), ((2, 2), I64), ((), I32), ((0,), dtypes.uint8))
    ],
    Case(
        "softmax_cross_entropy",
        lambda x, y: ll.nn.softmax_cross_entropy(x, y, axis=0),
        lambda x, y: _class_loss(x.T, y),
        (Input((3, 2)), Input((2,), "class", I32, 3)),
        note="axis=0",
    ),
    Case(
        "log_softmax",
        ll.nn.softmax_cross_entropy,
        lambda x, y: -(y * np.log(_softmax(x))).sum(-1),
        (Input((2, 3)), Input((2, 3), "positive")),
        note="cross entropy of probabilities",
    ),
    Case("softmax_residual", raw("softmax_residual"), _residual, (Input((2, 3)), Input((2,), "class", I32, 3))),
    *binary("sigmoid_cross_entropy", activations.sigmoid_cross_entropy, _bits_loss, ("distinct", "positive")),
]

NUMERICS = [Case("check_numerics", ll.debug.check_numerics, lambda x: x, (Input((2, 3)),))]

CASES = [*NUMERICS, *PRODUCTS, *DIAGONALS, *CREATION, *NETWORKS]
