"""What is in a file, and what restoring it would do: nothing is changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from limelight.checkpoint.checkpoint import as_path
from limelight.checkpoint.checkpoint_file import GENERATOR, CheckpointFile, listed
from limelight.checkpoint.commit import Given
from limelight.checkpoint.manifest import SavedNode
from limelight.checkpoint.match_plan import Plan, Planner, fits, matched_slots, spec_text
from limelight.checkpoint.match_tree import MatchTree, tree_lines
from limelight.checkpoint.object_graph import LEAVES, ObjectGraph, Value, kind_of
from limelight.checkpoint.restoration import Restoration
from limelight.checkpoint.status import report
from limelight.checkpoint.values import decode
from limelight.core.variable import Variable
from limelight.errors import CheckpointError


@dataclass(frozen=True, slots=True)
class SavedValue:
    """One value of a file: where it was saved, as what, and its dtype and shape or what it is."""

    path: str
    kind: str
    value: str


@dataclass(frozen=True)
class Contents:
    """All values of a file. Its text is a tree."""

    source: str
    nbytes: int
    records: tuple[SavedValue, ...]
    checked: str = ""
    """Whether all bytes are as they were written, in words; empty where nobody asked."""

    @property
    def headline(self) -> str:
        said = f"; {self.checked}" if self.checked else ""
        count = "1 value" if len(self.records) == 1 else f"{len(self.records):,} values"
        return f"{self.source}: {count}, {self.nbytes:,} bytes of arrays{said}"

    def to_dict(self) -> dict[str, Any]:
        """All of it, ready for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        lines = tree_lines((record.path, f"{record.value:<16} {record.kind}") for record in self.records)
        return "\n".join([self.headline, *lines])

    __repr__ = __str__


def contents(path: Any, *, check: bool = False) -> Contents:
    """What is in a checkpoint.

    Args:
        path: its file.
        check: whether all bytes are held against the checksums in the file.

    Raises:
        MissingCheckpointError: there is none.
        CheckpointError: it is no checkpoint.

    >>> import limelight as ll, tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "run.safetensors")
    >>> written = ll.Checkpoint(v=ll.Variable([1.0, 2.0]), epoch=3).write(path)
    >>> print(contents(path))
    run.safetensors: 2 values, 8 bytes of arrays
    v      f32[2]           variable
    epoch  3                value
    >>> contents(path, check=True).headline
    'run.safetensors: 2 values, 8 bytes of arrays; all bytes are as they were written'
    """
    file = CheckpointFile(as_path(path))
    leaves = [node for node in file.manifest.nodes if node.kind in LEAVES]
    size = sum(file.entry(key).end - file.entry(key).begin for key in file.manifest.array_keys())
    records = tuple([SavedValue(n.path, n.kind, _text(file, n)) for n in leaves])
    return Contents(file.path.name, size, records, _checked(file) if check else "")


def _checked(file: CheckpointFile) -> str:
    changed = file.changed()
    if changed is None:
        return "there are no checksums, so nothing tells whether it is as it was written"
    return f"damaged: {listed(changed)} not as it was written" if changed else "all bytes are as they were written"


def root_names(path: Any) -> list[str]:
    """The names that the objects of a checkpoint were given, without the default generator, which managers add.

    Args:
        path: its file.

    Raises:
        MissingCheckpointError: there is none.
        CheckpointError: it is no checkpoint.

    >>> import limelight as ll, tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "run.safetensors")
    >>> root_names(ll.Checkpoint(v=ll.Variable(1.0), epoch=3).write(path))
    ['v', 'epoch']
    """
    nodes = CheckpointFile(as_path(path)).manifest.nodes
    return [str(edge) for edge, _ in nodes[0].children if edge != GENERATOR]


