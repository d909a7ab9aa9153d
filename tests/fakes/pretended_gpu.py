"""The pretended CuPy in the place of the real one, for as long as a test needs it."""

from __future__ import annotations

import importlib
import sys
from contextlib import contextmanager
from pathlib import Path

FOLDER = Path(__file__).parent / "libraries"
OURS = "limelight.core.backends.cupy"
_loaded = {}  # kept from one time to the next, since kernels know them


def _is_of_cupy(name):
    return name in ("cudnn", "cupy", "cupyx", OURS) or name.startswith(("cupy.", "cupyx."))


@contextmanager
def pretended_gpus():
    """GPU:0 and GPU:1 are there in its block; gives the module `cupy`.

    Not beside a real one in the same process: kernels are made once.
    """
    from limelight.core import backends, devices
    from limelight.ops.nn import _cudnn_convolution

    before = {name: sys.modules.pop(name) for name in list(sys.modules) if _is_of_cupy(name)}
    known = devices.list_devices()
    sys.path.insert(0, str(FOLDER))
    sys.modules.update(_loaded)
    _cudnn_convolution.library.cache_clear()
    try:
        cupy = importlib.import_module("cupy")
        importlib.import_module("cupyx")
        assert cupy.__version__.endswith("pretended")
        importlib.import_module(OURS)._last.by_device.clear()
        cupy._hardware.reset()
        devices._local[:] = [*known, *[devices.Device("GPU", i) for i in range(cupy.cuda.runtime.getDeviceCount())]]
        yield cupy
    finally:
        devices._local[:] = known
        _loaded.update({name: sys.modules.pop(name) for name in list(sys.modules) if _is_of_cupy(name)})
        sys.modules.update(before)
        sys.path.remove(str(FOLDER))
        backends.load.cache_clear()
        _cudnn_convolution.library.cache_clear()
