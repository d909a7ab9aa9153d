"""Weights in plain safetensors files: what other libraries write and read.

A file has arrays by name and nothing else. Names are paths in the module, joined by dots (slashes are read, too), or
PyTorch's, whose layers call their weights otherwise and keep them transposed, or Keras'.
"""

from __future__ import annotations

import functools
import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NoReturn, TypeAlias

import numpy as np

from limelight.checkpoint import RestoreStatus
from limelight.checkpoint.array_files import ArrayFile, Unwritten, write_arrays
from limelight.checkpoint.array_mapping import ArrayMapping, Offered
from limelight.checkpoint.checkpoint import as_path
from limelight.checkpoint.checkpoint_file import FUNCTIONS, GRAPH
from limelight.checkpoint.file_system import Reader, Writer, cannot_write
from limelight.checkpoint.manifest import checked_json, parse
from limelight.checkpoint.object_graph import LEAVES, child_of, kind_of
from limelight.checkpoint.object_paths import Edge
from limelight.checkpoint.restoration import Restoration
from limelight.core import dtypes
from limelight.core.dtypes import dtype
from limelight.core.tensor import Tensor
from limelight.core.variable import Variable
from limelight.errors import ArgumentError, CheckpointError, DTypeError
from limelight.module import Module
from limelight.nn import keras_layout, torch_layout
from limelight.nn.layers.sequential import Sequential

Rename: TypeAlias = Mapping[str, str | None] | Callable[[str], str | None]
_POSITION: Final = re.compile("[0-9]{1,18}")
_LAYOUTS: Final = ("limelight", "torch", "keras")
_IGNORED: Final = {"limelight": (), "torch": torch_layout.IGNORED, "keras": keras_layout.IGNORED}
PAIRS: Final = "limelight.complex128"
"""The key of a file's metadata under which the names of arrays that are complex128 stand, as a list in JSON."""


def load_weights(
    module: Module, source: Any, *, rename: Rename | None = None, layout: str = "limelight"
) -> RestoreStatus:
    """Gives the variables of a module the arrays of a safetensors file, or of a dictionary.

    A name leads to a variable by its path: `layers.0.kernel`, or with slashes. Layers whose weights are not made yet
    get theirs on their first call. Floating arrays are cast to the variable's dtype. All fit, or nothing is loaded.

    Args:
        module: a module.
        source: the path of a safetensors file, or a dictionary of arrays by name: `model.state_dict()` of PyTorch, and
            `{v.path: v.numpy() for v in model.weights}` of Keras.
        rename: what their names are here: a dictionary from names, or beginnings of names up to a dot, to ours, or a
            function; None drops an array. What is not in the dictionary keeps its name.
        layout: "torch" for names and layouts of PyTorch's layers: `weight` of a Linear is the transposed `kernel` of a
            Dense, that of a Conv2d has its window first here, and `running_mean` is the `mean` of a BatchNorm. The two
            biases of an LSTM are added. "keras" for those of Keras: `gamma` is the `scale` of a BatchNorm,
            `embeddings` the `table` of an Embedding, `lstm_cell` the `cell` of an LSTM. GRUs of both have no place,
            but those of Keras with `reset_after=False`.

    Returns:
        What was matched: `print(status.tree())` shows it, `status.assert_consumed()` raises unless all was.

    Raises:
        MissingCheckpointError: there is no such file.
        CheckpointError: it is no such file, or one of `ll.save`; a value does not fit, two names lead to one variable,
            or none leads to any.
        ArgumentError: an argument is not as above.

    >>> import limelight as ll, numpy as np
    >>> model = ll.nn.Sequential(ll.nn.Dense(2), ll.nn.relu)
    >>> torchs = {"fc.weight": np.ones((2, 3), "float32"), "fc.bias": np.zeros(2, "float32")}
    >>> status = ll.nn.load_weights(model, torchs, rename={"fc": "layers.0"}, layout="torch")
    >>> model(ll.ones((1, 3))).tolist()
    [[3.0, 3.0]]
    >>> status
    weights: 2 matched
    """
    _check(module, layout, "load_weights")
    path, offered = _offered(source)
    arrays: dict[tuple[Edge, ...], Offered] = {}
    names: dict[tuple[Edge, ...], str] = {}
    for name, one in offered.items():
        ours = _renamed(name, rename)
        if ours is not None and ours.rpartition(".")[2] not in _IGNORED[layout]:
            edges, taken, turn = _placed(module, ours, one, layout)
            if edges in names and turn == "addend":
                taken = _sum(arrays[edges], taken, names[edges], name)
            elif edges in names:
                raise CheckpointError(
                    f"load_weights: {names[edges]!r} and {name!r} both lead to {'.'.join(map(str, edges))!r}: give one "
                    "of them another name by rename={...}, or None, which drops it"
                )
            arrays[edges], names[edges] = taken, name
    return _restored(module, ArrayMapping(path, arrays))


