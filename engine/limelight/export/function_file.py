"""The file of saved functions: arrays as safetensors, everything else as JSON in its header.

    metadata of the safetensors file: {"limelight.functions": JSON}
    JSON      ::= {"format": "limelight functions", "version": 1, "made_by": version of limelight,
                   "functions": {name: function, ...}, "variables": [variable, ...], "module": class name or null,
                   (the name of a method of a module below begins with the path of that: "blocks/0/encode")
                   "by_name": whether a dictionary of functions was saved,
                   "containers": {path: "list" or "dict", ...}, of a module; what else has variables below is a module,
                   "complex": [names of complex128 arrays, whose last axis is real and imaginary part]}
    function  ::= {"parameters": [parameter, ...], "traces": [trace, ...]}
    parameter ::= {"name": ..., "kind": ..., ["default": nest] | ["array": name, "tensor": whether it is a tensor]}
    trace     ::= {"arguments": nest, "text": graphs, "blanks": [[...], ...], "captures": [capture, ...],
                   "result": nest, "device": name or null}
    capture   ::= {"variable": number} | {"array": name} | {"generator": array's name, or null for the default one}
    variable  ::= {"path": as in `checkpoint.object_paths`, "name": ..., "array": name, "shape": [size or null, ...],
                   "trainable": ...}

Nothing in it is code: graphs are text over limelight's own ops (`portable_graph`), nests are described in `nest_json`.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from limelight.checkpoint.array_files import ArrayFile, Unwritten, write_arrays
from limelight.checkpoint.checkpoint_file import FUNCTIONS
from limelight.checkpoint.file_system import Reader
from limelight.checkpoint.manifest import checked_json
from limelight.errors import CheckpointError, ExportError
from limelight.export.destination import write_whole

FORMAT: Final = "limelight functions"
VERSION: Final = 1
_READERS: Final = {".npy": "np.load(path)", ".npz": "np.load(path)", ".pt": "torch.load(path)", ".onnx": "onnxruntime"}


def write(path: Path, content: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    """Writes a whole file or none. Raises ExportError where that cannot be done."""
    pairs = [name for name, array in arrays.items() if array.dtype == np.complex128]  # which safetensors lacks
    described = {"format": FORMAT, "version": VERSION, "complex": pairs, **content}
    unwritten = {
        name: Unwritten(x.dtype, x.shape, functools.partial(arrays.__getitem__, name)) for name, x in arrays.items()
    }
    write_whole(path, lambda writer: write_arrays(writer, unwritten, {FUNCTIONS: json.dumps(described)}))


def read(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The content and the arrays. Raises ExportError for a file that `write` has not made, and says what it is."""
    if os.path.isdir(path):
        raise ExportError(f"{path} is a folder; ll.load takes the file that ll.save wrote")
    try:
        file = ArrayFile(Reader(path))
        content = _content(path, file.metadata, file.reader.size)
        arrays = {name: file.array(name) for name in file.entries}
        file.reader.close()
    except CheckpointError as error:
        other = _READERS.get(path.suffix)
        raise ExportError(f"{error.bare}{f'; read it by {other}' if other else ''}") from error
    pairs = content.get("complex", [])
    if not isinstance(pairs, list) or not all(type(name) is str and _is_pairs(arrays.get(name)) for name in pairs):
        raise ExportError(f"{path} is damaged: it has complex numbers that are not pairs")
    for name in set(pairs):
        arrays[name] = arrays[name].view(np.complex128)[..., 0]
    return content, arrays


def _is_pairs(array: Any) -> bool:
    return array is not None and array.dtype == np.float64 and array.shape[-1:] == (2,)


def _content(path: Path, metadata: Mapping[str, str], size: int) -> dict[str, Any]:
    if "limelight" in metadata:
        raise ExportError(f"{path} is a checkpoint; ll.Checkpoint(model=model).restore(path) reads it")
    if FUNCTIONS not in metadata:
        raise ExportError(f"{path} holds arrays, and no functions; ll.nn.load_weights(module, path) reads it")

    def refuse(why: str) -> Any:
        raise ExportError(f"{path} is damaged: {why}")

    content = checked_json(metadata[FUNCTIONS], size, refuse)
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        refuse("its description is that of something else")
    if content.get("version") != VERSION:
        raise ExportError(
            f"{path} has version {content.get('version')!r} of the format, made by limelight "
            f"{content.get('made_by', '?')}; this limelight reads version {VERSION}: install a newer one"
        )
    return dict(content)
