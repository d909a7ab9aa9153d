"""Settings of the whole process: `ll.config`."""

from typing import TYPE_CHECKING

from limelight.core.device_copies import copies
from limelight.core.devices import set_virtual_devices
from limelight.core.placement import soft_placement
from limelight.executors.setting import deterministic, executor
from limelight.executors.xla.disk_cache import compilation_cache
from limelight.ops.nn._cudnn_convolution import tf32
from limelight.optimise.setting import optimiser
from limelight.staging.run_eagerly import run_functions_eagerly
from limelight.user_code import hints
from limelight.user_code.tracebacks import show_library_frames

__all__ = [
    "compilation_cache",
    "copies",
    "deterministic",
    "executor",
    "optimiser",
    "run_functions_eagerly",
    "set_virtual_devices",
    "show_library_frames",
    "soft_placement",
    "tf32",
]

if not TYPE_CHECKING:  # type checkers are to know of names that are missing
    __getattr__ = hints.missing_name_hint("config")
__dir__ = hints.listing(__all__)