def save_weights(module: Module, path: Any, *, layout: str = "limelight") -> Path:
    """Writes the variables of a module to a plain safetensors file, by their paths joined by dots.

    The format lacks complex128: such arrays are pairs of float64, which `load_weights` takes back.

    Args:
        module: a module whose variables have been made.
        path: the name of the file.
        layout: "torch" for names and layouts of PyTorch's layers, where they differ.

    Returns:
        The path.

    Raises:
        CheckpointError: it cannot be written, or the module has no variables yet.
        ArgumentError: an argument is not as above.

    >>> import limelight as ll, tempfile, os
    >>> path, layer = os.path.join(tempfile.mkdtemp(), "dense.safetensors"), ll.nn.Dense(2)
    >>> y = layer(ll.ones((1, 3)))
    >>> written = ll.nn.save_weights(layer, path, layout="torch")
    >>> again = ll.nn.Dense(2)
    >>> ll.nn.load_weights(again, path, layout="torch").expect_partial()
    dense.safetensors: 2 waiting
    >>> bool((again(ll.ones((1, 3))) == y).all())
    True
    """
    _check(module, layout, "save_weights")
    target = as_path(path)
    arrays: dict[str, Unwritten] = {}
    for edges, variable in module.named_variables():
        name, array = _unwritten(module, edges, variable, layout)
        if name in arrays:
            raise CheckpointError(
                f"save_weights: two variables are called {name}, as dots and slashes in keys are like those between "
                "them: give one another key, or save by ll.Checkpoint, which tells them apart"
            )
        arrays[name] = array
    if not arrays:
        raise CheckpointError(
            f"save_weights: this {type(module).__name__} has no variables yet: call it once, which makes them"
        )
    if os.path.isdir(target):
        raise CheckpointError(f"{target} is a folder: give the name of a file, {target}/model.safetensors")
    writer = None
    try:
        writer = Writer(target)
        write_arrays(writer, arrays, _metadata(arrays, layout))
        writer.commit()
    except OSError as error:
        named = writer is not None and writer.has_its_name
        raise CheckpointError(cannot_write(target, error, named=named)) from error
    finally:
        if writer is not None:
            writer.discard()
    return target


def _metadata(arrays: Mapping[str, Unwritten], layout: str) -> dict[str, str]:
    """What other readers ask for, and which pairs of float64 are complex128."""
    pairs = [name for name, array in arrays.items() if array.dtype == dtypes.complex128]
    told = {"format": "pt" if layout == "torch" else "np"}
    return {**told, PAIRS: json.dumps(pairs)} if pairs else told


def _check(module: Any, layout: str, name: str) -> None:
    if not isinstance(module, Module):
        raise ArgumentError(f"{name}: needs a module, got {type(module).__name__}")
    if layout not in _LAYOUTS:
        raise ArgumentError(f"{name}: layout is one of {', '.join(map(repr, _LAYOUTS))}, got {layout!r}")
    if layout == "keras" and name == "save_weights":
        raise ArgumentError(
            "save_weights: layout is 'limelight' or 'torch'; Keras reads no such files: give it the arrays of "
            "module.named_variables(), variable by variable, v.assign(array)"
        )


