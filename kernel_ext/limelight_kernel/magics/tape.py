"""`%tape` shows what a gradient tape has recorded and answers about gradients; `%%tape` records a cell."""

from __future__ import annotations

from argparse import REMAINDER, Namespace
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final

from IPython.core.error import UsageError
from IPython.core.magic import line_cell_magic, magics_class, no_var_expand, output_can_be_silenced
from IPython.core.magic_arguments import argument, magic_arguments

import limelight_widgets as views
from limelight import explain
from limelight.errors import ArgumentError
from limelight_kernel.line import arguments
from limelight_kernel.line.arguments import FORMS, form_arguments, keep_argument
from limelight_kernel.line.completion import Names
from limelight_kernel.line.options import Options
from limelight_kernel.magics.call_on_line import answer_about_call, written_call
from limelight_kernel.magics.magic import Cards, LimelightMagic, PlainText, form_asked, seen
from limelight_kernel.magics.progress_line import ProgressLine
from limelight_kernel.run.recorded_cell import run_and_record
from limelight_widgets.figures.tape import flow_figure, path_figure, recomputations_figure, saved_figure

_NO_TAPE = "No tape is here yet: with ll.GradientTape() as tape: ..."
_ABOUT_CALLS: Final[dict[str, Callable[..., Any]]] = {
    "check": explain.check_gradient,
    "flow": explain.gradient_flow,
    "recompute": explain.recomputations,
}


