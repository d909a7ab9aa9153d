"""Two checkpoints compared: what was added, removed and changed, and by how much."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from limelight.checkpoint.array_files import Array
from limelight.checkpoint.checkpoint import as_path
from limelight.checkpoint.checkpoint_file import CheckpointFile
from limelight.checkpoint.manifest import SavedNode
from limelight.checkpoint.match_plan import spec_text
from limelight.checkpoint.match_tree import tree_lines
from limelight.checkpoint.object_graph import LEAVES
from limelight.checkpoint.values import decode, same


@dataclass(frozen=True, slots=True)
class Difference:
    """One saved value in two files: `state` is added, removed, changed or equal.

    `before` and `after` are dtype and shape, or the plain value. Of arrays that changed, `largest` is the largest
    absolute difference and `relative` the norm of the difference by that of the first; both are None of what is not
    compared in numbers.
    """

    path: str
    state: str
    before: str
    after: str
    largest: float | None = None
    relative: float | None = None


@dataclass(frozen=True)
class Comparison:
    """What differs between two checkpoints. Its text is a tree of the differences; `records` has all values."""

    before: str
    after: str
    records: tuple[Difference, ...]

    @property
    def headline(self) -> str:
        counted = Counter(record.state for record in self.records)
        said = [f"{counted[state]} {state}" for state in ("added", "removed", "changed", "equal") if counted[state]]
        return f"{self.before} -> {self.after}: {', '.join(said) or 'nothing was saved'}"

    def to_dict(self) -> dict[str, Any]:
        """All of it, ready for JSON."""
        return {"before": self.before, "after": self.after, "records": [asdict(record) for record in self.records]}

    def __str__(self) -> str:
        shown = [record for record in self.records if record.state != "equal"]
        return "\n".join([self.headline, *tree_lines((record.path, said(record)) for record in shown)])

    __repr__ = __str__


def said(record: Difference) -> str:
    """One difference in a few words."""
    if record.state == "added":
        return f"{record.after:<16} added"
    if record.state in ("removed", "equal"):
        return f"{record.before:<16} {record.state}"
    if record.largest is None:
        return f"{record.before} -> {record.after}  changed"
    if record.relative == math.inf:
        return f"{record.after:<16} changed from zeros, at most {record.largest:.3g}"
    return f"{record.after:<16} changed by {record.relative:.2%}, at most {record.largest:.3g}"


def compare(before: Any, after: Any) -> Comparison:
    """Compares two checkpoint files, value by value.

    Args:
        before: the path of a file.
        after: the path of another.

    Raises:
        MissingCheckpointError: one is not there.
        CheckpointError: one is no checkpoint.

    >>> import limelight as ll, tempfile, os
    >>> folder, v = tempfile.mkdtemp(), ll.Variable([1.0, 2.0])
    >>> checkpoint = ll.Checkpoint(v=v)
    >>> first = checkpoint.save(os.path.join(folder, "run.safetensors"))
    >>> moved = v.assign_add([0.0, 0.5])
    >>> second = checkpoint.save(os.path.join(folder, "run.safetensors"))
    >>> print(compare(first, second))
    run-1.safetensors -> run-2.safetensors: 1 changed
    v  f32[2]           changed by 22.36%, at most 0.5
    """
    a, b = (CheckpointFile(as_path(path)) for path in (before, after))
    saved_a, saved_b = _leaves(a), _leaves(b)
    paths = [*saved_a, *(path for path in saved_b if path not in saved_a)]
    records = [_difference(path, a, saved_a.get(path), b, saved_b.get(path)) for path in paths]
    names = [file.path.name for file in (a, b)]
    if names[0] == names[1]:
        names = [str(Path(file.path)) for file in (a, b)]
    return Comparison(names[0], names[1], tuple(records))


def _leaves(file: CheckpointFile) -> dict[str, SavedNode]:
    return {node.path: node for node in file.manifest.nodes if node.kind in LEAVES}


def _difference(
    path: str, a: CheckpointFile, old: SavedNode | None, b: CheckpointFile, new: SavedNode | None
) -> Difference:
    before = "" if old is None else _text(a, old)
    after = "" if new is None else _text(b, new)
    if old is None or new is None:
        return Difference(path, "added" if old is None else "removed", before, after)
    if not (old.array and new.array):
        values = [None if node.array else decode(node.value, f.value_array) for f, node in ((a, old), (b, new))]
        equal = not old.array and not new.array and same(*values)
        return Difference(path, "equal" if equal else "changed", before, after)
    x, y = a.array(old.array, old.dtype), b.array(new.array, new.dtype)
    if same(x, y):
        return Difference(path, "equal", before, after)
    if x.shape != y.shape or x.dtype != y.dtype or old.kind == "generator":
        return Difference(path, "changed", before, after)
    return Difference(path, "changed", before, after, *_distance(x, y))


def _distance(x: Array, y: Array) -> tuple[float, float]:
    """The largest absolute difference, and the norm of the difference by that of `x`; NaN and infinities ignored."""
    wide = np.complex128 if x.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        old = x.astype(wide)
        change = np.abs(y.astype(wide) - old)
        change, size = change[np.isfinite(change)], np.abs(old[np.isfinite(old)])
        norm = float(np.linalg.norm(size))
        moved = float(np.linalg.norm(change))
    return float(change.max(initial=0.0)), moved / norm if norm else math.inf if moved else 0.0


def _text(file: CheckpointFile, node: SavedNode) -> str:
    if node.array:
        return spec_text(*file.spec(node.array, node.dtype))
    text = repr(decode(node.value, file.value_array)) if node.kind == "value" else node.type
    return text if len(text) <= 40 else text[:37] + "..."