def _offered(source: Any) -> tuple[Path, dict[str, Offered]]:
    if isinstance(source, Mapping):
        return Path("weights"), {str(name): _of_value(str(name), value) for name, value in source.items()}
    path = as_path(source)
    file = ArrayFile(Reader(path))
    if FUNCTIONS in file.metadata:
        file.reader.close()
        raise CheckpointError(
            f"load_weights: {path} has functions that ll.save wrote, and not weights alone: read it by "
            f"loaded = ll.load({str(path)!r}), whose variables are attributes, and "
            "load_weights(module, dict(loaded.named_variables())) takes over"
        )
    pairs = _pairs(path, file)
    return path, {name: _of_file(file, name, paired=name in pairs) for name in file.entries}


def _of_file(file: ArrayFile, name: str, *, paired: bool) -> Offered:
    entry = file.entries[name]
    if not paired:
        return Offered(entry.shape, entry.dtype, functools.partial(file.array, name))
    shape = entry.shape[:-1]
    return Offered(shape, dtypes.complex128, lambda: file.array(name).view(dtypes.complex128).reshape(shape))


def _pairs(path: Path, file: ArrayFile) -> frozenset[str]:
    """The arrays that are complex128, which the format lacks: pairs of float64 by a list in the metadata."""

    def refuse(why: str) -> NoReturn:
        raise CheckpointError(f"load_weights: {path} says wrongly what is complex128: {why}")

    if GRAPH in file.metadata:  # a checkpoint, whose object graph says so
        manifest = parse(file.metadata[GRAPH], str(path), file.reader.size)
        names = [node.array for node in manifest.nodes if node.dtype]
    else:
        names = checked_json(file.metadata.get(PAIRS, "[]"), file.reader.size, refuse)
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            refuse("it is no list of names")
    for name in names:
        entry = file.entries.get(name)
        if entry is None or entry.dtype != dtypes.float64 or entry.shape[-1:] != (2,):
            refuse(f"{name[:80]!r} is no array of pairs of float64")
    return frozenset(names)


def _of_value(name: str, value: Any) -> Offered:
    if isinstance(value, (Tensor, Variable)):
        array = value.numpy()
    else:
        value = value.detach().cpu() if hasattr(value, "detach") else value
        try:
            array = np.asarray(value)
            dtype(array.dtype)
        except (TypeError, ValueError, DTypeError) as error:
            raise ArgumentError(f"load_weights: {name!r} is no array of numbers: {error}") from None
    return Offered(array.shape, dtype(array.dtype), lambda: np.array(array, dtype(array.dtype)))


def _renamed(name: str, rename: Rename | None) -> str | None:
    name = name.replace("/", ".")
    if rename is None:
        return name
    if callable(rename):
        return rename(name)
    if not isinstance(rename, Mapping):
        raise ArgumentError(f"load_weights: rename is a dictionary or a function, got {type(rename).__name__}")
    table = {their.replace("/", "."): ours for their, ours in rename.items()}
    for end in sorted({len(name), *(i for i, c in enumerate(name) if c == ".")}, reverse=True):
        if name[:end] in table:
            ours = table[name[:end]]
            return None if ours is None else (ours + name[end:]).strip(".")
    return name


