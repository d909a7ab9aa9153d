"""What `cupyx` has, of the pretended library."""

from __future__ import annotations

import contextlib

import numpy as np
from cupy import _hardware as hardware

from cupyx import scipy as scipy


@contextlib.contextmanager
def errstate(*, divide=None, over=None, under=None, invalid=None, linalg=None):
    before = hardware.local.linalg
    hardware.local.linalg = linalg or before
    try:
        yield
    finally:
        hardware.local.linalg = before


def empty_pinned(shape, dtype=float, order="C"):
    return np.zeros(shape, dtype, order).view(hardware.PinnedArray)
