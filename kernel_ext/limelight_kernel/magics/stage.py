"""`%%stage` runs a cell as a graph; `%stage` lists the staged cells, and shows one again."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Mapping
from typing import Any

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import line_cell_magic, magics_class, no_var_expand, output_can_be_silenced
from IPython.core.magic_arguments import argument, magic_arguments
from IPython.display import display

import limelight_widgets as views
from limelight.core.devices import list_devices
from limelight.errors import ArgumentError
from limelight.optimise import pipeline
from limelight.optimise.setting import checked
from limelight.staging import partial_trace
from limelight_kernel.cell.cell_source import cell_number
from limelight_kernel.inputs.line_inputs import specs_from
from limelight_kernel.line import arguments
from limelight_kernel.line.arguments import FORMS, form_arguments, keep_argument, unquoted
from limelight_kernel.line.completion import Names
from limelight_kernel.line.options import PARTS, USUAL, Options, Shown
from limelight_kernel.magics.magic import LimelightMagic, PlainText, form_asked
from limelight_kernel.report.headline import newest_trace_report, staged_table
from limelight_kernel.report.refused_cell import refused_cell
from limelight_kernel.run.run_cell import run_cell
from limelight_kernel.staged.session import Session
from limelight_kernel.staged.staged_cell import StagedCell

_FOR_CELLS = (
    *FORMS, "inputs", "spec", "device", "relax", "max_traces", "strict", "autograph", "grad", "annotate", "time",
    "force", "no_run", "level", "passes", "without",
)  # fmt: skip


@magics_class
class StageMagic(LimelightMagic):
    """`%%stage`."""

    def __init__(self, shell: InteractiveShell, session: Session) -> None:
        super().__init__(shell, session)
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
        "--no-relax",
        dest="relax",
        action="store_false",
        default=False,
        help="trace anew for each size, which is the default",
    )
    @argument(
        "-O", dest="level", type=int, choices=(0, 1, 2, 3), help="how much the optimiser does; default: as configured"
    )
    @argument("--passes", metavar="PASSES", help="the passes of the optimiser that run, and no others, with commas")
    @argument("--without", metavar="PASSES", help="passes of the optimiser that do not run, with commas")
    @argument("--list", action="store_true", help="on a line of its own: list the staged cells")
    @argument("--source", action="store_true", help="on a line of its own: the text of the cell")
    @argument("--drop", metavar="NAME", help="on a line of its own: forget this staged cell, its traces and its name")
    @argument(
        "--max-traces", type=int, metavar="N", help="a call that would make more traces is an error, and says why"
    )
    @argument(
        "--strict", action="store_true", help="a second trace is an error, so is what Python does while tracing alone"
    )
    @argument("--autograph", action="store_true", help="stage Python's if, while and for where tensors decide")
    @argument(
        "-g",
        "--grad",
        metavar="x,w",
        nargs="?",
        default=False,
        const=True,
        help="show the gradients of the result by these inputs and variables, or by all, and the graph that makes them",
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

        As a callable: NAME(x=value) runs the cell's graph with other inputs, and returns a pair, CellOutputs: outputs,
        the names that the cell assigns, and result, its last expression (NAME(x=value).result). The notebook's own
        names stay as they are; only the cell itself, when it is run, writes them.

        In place: what the cell changes of lists, dictionaries and objects, it changes at each run; so it does with
        NumPy arrays by += and the like, and by arr[i] = x. Other changes of such inputs (arr.sort()), and those of
        arrays whose memory the cell reaches in two ways, are refused at the line. A cell that writes to an open file
        (fh.write), or has an object of another library change itself, is traced at each run, so that each run does it.

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
        held = self.session.preferences
        arguments.only(given, _FOR_CELLS, self.stage, "stage", True)
        given.name, parts = arguments.parts(given.annotate, given.name)
        grad, given.name, wrt = arguments.sources(given.grad, given.name)
        parts = parts or held.get("annotate")
        if given.max_traces is None and not given.strict:
            given.max_traces = held.get("max_traces")
        shown, options = Shown(parts, grad, wrt, given.time, given.force), self._options(given)
        try:
            result = run_cell(self.session, cell, line, options, not given.no_run, given.output, shown)
        except Exception as error:
            self._show_failed(given, error)
            raise
        if not given.quiet and self._shown != (cell_number(self.shell), result.name):
            # %%timeit runs a cell many times, and shows it once
            self._shown = (cell_number(self.shell), result.name)
            self._display(given, result)
        else:
            self._keep(given, result)
        return result.result

    def _options(self, given: Namespace) -> Options:
        return Options(
            None if given.name is None else arguments.identifier(given.name, "%%stage"),
            arguments.names(given.inputs, "%%stage -i"),
            specs_from(self.shell, given.spec),
            arguments.device(given.device, "%%stage -d"),
            given.relax,
            arguments.positive(given.max_traces, "%%stage --max-traces"),
            given.autograph,
            given.strict,
            given.level,
            _passes(given),
        )

    def _show_failed(self, given: Namespace, error: Exception) -> None:
        """The cell with the line that was refused; its graph up to what failed, where tracing it has come to an op."""
        failed, raised = self.session.failed, self.session.raised
        partial = None if failed is None else partial_trace.of(failed.id)
        graph = None if partial is None else partial.graph
        refused = None if raised is None or given.quiet else refused_cell(error, raised.cell, graph)
        if refused is not None:
            display(form_asked(given, refused))
        if partial is not None and partial.graph.nodes and not given.quiet:
            display(form_asked(given, views.graph(failed)))

    def _staged(self, given: Namespace) -> Any:
        given.name, parts = arguments.parts(given.annotate, given.name)
        arguments.only(given, ("annotate", "list", "source", "drop", *FORMS), self.stage, "stage")
        if given.drop is not None:
            dropped = self._staged_cell(given.drop, "--drop")
            self.session.drop(dropped)
            return self._say(given, PlainText(f"{dropped.name} is forgotten, with its traces."))
        if given.source:
            return self._say(given, PlainText(self._staged_cell(given.name, "--source").cell.text.rstrip()))
        if given.name is None or given.list:
            return self._say(given, PlainText(staged_table(self.session.cells)))
        function = self.session.function(given.name)
        again = newest_trace_report(function, parts) if isinstance(function, StagedCell) else None
        return self._show(given, views.graph(function) if again is None else again)

    def _staged_cell(self, name: str | None, flag: str) -> StagedCell:
        """The staged cell of that name, of `%%stage NAME` or `cell_3`; without a name the last one."""
        by_name = [one for one in self.session.cells if one.name == name]
        staged = by_name[-1] if by_name else self.session.function(name)
        if not isinstance(staged, StagedCell):
            raise UsageError(
                f"%stage {flag}: {'no cell is staged yet' if name is None else f'{name!r} is no staged cell'}"
            )
        return staged

    def names(self) -> Iterable[str]:
        return self.session.function_names()

    def flag_values(self) -> Mapping[str, Names]:
        passes = {"--passes": pipeline.names, "--without": pipeline.names}
        return passes | {"-d": _devices, "--device": _devices, "-a": lambda: PARTS, "--annotate": lambda: PARTS}


def _passes(given: Namespace) -> tuple[str, ...]:
    """The passes that do not run, by `--without` or `--passes`; raises UsageError for one that there is not."""
    if given.passes is not None and given.without is not None:
        raise UsageError("%%stage: --passes names those that run, --without those that do not: write one of them")
    flag, text = ("--without", given.without) if given.passes is None else ("--passes", given.passes)
    names = tuple(word.strip() for word in unquoted(text or "").split(",") if word.strip())
    try:
        checked(given.level or 0, names)
    except ArgumentError as error:
        raise UsageError(f"%%stage {flag}: {error.bare.removeprefix('without=')}") from None
    return tuple([one for one in pipeline.names() if (one in names) == (given.passes is None)])


def _devices() -> list[str]:
    return [device.short for device in list_devices()]
