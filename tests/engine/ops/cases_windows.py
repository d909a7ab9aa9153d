"""Cases of convolutions and pools, against loops."""

from __future__ import annotations

import looped_windows
import numpy as np
from cases_shapes import vector
from opcase import Case, Input, raw

import limelight as ll

PLAIN = ((1,), ((0, 0),), (1,), 1)


def _conv(x, w, stride=(1, 1), padding=((0, 0), (0, 0)), dilation=(1, 1), groups=1, note=""):
    attrs = (stride, padding, dilation, groups)
    return Case(
        "conv",
        lambda x, w: ll.nn.conv(x, w, *attrs),
        lambda x, w: looped_windows.conv(x, w, *attrs),
        (Input(x), Input(w)),
        note=note,
    )


CONV = [
    _conv((2, 4, 2), (3, 2, 2), (1,), "same", (1,)),
    _conv((1, 5, 4, 2), (2, 3, 2, 3), (2, 1), ((1, 0), (0, 2)), (1, 2), note="strided and dilated"),
    _conv((1, 5, 4, 3), (2, 2, 3, 2), (2, 3), "same", note="same"),
    _conv((2, 3, 2, 3), (1, 1, 3, 2), (2, 1), note="one by one"),
    _conv((1, 3, 2, 4), (2, 2, 2, 2), groups=2, note="grouped"),
    _conv((2, 3, 3, 2), (2, 2, 1, 4), padding="same", groups=2, note="depthwise"),
    _conv((1, 2, 3, 2, 1), (2, 2, 1, 1, 2), (1, 2, 1), "same", (1, 1, 1)),
    _conv((0, 3, 3, 2), (2, 2, 2, 3), note="no batch"),
    _conv((1, 3, 3, 0), (2, 2, 0, 2), note="no channels"),
]

_SPACE = (5, 3)
_STRIDED = ((2, 1), ((1, 1), (0, 0)), (1, 2), 1)


def _transposed(y, w):
    return looped_windows.conv_transpose(y, w, _SPACE, *_STRIDED)


def _grouped(y, w):
    return looped_windows.conv_transpose(y, w, (4,), (2,), ((1, 0),), (1,), 2)


TRANSPOSED = [
    Case(
        "conv_transpose",
        lambda y, w: ll.nn.conv_transpose(y, w, *_STRIDED, output_padding=(0, 0)),
        _transposed,
        (Input((1, 3, 1, 2)), Input((3, 2, 2, 2))),
    ),
    Case(
        "conv_transpose",
        lambda y, w: ll.nn.conv_transpose(y, w, 2, ((1, 0),), groups=2, output_padding=1),
        _grouped,
        (Input((2, 2, 4)), Input((2, 1, 4))),
        note="grouped",
    ),
    Case(
        "conv_transpose",
        lambda y, w: ll.nn.conv_transpose(y, w, 2),
        lambda y, w: looped_windows.conv_transpose(y, w, (6,), (2,), "same", (1,), 1),
        (Input((1, 3, 2)), Input((3, 2, 2))),
        note="same",
    ),
    Case(
        "conv_transpose_dynamic",
        lambda y, w: raw("conv_transpose_dynamic", *_STRIDED, 4)(y, w, vector(1, *_SPACE, 2)),
        _transposed,
        (Input((1, 3, 1, 2)), Input((3, 2, 2, 2))),
    ),
]

_FILTERS = ((2,), "same", (1,), 2)


def _filters(x, y):
    return looped_windows.conv_filter_gradient(x, y, (3, 2, 2), *_FILTERS)


FILTERS = [
    Case(
        "conv_filter_gradient",
        raw("conv_filter_gradient", *_FILTERS, (3, 2, 2)),
        _filters,
        (Input((2, 5, 4)), Input((2, 3, 2))),
    ),
    Case(
        "conv_filter_gradient",
        raw("conv_filter_gradient", *PLAIN, (1, 2, 3)),
        lambda x, y: looped_windows.conv_filter_gradient(x, y, (1, 2, 3), *PLAIN),
        (Input((0, 2, 2)), Input((0, 2, 3))),
        note="no batch",
    ),
    Case(
        "conv_filter_gradient_dynamic",
        lambda x, y: raw("conv_filter_gradient_dynamic", *_FILTERS, 3)(x, y, vector(3, 2, 2)),
        _filters,
        (Input((2, 5, 4)), Input((2, 3, 2))),
    ),
]

POOLS = [
    ((1, 4, 2), (2,), (2,), "valid"),
    ((2, 3, 4, 1), (2, 3), (1, 2), ((1, 0), (1, 1))),
    ((1, 3, 2, 3, 1), (2, 2, 2), (2, 1, 2), "same"),
    ((0, 3, 2), (2,), (1,), "valid"),
]
MAXIMA = [
    case
    for shape, *attrs in POOLS
    for case in (
        Case(
            "max_pool",
            lambda x, attrs=attrs: ll.nn.max_pool(x, *attrs),
            lambda x, attrs=attrs: looped_windows.pool(np.max, x, *attrs),
            (Input(shape, "distinct"),),
        ),
        Case(
            "avg_pool",
            lambda x, attrs=attrs: ll.nn.avg_pool(x, *attrs),
            lambda x, attrs=attrs: looped_windows.pool(np.mean, x, *attrs),
            (Input(shape),),
        ),
    )
]

_ATTRS = ((2,), (1,), ((1, 0),))
_TIED = np.array([1.0, 1.0, 3.0, 2.0, 3.0, 3.0]).reshape(1, 6, 1)


def _at(function):
    """`function(z, x, y)` with an `x` that has ties, and its pool `y`."""

    def call(z):
        x = ll.constant(_TIED, z.dtype)
        return function(z, x, ll.nn.max_pool(x, *_ATTRS))

    return call


GRADIENTS = [
    Case(
        "max_pool_gradient",
        _at(raw("max_pool_gradient", *_ATTRS)),
        lambda g: looped_windows.max_pool_gradient(g, _TIED, *_ATTRS),
        (Input((1, 6, 1)),),
        note="of ties",
    ),
    Case(
        "max_pool_pick",
        _at(raw("max_pool_pick", *_ATTRS)),
        lambda h: looped_windows.max_pool_pick(h, _TIED, *_ATTRS),
        (Input((1, 6, 1)),),
        note="of ties",
    ),
    *[
        Case(
            f"avg_pool_gradient{form}",
            lambda g, form=form, last=last: raw(f"avg_pool_gradient{form}", (2,), (2,), "same", *last)(
                g, *([vector(2, 5, 1)] if form else [])
            ),
            lambda g: looped_windows.avg_pool_gradient(g, (2, 5, 1), (2,), (2,), "same"),
            (Input((2, 3, 1)),),
        )
        for form, last in (("", ((2, 5, 1),)), ("_dynamic", (3,)))
    ],
]

CASES = [*CONV, *TRANSPOSED, *FILTERS, *MAXIMA, *GRADIENTS]
