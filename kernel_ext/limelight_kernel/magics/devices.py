"""`%devices` shows the devices, what lives on each, and the copies between them."""

from __future__ import annotations

from typing import Any

from IPython.core.magic import line_magic, magics_class, output_can_be_silenced
from IPython.core.magic_arguments import magic_arguments

import limelight_widgets as views
from limelight_kernel.line import arguments
from limelight_kernel.line.arguments import form_arguments, keep_argument
from limelight_kernel.magics.magic import LimelightMagic


@magics_class
class DevicesMagic(LimelightMagic):
    """`%devices`."""

    @magic_arguments()
    @keep_argument
    @form_arguments
    @output_can_be_silenced
    @line_magic
    def devices(self, line: str) -> Any:
        """Show the devices, the bytes alive on each, and the copies between them.

            %devices

        From Python: limelight_widgets.devices()
        """
        given = arguments.parse(self.devices, line)
        return self._show(given, views.devices())
