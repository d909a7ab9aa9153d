"""Fourier transforms."""

from __future__ import annotations

import numpy as np

from ._array import on_device
from ._hardware import words

for _name in words(
    "fft fft2 fftfreq fftn fftshift hfft ifft ifft2 ifftn ifftshift ihfft irfft irfft2 irfftn rfft rfft2 rfftfreq rfftn"
):
    globals()[_name] = on_device(getattr(np.fft, _name))