def saved_as(path: Any, x: Any) -> list[str]:
    """The names in a checkpoint under which something was saved that an object would take, all that it has included.

    Args:
        path: the file of the checkpoint.
        x: a module, a variable or another object with state.

    Returns:
        Names of what fits: of that, or where nothing does, what was of the object's class, if anything was.

    Raises:
        MissingCheckpointError: there is none.
        CheckpointError: it is no checkpoint.

    >>> import limelight as ll, tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "run.safetensors")
    >>> written = ll.Checkpoint(net=ll.State(w=ll.Variable([1.0])), epoch=ll.Variable(3)).write(path)
    >>> saved_as(path, ll.Variable(0))
    ['epoch']
    >>> saved_as(path, ll.State(w=ll.Variable([2.0])))
    ['net']
    """
    file = CheckpointFile(as_path(path))
    nodes = file.manifest.nodes
    leaves = sum(1 for node in ObjectGraph(x).leaves() if not isinstance(node.object, Value))
    children = [(str(edge), number) for edge, number in nodes[0].children if edge != GENERATOR]
    of_its_class = [name for name, number in children if nodes[number].type == type(x).__name__]
    plans = {name: Planner(file, lambda number: None, ()).match(number, x) for name, number in children}
    fitting = [name for name, plan in plans.items() if not plan.misfits and len(plan.assignments) >= leaves]
    fitting = fitting if leaves else []  # whatever there is takes something without state
    return [name for name in of_its_class if name in fitting] or fitting or of_its_class


def has_state(x: Any) -> bool:
    """Whether an object has state that a checkpoint saves: a module, a variable, a list of them.

    >>> import limelight as ll
    >>> has_state(ll.nn.Dense(2)), has_state(ll.ones(2))
    (True, False)
    """
    return kind_of(x) is not None


def preview(path: Any, root: Any) -> MatchTree:
    """How a file would be matched with a checkpoint, or with any module, without restoring it.

    Args:
        path: the file.
        root: a `Checkpoint`, or what else is to be matched with the root of the file.

    Raises:
        MissingCheckpointError: there is no such file.
        CheckpointError: it is no checkpoint.

    >>> import limelight as ll, tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "run.safetensors")
    >>> written = ll.Checkpoint(v=ll.Variable([1.0, 2.0]), epoch=3).write(path)
    >>> print(preview(path, ll.Checkpoint(v=ll.Variable([1.0]), epoch=0)).headline)
    run.safetensors: 1 matched, 1 mismatched
    """
    file = CheckpointFile(as_path(path))
    restoration = Restoration(file)
    restoration.silent = True
    plan = Planner(file, restoration.matched, ()).match(0, root)
    nodes = file.manifest.nodes
    given = {a.number: Given(_spec(a.target), _saved_spec(file, nodes[a.number])) for a in plan.assignments}
    given |= {number: Given(None, _saved_spec(file, nodes[number])) for _, _, number in plan.renewed}
    for optimizer, variable, numbers in matched_slots(nodes, range(len(nodes)), plan.objects.get):
        given |= _slots_given(file, plan, optimizer, variable, numbers)
    restoration.foresee(plan, given)
    return MatchTree(file.path.name, tuple(report(restoration, root, ObjectGraph(root))))


def _slots_given(
    file: CheckpointFile, plan: Plan, optimizer: Any, variable: Variable, numbers: Mapping[str, int]
) -> dict[int, Given]:
    """The slots that an optimiser would be given: it makes those that it lacks."""
    nodes = file.manifest.nodes
    live: dict[str, Variable] = next((slots for v, slots in optimizer.variables_with_slots() if v is variable), {})
    plan.objects |= {number: live[name] for name, number in numbers.items() if name in live}
    return {
        number: Given(_spec(live.get(name)), _saved_spec(file, nodes[number]))
        for name, number in numbers.items()
        if name in optimizer.slot_names
        and fits(file, nodes[number], variable.shape, file.spec(nodes[number].array, nodes[number].dtype)[1])
    }


def _text(file: CheckpointFile, node: SavedNode) -> str:
    if node.array:
        return spec_text(*file.spec(node.array, node.dtype))
    try:
        text = repr(decode(node.value, file.value_array)) if node.kind == "value" else node.type
    except CheckpointError as error:
        text = error.bare
    return text if len(text) <= 40 else text[:37] + "..."


def _saved_spec(file: CheckpointFile, node: SavedNode) -> Any:
    return file.spec(node.array, node.dtype) if node.array else None


def _spec(target: Any) -> Any:
    shape, dtype = getattr(target, "shape", None), getattr(target, "dtype", None)
    return None if shape is None or dtype is None else (tuple(shape), dtype)
