"""Settings of the whole process: `ll.config`."""

from limelight.devices import set_virtual_devices

__all__ = ["set_virtual_devices"]
