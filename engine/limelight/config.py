"""Settings of the whole process: `ll.config`."""

from limelight.devices import set_virtual_devices
from limelight.frames import show_library_frames
from limelight.optimise.settings import optimiser
from limelight.staging.eagerly import run_functions_eagerly

__all__ = ["optimiser", "run_functions_eagerly", "set_virtual_devices", "show_library_frames"]