def _placed(module: Module, name: str, one: Offered, layout: str) -> tuple[tuple[Edge, ...], Offered, str]:
    """The edges to the variable of a name, its array in our layout, and the turn that this took."""
    edges: list[Edge] = []
    at: Any = module
    segments = [part for part in name.replace("/", ".").split(".") if part]
    for i, part in enumerate(segments):
        if isinstance(at, Sequential) and _POSITION.fullmatch(part):
            edges.append("layers")
            at = at.layers
        if i == len(segments) - 1:
            place = _place(at, part, edges, one, layout, name)
            if place is not None:
                return (*edges, *place[0].split("/")), _turned(one, place[1]), place[1]
        edges.append(_edge(at, keras_layout.part(at, part) if layout == "keras" else part))
        at = None if kind_of(at) in (None, *LEAVES) else child_of(at, edges[-1])
    return tuple(edges), one, ""


def _place(layer: Any, part: str, edges: list[Edge], one: Offered, layout: str, name: str) -> tuple[str, str] | None:
    """The path from a layer that another library's name means, and the name of the turn; None for a name of ours."""
    if layout == "keras":
        return keras_layout.ours(layer, part, edges[-1] if edges else "", one.shape)
    of_torch = torch_layout.ours(layer, part)
    if of_torch is None or layout == "torch":
        return of_torch
    if of_torch[0] != part:
        raise CheckpointError(
            f"load_weights: {name!r} is PyTorch's name for the {of_torch[0].replace('/', '.')!r} of a "
            f'{type(layer).__name__}: write load_weights(module, source, layout="torch")'
        )
    return None


def _edge(owner: Any, part: str) -> Edge:
    """The edge of a container or module that a part of a name means: a position, a key that is a number, or a name."""
    if isinstance(owner, dict):
        return next((key for key in owner if type(key) is int and str(key) == part and part not in owner), part)
    return int(part) if isinstance(owner, (list, tuple)) and _POSITION.fullmatch(part) else part


def _turned(one: Offered, turn: str) -> Offered:
    if not turn or turn == "addend" or (turn == "conv" and len(one.shape) < 2):
        return one
    turned = torch_layout.TRANSPOSES[turn][0] if turn in torch_layout.TRANSPOSES else keras_layout.TURNS[turn]
    try:
        shape = turned(np.broadcast_to(np.empty(()), one.shape)).shape
    except ValueError:  # a number of columns that is no multiple of the gates': its shape is refused
        return one
    return Offered(shape, one.dtype, lambda: np.array(turned(one.get()), order="C"))


def _sum(one: Offered, other: Offered, *names: str) -> Offered:
    """The sum of two arrays that are one variable here."""
    if one.shape != other.shape:
        raise CheckpointError(f"load_weights: {names[0]!r} and {names[1]!r} are added here, and differ in shape")
    return Offered(one.shape, one.dtype, lambda: one.get() + other.get())


def _unwritten(module: Module, path: str, variable: Variable, layout: str) -> tuple[str, Unwritten]:
    name = path.replace("/", ".")
    value = variable._value_now()
    if layout == "torch":
        *above, attribute = path.split("/")
        owner: Any = module
        for part in above:
            owner = child_of(owner, _edge(owner, part))
        known = torch_layout.theirs(owner, attribute)
        if known is not None:
            name = ".".join([*above, known[0]])
            value = torch_layout.TRANSPOSES[known[1]][1](value) if known[1] else value
    return name, Unwritten(variable.dtype, value.shape, lambda: value)


def _restored(module: Module, mapping: ArrayMapping) -> RestoreStatus:
    restoration = Restoration(mapping)
    try:
        restoration.begin(module)
    except BaseException:
        restoration.silent = True
        raise
    status = RestoreStatus(module, restoration)
    if not status.tree().of("matched", "waiting"):
        restoration.silent = True
        names = ", ".join(node.path.replace("/", ".") for node in mapping.manifest.nodes if node.kind == "variable")
        own = ", ".join(path.replace("/", ".") for path, _ in module.named_variables())
        raise CheckpointError(
            f"load_weights: no array is for a variable of this {type(module).__name__}. The arrays are {names[:300]}; "
            f"the variables are {own[:300] or 'not made yet'}. Say what is what by rename={{'theirs': 'ours'}}"
        )
    return status
