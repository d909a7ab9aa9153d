"""Convolution and pools by explicit loops over windows, places and channels: slow, and simple enough to believe."""

from __future__ import annotations

import itertools

import numpy as np


def margins(sizes, window, stride, padding, dilation):
    """(before, after) for each spatial axis."""
    if padding == "valid":
        return [(0, 0)] * len(sizes)
    if padding != "same":
        return list(padding)
    found = []
    for n, k, s, d in zip(sizes, window, stride, dilation, strict=True):
        count = -(-n // s)
        total = max((count - 1) * s + (k - 1) * d + 1 - n, 0)
        found.append((total // 2, total - total // 2))
    return found


def counts(sizes, window, stride, padding, dilation):
    """How many windows there are along each axis."""
    pads = margins(sizes, window, stride, padding, dilation)
    return [
        (n + a + b - ((k - 1) * d + 1)) // s + 1
        for n, (a, b), k, s, d in zip(sizes, pads, window, stride, dilation, strict=True)
    ]


def visits(sizes, window, stride, padding, dilation):
    """(window, place in the window, place in the space) for all that windows see of the space."""
    pads = margins(sizes, window, stride, padding, dilation)
    for out in np.ndindex(*counts(sizes, window, stride, padding, dilation)):
        for place in itertools.product(*map(range, window)):
            at = tuple(o * s + p * d - a for o, s, p, d, (a, _) in zip(out, stride, place, dilation, pads, strict=True))
            if all(0 <= i < n for i, n in zip(at, sizes, strict=True)):
                yield out, place, at


def conv(x, w, stride, padding, dilation, groups):
    sizes, window, (each, filters) = x.shape[1:-1], w.shape[:-2], w.shape[-2:]
    out = np.zeros((len(x), *counts(sizes, window, stride, padding, dilation), filters), x.dtype)
    for o, place, at in visits(sizes, window, stride, padding, dilation):
        for f in range(filters):
            first = f // (filters // groups) * each
            for c in range(each):
                out[(slice(None), *o, f)] += x[(slice(None), *at, first + c)] * w[(*place, c, f)]
    return out


def conv_transpose(y, w, space, stride, padding, dilation, groups):
    window, (each, filters) = w.shape[:-2], w.shape[-2:]
    out = np.zeros((len(y), *space, each * groups), y.dtype)
    for o, place, at in visits(space, window, stride, padding, dilation):
        for f in range(filters):
            first = f // (filters // groups) * each
            for c in range(each):
                out[(slice(None), *at, first + c)] += y[(slice(None), *o, f)] * w[(*place, c, f)]
    return out


def conv_filter_gradient(x, y, shape, stride, padding, dilation, groups):
    each, filters = shape[-2:]
    out = np.zeros(shape, x.dtype)
    for o, place, at in visits(x.shape[1:-1], shape[:-2], stride, padding, dilation):
        for f in range(filters):
            first = f // (filters // groups) * each
            for c in range(each):
                out[(*place, c, f)] += (x[(slice(None), *at, first + c)] * y[(slice(None), *o, f)]).sum()
    return out


def seen(x, window, stride, padding):
    """For each window, the elements that it sees: {window: (batch, how many, channels)}."""
    flat = (1,) * len(window)
    found = {}
    for o, _, at in visits(x.shape[1:-1], window, stride, padding, flat):
        found.setdefault(o, []).append(x[(slice(None), *at)])
    return {o: np.stack(parts, 1) for o, parts in found.items()}


def pool(reduce, x, window, stride, padding):
    """`reduce` (np.max, np.mean) of what each window sees."""
    out = np.zeros((len(x), *counts(x.shape[1:-1], window, stride, padding, (1,) * len(window)), x.shape[-1]), x.dtype)
    for o, part in seen(x, window, stride, padding).items():
        out[(slice(None), *o)] = reduce(part, 1)
    return out


def max_pool_gradient(g, x, window, stride, padding):
    """Each window's gradient where its largest elements are, in equal parts."""
    y = pool(np.max, x, window, stride, padding)
    out = np.zeros(x.shape, g.dtype)
    flat = (1,) * len(window)
    each = list(visits(x.shape[1:-1], window, stride, padding, flat))
    share = np.zeros(y.shape)
    for o, _, at in each:
        share[(slice(None), *o)] += x[(slice(None), *at)] == y[(slice(None), *o)]
    for o, _, at in each:
        mine = x[(slice(None), *at)] == y[(slice(None), *o)]
        out[(slice(None), *at)] += np.where(mine, g[(slice(None), *o)] / share[(slice(None), *o)], 0)
    return out


def max_pool_pick(h, x, window, stride, padding):
    """The mean of what `h` has where each window's largest elements are."""
    wanted, given = seen(x, window, stride, padding), seen(h, window, stride, padding)
    out = np.zeros(pool(np.max, x, window, stride, padding).shape, h.dtype)
    for o, part in wanted.items():
        mine = part == part.max(1, keepdims=True)
        out[(slice(None), *o)] = (mine * given[o]).sum(1) / mine.sum(1)
    return out


def avg_pool_gradient(g, shape, window, stride, padding):
    out, n = np.zeros(shape, g.dtype), np.zeros(g.shape)
    each = list(visits(shape[1:-1], window, stride, padding, (1,) * len(window)))
    for o, _, _ in each:
        n[(slice(None), *o)] += 1
    for o, _, at in each:
        out[(slice(None), *at)] += g[(slice(None), *o)] / n[(slice(None), *o)]
    return out
