"""`%devices` shows the devices, what lives on each, and the copies between them; `%%devices` those of a cell."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import line_cell_magic, magics_class, no_var_expand, output_can_be_silenced
from IPython.core.magic_arguments import argument, magic_arguments
from IPython.display import display

import limelight_widgets as views
from limelight import explain
from limelight.core.tensor import Tensor
from limelight.core.variable import Variable
from limelight_kernel.line import arguments
from limelight_kernel.line.arguments import form_arguments, keep_argument
from limelight_kernel.magics.magic import Cards, LimelightMagic, PlainText, form_asked, seen
from limelight_kernel.run.watched_devices import run_and_watch
from limelight_widgets.figures.devices import live_figure

_UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


@magics_class
class DevicesMagic(LimelightMagic):
    """`%devices` and `%%devices`."""

    @magic_arguments()
    @argument("--live", action="store_true", help="the largest live tensors, by name, with the line that made each")
    @argument(
        "--copies",
        action="store_true",
        help="which lines copied between devices since the import, and what to write instead",
    )
    @argument("--place", metavar="NAME", help="where this tensor or variable is, and who holds it")
    @argument("--top", type=int, default=20, metavar="N", help="with --live: list so many; 20")
    @argument("-d", "--device", metavar="DEVICE", help="with --live: of this device alone")
    @argument(
        "--fail-on-copy", action="store_true", help="as %%%%devices: a copy that .to() did not ask for is an error"
    )
    @argument("--budget", metavar="SIZE", help="as %%%%devices: more bytes alive at any moment are an error; 512MB")
    @keep_argument
    @form_arguments
    @output_can_be_silenced
    @no_var_expand
    @line_cell_magic
    def devices(self, line: str, cell: str | None = None) -> Any:
        """Show the devices, the bytes alive on each, and the copies between them.

            %devices
            %devices --live --top 3
            %devices --copies
            %devices --place x

        As %%devices it runs a cell and shows what that held, ran and copied:

            %%devices --fail-on-copy --budget 512MB
            y = x + 1.0

        From Python: limelight_widgets.devices(), limelight.explain.live_tensors(), .who_holds(x), .Copies(forbid=True)
        """
        given = arguments.parse(self.devices, line, cell)
        arguments.positive(given.top, "%devices --top")
        if cell is not None:
            arguments.only(given, ("fail_on_copy", "budget", "output", "text", "static"), self.devices, "devices", True)
            return self._of_cell(given, line, cell)
        arguments.only(
            given, ("live", "copies", "place", "top", "device", "output", "text", "static"), self.devices, "devices"
        )
        if given.live:
            device = arguments.device(given.device, "%devices -d")
            answer = self._keep(given, explain.live_tensors(device, given.top, self.shell.user_ns))
            return seen(PlainText(answer) if given.text else live_figure(answer))
        if given.copies:
            return self._show(given, Cards(explain.Copies.recent()))
        return self._say(given, self._place(given.place)) if given.place else self._show(given, views.devices())

    def _of_cell(self, given: Namespace, line: str, cell: str) -> Any:
        __tracebackhide__ = True
        budget = None if given.budget is None else _size(given.budget)
        value, told = run_and_watch(self.shell, line, cell, given.fail_on_copy, budget)
        display(form_asked(given, self._keep(given, told)))
        return value

    def _place(self, name: str) -> PlainText:
        value = self.session.value(name)
        if not isinstance(value, (Tensor, Variable)):
            raise UsageError(f"%devices --place: {name!r} is a {type(value).__name__}, and lives on no device")
        said = f"{name}, {value.nbytes:,} bytes, is on {value.device}"
        return PlainText("\n".join([said, str(explain.who_holds(value))]))


def _size(text: str) -> int:
    """Bytes, of "512MB" or "1.5GiB" or "4096"; raises UsageError for anything else."""
    digits = text.rstrip("BbKkMmGgTtIi")
    try:
        return int(float(digits) * _UNITS[text[len(digits) :].upper() or "B"])
    except (ValueError, KeyError):
        raise UsageError(f"%%devices --budget: {text!r} is no size; write 512MB, 1.5GiB or a number of bytes") from None