@magics_class
class TapeMagic(LimelightMagic):
    """`%tape` and `%%tape`."""

    @magic_arguments()
    @argument("name", nargs="?", metavar="NAME", help="a gradient tape; default: the newest in the notebook")
    @argument("--why", nargs=2, metavar=("TARGET", "SOURCE"), help="say why the gradient of TARGET for SOURCE is None")
    @argument("--of", metavar="TARGET", help="only the entries through which the gradient of TARGET goes back")
    @argument("--wrt", metavar="a,b", help="with --of: to these sources; default: all that the tape watches")
    @argument("--saved", action="store_true", help="what it keeps alive, tensor by tensor, and which rules need each")
    @argument("--rule", metavar="OP", help="the gradient rule of the records of this op")
    @argument(
        "--check", nargs=REMAINDER, metavar="CALL", help="hold the gradient of a call against central differences"
    )
    @argument(
        "--flow", nargs=REMAINDER, metavar="CALL", help="the norm of each gradient on its way back through a call"
    )
    @argument(
        "--recompute", nargs=REMAINDER, metavar="CALL", help="what recomputing saves and costs, for each tensor kept"
    )
    @argument("--tol", type=float, metavar="T", help="before --check: the relative error up to which it is right; 1e-4")
    @argument("-w", "--watch", metavar="a,b", help="as %%%%tape: watch these, besides variables")
    @argument("--persistent", action="store_true", help="as %%%%tape: the tape may be asked more than once")
    @argument("--order", type=int, default=1, metavar="N", help="as %%%%tape: N tapes, one inside the other")
    @keep_argument
    @form_arguments
    @output_can_be_silenced
    @no_var_expand
    @line_cell_magic
    def tape(self, line: str, cell: str | None = None) -> Any:
        """Show what a gradient tape has recorded, and the bytes that it keeps alive.

            %tape
            %tape --saved
            %tape --why loss x
            %tape --of loss --wrt x
            %tape --check double(x=x)
            %tape --flow double(x=x)
            %tape --recompute double(x=x)

        A tape keeps no program, so what runs again is written as a call; its gradient is that of the sum of its results
        by all arguments and trainable variables. --check, --flow and --recompute change nothing that the call would.
        As %%tape it runs a cell on a tape, and keeps that under NAME; with --check, --flow or --recompute it asks about
        the cell, and neither runs nor assigns:

            %%tape recording --watch x
            y = (x * x).sum()

        From Python: limelight_widgets.tape(tape), tape.saved_tensors, limelight.explain.why_none(tape, loss, x),
        .gradient_path(tape, loss, x), .check_gradient(f, x), .gradient_flow(f, x), .recomputations(f, x)
        """
        given = arguments.parse(self.tape, line, cell)
        arguments.positive(given.order, "%%tape --order")
        asked = [flag for flag in _ABOUT_CALLS if getattr(given, flag) is not None]
        if given.tol is not None and asked != ["check"]:
            raise UsageError("%tape --tol: it goes before --check CALL, as in %tape --tol 1e-3 --check step(x)")
        if given.wrt is not None and given.of is None:
            raise UsageError("%tape --wrt: of which target? write %tape --of loss --wrt x")
        if cell is not None:
            allowed = ("tol", *_ABOUT_CALLS, "watch", "persistent", "order", *FORMS)
            arguments.only(given, allowed, self.tape, "tape", True)
            return self._about_cell(given, asked[0], line, cell) if asked else self._of_cell(given, line, cell)
        arguments.only(given, (*_ABOUT_CALLS, "why", "saved", "rule", "of", "wrt", "tol", *FORMS), self.tape, "tape")
        if asked:
            return self._drawn(given, asked[0], self._about_call(given, asked[0], line))
        target = given.why[0] if given.why else given.of
        tape = self.session.tape(given.name, target)
        return self._nothing(given, _NO_TAPE) if tape is None else self._about_tape(given, tape)

    def _about_tape(self, given: Namespace, tape: Any) -> Any:
        if given.why:
            target, source = map(self.session.value, given.why)
            try:
                written = dict(zip(given.why, (target, source), strict=True))
                answer = explain.why_none(tape, target, source, scope={**written, **self.shell.user_ns})
            except ArgumentError as error:
                raise UsageError(f"%tape --why: {error.bare}") from None
            return self._show(given, Cards(answer))
        if given.of:
            return self._path(given, tape)
        if given.rule:
            return self._say(given, PlainText(_rules(tape, given.rule)))
        if given.saved:
            saved = saved_figure(tape)
            self._keep(given, tape.saved_tensors if given.json else saved)
            return seen(form_asked(given, tape.saved_tensors if given.json else saved))
        return self._show(given, views.tape(tape))

    def _path(self, given: Namespace, tape: Any) -> Any:
        """The entries between a target and its sources."""
        names = arguments.names(given.wrt, "%tape --wrt")
        sources = None if names is None else [self.session.value(name) for name in names]
        try:
            path = explain.gradient_path(tape, self.session.value(given.of), sources)
        except ArgumentError as error:
            raise UsageError(f"%tape --of: {error.bare}") from None
        return self._told(given, path, path_figure(path))

    def _about_call(self, given: Namespace, flag: str, line: str) -> Any:
        text = written_call(line, f"--{flag}")
        try:
            with ProgressLine():
                answer = answer_about_call(self.session, text, _question(given, flag), f"%tape --{flag}")
        except ArgumentError as error:
            raise UsageError(f"%tape --{flag}: {error.bare}") from None
        return answer

    def _drawn(self, given: Namespace, flag: str, answer: Any) -> Any:
        """The answer as a table, or as text alone."""
        draw = {"flow": flow_figure, "recompute": recomputations_figure}.get(flag, PlainText)
        return self._told(given, answer, draw(answer))

    def _about_cell(self, given: Namespace, flag: str, line: str, cell: str) -> Any:
        if getattr(given, flag):
            raise UsageError(
                f"%%tape --{flag}: above a cell it asks about the cell; leave the call out, and other flags before"
            )
        staged, _ = self.session.cell(cell, line, Options())
        with ProgressLine():
            answer = _question(given, flag)(staged, **staged.sent({}))
        return self._drawn(given, flag, answer)

    def _of_cell(self, given: Namespace, line: str, cell: str) -> Any:
        __tracebackhide__ = True
        name = None if given.name is None else arguments.identifier(given.name, "%%tape")
        watched = [self.session.value(one) for one in arguments.names(given.watch, "%%tape -w") or ()]
        value, tapes = run_and_record(self.shell, line, cell, watched, given.persistent, given.order)
        kept = tapes[0] if len(tapes) == 1 else tapes
        if name is not None:
            self.shell.push({name: kept})
        if given.output is not None:
            self.shell.push({given.output: kept})
        given.output = None
        for tape in tapes:
            self._display(given, views.tape(tape))
        return value

    def names(self) -> Iterable[str]:
        return self.session.tape_names()

    def flag_values(self) -> Mapping[str, Names]:
        return dict.fromkeys([f"--{flag}" for flag in _ABOUT_CALLS], self.session.function_names)


def _question(given: Namespace, flag: str) -> Callable[..., Any]:
    question = _ABOUT_CALLS[flag]
    return question if given.tol is None else partial(question, tolerance=given.tol)


def _rules(tape: Any, op: str) -> str:
    """The rules of the records of one op, each once."""
    entries = [entry for entry in tape.entries if entry.op == op]
    if not entries:
        known = sorted({entry.op for entry in tape.entries})
        close = arguments.did_you_mean(op, known) or f"; it has {', '.join(known) or 'none'}"
        raise UsageError(f"%tape --rule: this tape has no record of {op!r}{close}")
    lines = {entry.rule: f"{', '.join(entry.inputs)} → {', '.join(entry.outputs)}" for entry in entries}
    return "\n".join(f"{op}: {rule or 'no text'}   for {types}" for rule, types in lines.items())
