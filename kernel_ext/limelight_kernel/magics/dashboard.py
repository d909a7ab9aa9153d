"""`%dashboard` opens the dashboard: graph, trace cache, tape and devices in one place."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import line_magic, magics_class, output_can_be_silenced
from IPython.core.magic_arguments import argument, magic_arguments

import limelight_widgets as views
from limelight.errors import ArgumentError
from limelight_kernel.line import arguments
from limelight_kernel.line.arguments import form_arguments, keep_argument
from limelight_kernel.line.completion import Names
from limelight_kernel.magics.magic import LimelightMagic
from limelight_widgets.live.panel import PANELS
from limelight_widgets.views.dashboard import DOCKS

WORDS = ("open", "close", "reset")
"""What may be written in the place of a name, where no staged function is called so."""


@magics_class
class DashboardMagic(LimelightMagic):
    """`%dashboard`."""

    @magic_arguments()
    @argument("name", nargs="?", metavar="NAME", help="a staged function; default: whatever was traced last")
    @argument("--tape", metavar="TAPE", help="a gradient tape; default: the one that recorded last")
    @argument(
        "--panels", metavar="a,b", help=f"the views that it has, of {','.join(PANELS)}; default: as the last time"
    )
    @argument("--dock", choices=DOCKS, help="where it stands in JupyterLab; default: as the last time, at first right")
    @argument("--rate", type=float, metavar="HZ", help="how often a view is drawn anew, at most; 10 times a second")
    @argument("--reset", action="store_true", help="all views, the usual place and rate, and nothing remembered")
    @argument("--close", action="store_true", help="take the dashboard off the page")
    @keep_argument
    @form_arguments
    @output_can_be_silenced
    @line_magic
    def dashboard(self, line: str) -> Any:
        """Show graph, trace cache, tape and devices in one place, linked by what is chosen in any of them.

            %dashboard
            %dashboard double
            %dashboard --panels graph,tape --dock bottom --rate 4
            %dashboard --reset
            %dashboard --close

        Where no function is called so, the words open, reset and close do what they say. In JupyterLab it stands beside
        the notebook. A second %dashboard shows other things in the one that is open.
        The page remembers for each notebook which views it had, where it stood, and which tab was open; entries in the
        command palette open it, and each of its views.

        From Python: limelight_widgets.dashboard(double), limelight_widgets.reset_dashboard(), .close_dashboard()
        """
        given = arguments.parse(self.dashboard, line)
        if given.name in WORDS and given.name not in self.session.function_names():
            given.close, given.reset = given.close or given.name == "close", given.reset or given.name == "reset"
            given.name = None
        if given.close or given.reset:
            flag = "--close" if given.close else "--reset"
            if given.name or given.tape or given.panels or given.dock or given.rate is not None:
                raise UsageError(f"%dashboard {flag}: there is one dashboard; write nothing else on the line")
            was = views.close_dashboard() if given.close else views.reset_dashboard()
            done = "The dashboard is closed." if given.close else "The dashboard is as it was at first."
            return self._nothing(given, done if was else "No dashboard is open.")
        function = None if given.name is None else self.session.function(given.name)
        tape = None if given.tape is None else self.session.tape(given.tape)
        panels = None if given.panels is None else [one.strip() for one in given.panels.split(",") if one.strip()]
        try:
            view = views.dashboard(function, tape, panels=panels, dock=given.dock, rate=given.rate)
        except ArgumentError as error:
            raise UsageError(f"%dashboard: {error.bare}") from None
        return self._show(given, view)

    def names(self) -> Iterable[str]:
        return self.session.function_names()

    def flag_values(self) -> dict[str, Names]:
        return {"--tape": self.session.tape_names, "--panels": lambda: PANELS}
