"""`%stageconfig` shows and changes how the magics behave in this notebook."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import line_magic, magics_class, output_can_be_silenced
from IPython.core.magic_arguments import argument, magic_arguments

from limelight.errors import ArgumentError
from limelight_kernel.line import arguments
from limelight_kernel.line.arguments import keep_argument
from limelight_kernel.line.preferences import KNOWN
from limelight_kernel.magics.magic import LimelightMagic, PlainText
from limelight_widgets.figures.static_forms import Table, text_table


class _Settings:
    """The settings that hold, as a table and as a dictionary."""

    def __init__(self, held: dict[str, str]) -> None:
        self.held = held

    def to_dict(self) -> dict[str, str]:
        return self.held

    def __str__(self) -> str:
        rows = [(key, value, KNOWN[key].values, KNOWN[key].help) for key, value in self.held.items()]
        return text_table(Table(("setting", "is", "may be", "what it does"), rows, wrapped=frozenset({"what it does"})))


@magics_class
class StageconfigMagic(LimelightMagic):
    """`%stageconfig`."""

    @magic_arguments()
    @argument("setting", nargs="?", metavar="KEY=VALUE", help="what to set; KEY alone shows it, nothing shows all")
    @argument("--reset", action="store_true", help="put all settings back to their defaults")
    @argument("--save", dest="remember", action="store_true", help="remember the settings for later notebooks")
    @keep_argument
    @argument("-q", "--quiet", action="store_true", help="show nothing")
    @argument("--json", action="store_true", help="as JSON")
    @argument("--text", action="store_true", help="plain text only")
    @output_can_be_silenced
    @line_magic
    def stageconfig(self, line: str) -> Any:
        """Show and change how the magics behave where their line does not say.

            %stageconfig
            %stageconfig annotate=trace,opt
            %stageconfig annotate
            %stageconfig --reset

        --save writes them into the profile's folder of IPython, from where %load_ext limelight takes them.

        From Python: limelight.config.optimiser(2), .show_library_frames(), .run_functions_eagerly(),
        limelight_widgets.set_theme("dark")
        """
        given = arguments.parse(self.stageconfig, line)
        given.static, given.save = False, None
        preferences = self.session.preferences
        key, is_set, value = (given.setting or "").partition("=")
        if given.reset:
            preferences.reset()
        try:
            if is_set:
                preferences.set(key.strip(), arguments.unquoted(value.strip()))
        except ArgumentError as error:
            hint = "" if key.strip() in KNOWN else arguments.did_you_mean(key, KNOWN)
            raise UsageError(f"%stageconfig: {error.bare}{hint}") from None
        held = preferences.table()
        if key and key not in held:
            raise UsageError(f"%stageconfig: there is no setting {key!r}{arguments.did_you_mean(key, KNOWN)}")
        if given.remember:
            profile = self.shell.profile_dir
            if profile is None:
                raise UsageError("%stageconfig --save: this shell has no profile, and so no folder to remember them in")
            preferences.save(profile.location)
        return self._show(given, PlainText(_Settings({key: held[key]} if key else held)))

    def names(self) -> Iterable[str]:
        return [f"{key}=" for key in KNOWN]
