"""`%dashboard` opens the dashboard: graph, trace cache, tape and devices in one place."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import line_magic, magics_class, output_can_be_silenced
from IPython.core.magic_arguments import argument, magic_arguments

import limelight_widgets as views
from limelight_kernel.line import arguments
from limelight_kernel.line.arguments import form_arguments, keep_argument
from limelight_kernel.line.completion import Names
from limelight_kernel.magics.magic import LimelightMagic


@magics_class
class DashboardMagic(LimelightMagic):
    """`%dashboard`."""

    @magic_arguments()
    @argument("name", nargs="?", metavar="NAME", help="a staged function; default: whatever was traced last")
    @argument("--tape", metavar="TAPE", help="a gradient tape; default: the one that recorded last")
    @argument("--close", action="store_true", help="take the dashboard off the page")
    @keep_argument
    @form_arguments
    @output_can_be_silenced
    @line_magic
    def dashboard(self, line: str) -> Any:
        """Show graph, trace cache, tape and devices in one place, linked by what is chosen in any of them.

            %dashboard
            %dashboard double
            %dashboard --close

        In JupyterLab it stands beside the notebook. A second %dashboard shows other things in the one that is open.

        From Python: limelight_widgets.dashboard(double), limelight_widgets.close_dashboard()
        """
        given = arguments.parse(self.dashboard, line)
        if given.close:
            if given.name or given.tape:
                raise UsageError("%dashboard --close: there is one dashboard; write no NAME and no --tape")
            was = views.close_dashboard()
            return self._nothing(given, "The dashboard is closed." if was else "No dashboard is open.")
        function = None if given.name is None else self.session.function(given.name)
        tape = None if given.tape is None else self.session.tape(given.tape)
        return self._show(given, views.dashboard(function, tape))

    def names(self) -> Iterable[str]:
        return self.session.function_names()

    def flag_values(self) -> dict[str, Names]:
        return {"--tape": self.session.tape_names}
