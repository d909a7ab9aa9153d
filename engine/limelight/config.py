"""Settings of the whole process: `ll.config`."""

from limelight.devices import set_virtual_devices as set_virtual_devices
