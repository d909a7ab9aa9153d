"""The magics. Each is a few lines over a function that scripts can call as well."""

from __future__ import annotations

from argparse import REMAINDER, Namespace
from functools import partial
from typing import Any

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, line_cell_magic, line_magic, magics_class, no_var_expand, output_can_be_silenced
from IPython.core.magic_arguments import argument, magic_arguments
from IPython.display import display

import limelight_widgets as views
from limelight import explain
from limelight.errors import ArgumentError
from limelight_kernel import arguments, cache_magic
from limelight_kernel.arguments import form_arguments, keep_argument
from limelight_kernel.beneath import is_dropped
from limelight_kernel.cell import cell_number
from limelight_kernel.inputs import specs_from
from limelight_kernel.options import USUAL, Options, Shown
from limelight_kernel.result import PlainText
from limelight_kernel.run import as_it_was, run_cell, staged_table
from limelight_kernel.session import Session, position
from limelight_kernel.staged import StagedCell
from limelight_kernel.why import Explanation
from limelight_kernel.would import apart, ask, written_call


@magics_class
class LimelightMagics(Magics):
    """`%%stage`, and the magics that show graphs, trace caches, tapes and devices."""

    shell: InteractiveShell

    def __init__(self, shell: InteractiveShell, session: Session) -> None:
        super().__init__(shell)
        self.session = session
        self._shown: tuple[int, str] | None = None

    @magic_arguments()
    @argument("name", nargs="?", metavar="NAME", help="bind the staged cell, as a callable, to this name")
    @argument(
        "-i", "--inputs", metavar="a,b", help="the graph's arguments, instead of every tensor that the cell reads"
    )
    @argument("-s", "--spec", metavar="x=SPEC", action="append", default=[], help="trace for this spec of an input")
    @argument("-d", "--device", metavar="DEVICE", help="run on this device")
    @argument("--relax", action="store_true", help="after a second size, trace for unknown sizes")
    @argument(
        "--max-traces", type=int, metavar="N", help="a call that would make more traces is an error, and says why"
    )
    @argument(
        "--strict", action="store_true", help="a second trace is an error, so is what Python does while tracing alone"
    )
    @argument("--autograph", action="store_true", help="stage Python's if, while and for where tensors decide")
    @argument(
        "-g", "--grad", action="store_true", help="show the gradients of the result, and the graph that makes them"
    )
    @argument(
        "-a",
        "--annotate",
        metavar="PARTS",
        nargs="?",
        action="append",
        const=",".join(USUAL),
        default=[],
        help="under each line its ops as traced (trace), as they run (opt), the code that runs them (plan), or nothing "
        "(source); several with commas; -a alone: trace,opt",
    )
    @argument("-t", "--time", action="store_true", help="time tracing, passes, planning, cached calls and eager runs")
    @argument("-f", "--force", action="store_true", help="forget earlier traces of this cell, and trace afresh")
    @argument("--no-run", action="store_true", help="trace and show, but neither run nor assign")
    @argument("-q", "--quiet", action="store_true", help="show nothing but the result")
    @keep_argument
    @form_arguments
    @output_can_be_silenced
    @no_var_expand
    @line_cell_magic
    def stage(self, line: str, cell: str | None = None) -> Any:
        """Compile the cell to a graph and run it.

        Names that the cell reads before it assigns them are the graph's inputs: tensors and arrays by type, plain
        Python values by value, variables by reference, everything else by identity. Names that it assigns are
        written back, and its last expression is its result. What is no tensor is made once, while tracing.
        Shows the cell, line by line: staged, fused, constant, dead, or run by Python while tracing only. A line unfolds
        to its ops, as traced and as they run, and what each pass did to them.

        --time runs the cell again, by its graph and by Python; variables and generators are put back to what they were.

        %stage lists the staged cells; %stage NAME shows one as it was traced last, and runs nothing.

            import limelight as ll
            x = ll.constant([1.0, 2.0])

            %%stage double
            y = x + x
            y
        """
        given = arguments.parse(self.stage, line, cell)
        if cell is None:
            return self._staged(given)
        given.name, parts = arguments.parts(given.annotate, given.name)
        options = Options(
            None if given.name is None else arguments.identifier(given.name, "%%stage"),
            arguments.names(given.inputs, "%%stage -i"),
            specs_from(self.shell, given.spec),
            arguments.device(given.device, "%%stage -d"),
            given.relax,
            arguments.positive(given.max_traces, "%%stage --max-traces"),
            given.autograph,
            given.strict,
        )
        shown = Shown(parts, given.grad, given.time, given.force)
        result = run_cell(self.session, cell, line, options, not given.no_run, given.output, shown)
        self._keep(given, result)
        if not given.quiet and self._shown != (cell_number(self.shell), result.name):
            # %%timeit runs a cell many times, and shows it once
            self._shown = (cell_number(self.shell), result.name)
            display(_form(given, result))
        return result.result

    @magic_arguments()
    @argument("name", nargs="?", metavar="NAME", help="a staged function; default: the last staged cell")
    @argument("--which", choices=("traced", "optimised"), default="optimised", help="the version shown first")
    @argument(
        "--trace", type=int, metavar="N", help="trace #N, -1 for the last; default: the newest, and those to come"
    )
    @keep_argument
    @form_arguments
    @output_can_be_silenced
    @line_magic
    def graph(self, line: str) -> Any:
        """Show the graph of a staged function.

            %graph double --which traced

        From Python: limelight_widgets.graph(double, which="traced")
        """
        given = arguments.parse(self.graph, line)
        function = self.session.function(given.name)
        if function is None:
            return self._nothing(given, "No function is staged yet: start a cell with %%stage, or use ll.function.")
        trace = -1 if given.trace is None else position(function, given.trace)
        return self._show(given, views.graph(function, which=given.which, trace=trace))

    @magic_arguments()
    @argument("name", nargs="?", metavar="NAME", help="a staged function; default: all that are alive")
    @argument("--why", action="store_true", help="say why it was traced, each time")
    @argument(
        "--would", nargs=REMAINDER, metavar="CALL", help="say whether this call would hit or miss; the rest of the line"
    )
    @argument("--diff", nargs=2, type=int, metavar=("I", "J"), help="what distinguishes traces #I and #J")
    @argument("--clear", action="store_true", help="forget its traces")
    @argument("--expect", type=int, metavar="N", help="as %%%%trace_cache: the cell must make exactly so many traces")
    @argument("--max", type=int, metavar="N", help="as %%%%trace_cache: the cell may make so many traces at most")
    @keep_argument
    @form_arguments
    @output_can_be_silenced
    @no_var_expand
    @line_cell_magic
    def trace_cache(self, line: str, cell: str | None = None) -> Any:
        """Show the traces of a staged function: for what arguments, how often used, and why there is more than one.

            %trace_cache double --why
            %trace_cache --would double(x=x[:1])

        --diff 1 2 shows what distinguishes traces #1 and #2: their signatures, and the nodes of their graphs.
        As %%trace_cache it runs a cell, reports the traces that it makes, and fails where they are too many:

            %%trace_cache double --max 1
            double(x=x + 1)

        From Python: limelight_widgets.trace_cache(double), limelight.explain.retrace(double), double.explain(x=x[:1])
        """
        given = arguments.parse(self.trace_cache, line, cell)
        cache_magic.check(given, cell)
        if cell is not None:
            value, traces = cache_magic.expecting(self.session, given, line, cell)
            display(self._keep(given, PlainText(traces)))
            return value
        if given.name is None and cache_magic.shows_all(given):
            return self._show(given, views.trace_cache())
        function = cache_magic.function(self.session, given)
        if function is None and given.would is None:
            return self._nothing(given, "No function is staged yet: start a cell with %%stage, or use ll.function.")
        answer = cache_magic.answer(self.session, function, given, line)
        return self._show(given, views.trace_cache(function)) if answer is None else self._say(given, answer)

    @magic_arguments()
    @argument("name", nargs="?", metavar="NAME", help="a gradient tape; default: the newest in the notebook")
    @argument("--why", nargs=2, metavar=("TARGET", "SOURCE"), help="say why the gradient of TARGET for SOURCE is None")
    @keep_argument
    @form_arguments
    @output_can_be_silenced
    @line_magic
    def tape(self, line: str) -> Any:
        """Show what a gradient tape has recorded, and the bytes that it keeps alive.

            %tape
            %tape --why loss x

        From Python: limelight_widgets.tape(tape), limelight.explain.why_none(tape, loss, x)
        """
        given = arguments.parse(self.tape, line)
        tape = self.session.tape(given.name)
        if tape is None:
            return self._nothing(given, "No tape is here yet: with ll.GradientTape() as tape: ...")
        if given.why:
            target, source = map(self.session.value, given.why)
            try:
                answer = explain.why_none(tape, target, source, scope=self.shell.user_ns)
            except ArgumentError as error:
                raise UsageError(f"%tape --why: {error.bare}") from None
            return self._say(given, PlainText(answer))
        return self._show(given, views.tape(tape))

    @magic_arguments()
    @argument("name", nargs="?", metavar="NAME", help="a staged function; default: the last staged cell")
    @argument(
        "--nan", nargs=REMAINDER, metavar="CALL", help="name the first op that makes a NaN or infinity in this call"
    )
    @argument(
        "--pure", nargs=REMAINDER, metavar="CALL", help="trace this call twice, on the side, and tell what differs"
    )
    @argument("-g", "--grad", action="store_true", help="with --nan: in the gradient of the results, too")
    @argument("--leaks", action="store_true", help="list tensors of its traces that something has kept")
    @keep_argument
    @output_can_be_silenced
    @no_var_expand
    @line_magic
    def explain(self, line: str) -> Any:
        """Say why a staged function was traced, what it does while tracing alone, and which values are baked in.

            %explain double
            %explain --nan double(x=x / 0)
            %explain --grad --nan double(x=x)
            %explain --pure double(x=x)

        --nan runs the call op by op; it changes no variable and assigns no name. --pure runs the Python code twice.

        From Python: limelight.explain.retrace, .side_effects, .baked, .nan, .purity, .leaks
        """
        given = arguments.parse(self.explain, line)
        if given.nan is not None:
            call, behind = apart(written_call(line, "--nan"), ("--grad", "-g"))
            question = partial(explain.nan, gradient_of=True) if given.grad or behind else explain.nan
            return self._say(given, PlainText(ask(self.session, call, question, "--nan")))
        if given.pure is not None:
            twice = ask(self.session, written_call(line, "--pure"), explain.purity, "--pure")
            return self._say(given, PlainText(twice))
        function = self.session.function(given.name)
        if function is None:
            return self._nothing(given, "No function is staged yet: start a cell with %%stage, or use ll.function.")
        return self._say(given, PlainText(explain.leaks(function)) if given.leaks else Explanation.of(function))

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

    def _staged(self, given: Namespace) -> Any:
        given.name, parts = arguments.parts(given.annotate, given.name)
        arguments.only(given, ("annotate", "output", "text", "static"), self.stage, "stage")
        if given.name is None:
            return self._say(given, PlainText(staged_table(self.session.cells)))
        function = self.session.function(given.name)
        again = as_it_was(function, parts) if isinstance(function, StagedCell) else None
        return self._show(given, views.graph(function) if again is None else again)

    def _show(self, given: Namespace, view: Any) -> Any:
        return _seen(_form(given, self._keep(given, view)))

    def _say(self, given: Namespace, made: Any) -> Any:
        return _seen(self._keep(given, made))

    def _nothing(self, given: Namespace, sentence: str) -> Any:
        return self._say(given, PlainText(sentence))

    def _keep(self, given: Namespace, made: Any) -> Any:
        if given.output is not None:
            self.shell.push({given.output: made})
        return made


def _form(given: Namespace, view: Any) -> Any:
    """The view in the form that was asked for."""
    if given.text:
        return PlainText(view)
    return view.static() if given.static else view


def _seen(made: Any) -> Any:
    """`made`, the value of a line magic; displayed here where the cell would drop it."""
    if is_dropped():
        display(made)
    return made
