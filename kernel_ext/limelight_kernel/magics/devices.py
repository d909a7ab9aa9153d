"""`%devices` shows the devices, what lives on each, and the copies between them; `%%devices` those of a cell."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import line_cell_magic, magics_class, no_var_expand, output_can_be_silenced
from IPython.core.magic_arguments import argument, magic_arguments

import limelight_widgets as views
from limelight import explain, memory
from limelight.core.device_copies import size_of
from limelight.core.devices import list_devices
from limelight.core.tensor import Tensor
from limelight.core.variable import Variable
from limelight.errors import ArgumentError
from limelight_kernel.line import arguments
from limelight_kernel.line.arguments import FORMS, form_arguments, keep_argument
from limelight_kernel.magics.magic import Cards, LimelightMagic, PlainText
from limelight_kernel.run.watched_devices import run_and_watch
from limelight_widgets.figures.devices import live_figure, memory_figure


@magics_class
class DevicesMagic(LimelightMagic):
    """`%devices` and `%%devices`."""

    @magic_arguments()
    @argument(
        "--live",
        metavar="T",
        nargs="?",
        default=False,
        const=True,
        help="the largest live tensors, by name, with the line that made each; of T seconds ago, or of the peak, where "
        "--watch had begun",
    )
    @argument(
        "--copies",
        action="store_true",
        help="which lines copied between devices since the import, and what to write instead",
    )
    @argument("--mem", action="store_true", help="the bytes alive on each device, and the most there were, as a table")
    @argument(
        "--watch", action="store_true", help="count peaks to the byte from now on, and note the line of each tensor"
    )
    @argument("--reset", action="store_true", help="begin peaks and copies anew; ends --watch")
    @argument(
        "--place",
        metavar="NAME",
        help="where this tensor or variable is, and who holds it; where the nodes of this staged function run, and why",
    )
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
            %devices --watch
            %devices --live 0
            %devices --live peak
            %devices --mem
            %devices --reset

        Nothing is counted while nobody looks. --watch counts until --reset, and costs each op some 3 µs; the peaks in
        --mem are then those of every moment, temporaries of staged calls included.

        As %%devices it runs a cell and shows what that held, ran and copied:

            %%devices --fail-on-copy --budget 512MB
            y = x + 1.0

        From Python: limelight_widgets.devices(), limelight.explain.live_tensors(watch=watch, at=0.5), .who_holds(x),
        .Copies(forbid=True),
        limelight.memory_info("cpu:0"), limelight.memory.DeviceWatch(), limelight.memory.reset()
        """
        given = arguments.parse(self.devices, line, cell)
        arguments.positive(given.top, "%devices --top")
        if cell is not None:
            arguments.only(given, ("fail_on_copy", "budget", *FORMS), self.devices, "devices", True)
            return self._of_cell(given, line, cell)
        arguments.only(
            given,
            ("live", "copies", "place", "top", "device", "mem", "watch", "reset", *FORMS),
            self.devices,
            "devices",
        )
        if given.live:
            device = arguments.device(given.device, "%devices -d")
            answer = self._live(given.live, device, given.top)
            return self._told(given, answer, live_figure(answer))
        if given.watch or given.reset or given.mem:
            return self._counted(given)
        if given.copies:
            return self._show(given, Cards(explain.copies()))
        return self._say(given, self._place(given.place)) if given.place else self._show(given, views.devices())

    def _live(self, when: Any, device: str | None, top: int) -> Any:
        """What lives now, or lived at a moment, in seconds ago or "peak"."""
        names = self.shell.user_ns
        if when is True:
            return explain.live_tensors(device, top, names)
        at = when if when == "peak" else _seconds(when)
        if self.session.device_watch is None:
            raise UsageError(f"%devices --live {when}: nobody has counted; write %devices --watch first, and run again")
        try:
            return explain.live_tensors(device, top, names, watch=self.session.device_watch, at=at)
        except ArgumentError as error:
            raise UsageError(f"%devices --live: {error.bare.removeprefix('at=')}") from None

    def _of_cell(self, given: Namespace, line: str, cell: str) -> Any:
        __tracebackhide__ = True
        budget = None if given.budget is None else _size(given.budget)
        value, told = run_and_watch(self.shell, line, cell, given.fail_on_copy, budget)
        self._display(given, told)
        return value

    def _counted(self, given: Namespace) -> Any:
        if given.watch and given.reset:
            raise UsageError("%devices: --watch begins and --reset ends: ask one at a time")
        if given.reset:
            self.session.watch_devices(on=False)
            memory.reset()
            return self._nothing(
                given, "Peaks begin anew at what lives now, and the copies noted so far are forgotten."
            )
        if given.watch:
            self.session.watch_devices()
            return self._nothing(given, "Peaks are counted and lines are noted from now on, until %devices --reset.")
        devices = [memory.memory_info(device) for device in list_devices()]
        return self._told(given, devices, memory_figure(devices, exact=self.session.device_watch is not None))

    def _place(self, name: str) -> PlainText:
        value = self.session.value(name)
        if hasattr(value, "trace_cache"):
            return PlainText(str(explain.placements(value)))
        if not isinstance(value, (Tensor, Variable)):
            raise UsageError(f"%devices --place: {name!r} is a {type(value).__name__}, and lives on no device")
        said = f"{name}, {value.nbytes:,} bytes, is on {value.device}"
        return PlainText("\n".join([said, str(explain.who_holds(value))]))


def _seconds(text: str) -> float:
    """Seconds ago, of "2.5" or "2.5s"; raises UsageError for anything else."""
    try:
        seconds = float(text.removesuffix("s"))
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise UsageError(f"%devices --live: {text!r} is no moment; write how many seconds ago, or peak")
    return seconds


def _size(text: str) -> int:
    """Bytes, of "512MB" or "1.5GiB" or "4096"; raises UsageError for anything else."""
    try:
        return size_of(text)
    except ArgumentError as error:
        raise UsageError(f"%%devices --budget: {error.bare}") from None
