"""A checkpoint on disk: one file with arrays and object graph, or one with the graph beside several with arrays.

The object graph is in the metadata of the safetensors header, so that a file is all there is, and any tool that knows
the format can list and read the arrays. Files with arrays of their own have names that no other save has; the file that
names them is renamed into place last, and is the checkpoint.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from limelight.checkpoint import file_system
from limelight.checkpoint.array_files import Array, ArrayFile, Entry, Unwritten, padding_of, write_arrays
from limelight.checkpoint.file_system import Reader, Writer
from limelight.checkpoint.manifest import Manifest, parse
from limelight.checkpoint.object_paths import WITHIN
from limelight.core import dtypes
from limelight.core.dtypes import DType
from limelight.errors import CheckpointError, CheckpointWarning
from limelight.user_code.warn_at import warn_here

GRAPH: Final = "limelight"  # the key of the metadata under which the object graph is
FUNCTIONS: Final = "limelight.functions"  # the same in a file of `ll.save`
PART_OF: Final = "limelight.part_of"
GENERATOR: Final = "default_generator"  # the name under which managers add it
_OTHERS: Final = {
    FUNCTIONS: "it has functions that ll.save wrote, and ll.load(path) reads it",
    PART_OF: "it is a part of a checkpoint, of which the file without numbers in its name is read",
}
_MOST_NAMED: Final = 8
MOST_BYTES: Final = 4 << 30  # of arrays in one file, unless the caller says otherwise


def write(path: Path, manifest: Manifest, arrays: Mapping[str, Unwritten], most_bytes: int = MOST_BYTES) -> None:
    """Writes a checkpoint, whole or not at all.

    Args:
        path: the name of its file.
        manifest: the object graph; its `files` are filled in.
        arrays: the arrays by key.
        most_bytes: of arrays in one file; an array is never split.

    Raises:
        CheckpointError: the file cannot be written; what was there before still is.
    """
    if os.path.isdir(path):  # which raises nothing, of a name that is too long either
        raise CheckpointError(f"{path} is a folder; a checkpoint is a file: write {path}/model.safetensors, say")
    writers: list[Writer] = []
    try:
        parts = _parts(arrays, most_bytes)
        if len(parts) > 1:
            _write_parts(path, manifest, parts, writers)
        writers.append(Writer(path))
        here = parts[0] if len(parts) == 1 else {}
        text = manifest.dumps()
        if any(padding_of(part, {}) for part in parts) or padding_of(here, {GRAPH: text}):
            text = manifest.dumps(padded=True)
        write_arrays(writers[-1], here, {GRAPH: text})
        writers[-1].commit()
    except OSError as error:
        raise CheckpointError(file_system.cannot_write(path, error, named=_abandon(writers))) from error
    except BaseException:
        _abandon(writers)
        raise
    for writer in writers:
        writer.close()
    file_system.sweep(path, _part_names(path), manifest.files)


def _abandon(writers: list[Writer]) -> bool:
    """Removes what was written, unless the file that names it has its name already; whether it has."""
    named = any(writer.has_its_name for writer in writers)
    for writer in writers:
        writer.close() if named else writer.discard()
    return named


def remove(path: Path) -> None:
    """Removes a checkpoint: first the file that makes it one, then those that it named."""
    file_system.files.remove(str(path))
    file_system.sweep(path, _part_names(path), ())


def _write_parts(path: Path, manifest: Manifest, parts: list[dict[str, Unwritten]], writers: list[Writer]) -> None:
    """Has the files with arrays, and their names, on disk.

    They stay open in `writers`, and so locked, until the file that names them has its own name.
    """
    unique = os.urandom(4).hex()
    for i, part in enumerate(parts):
        name = f"{path.name}.{unique}-{i + 1:05}-of-{len(parts):05}.safetensors"
        manifest.files[name] = list(part)
        writers.append(Writer(path.with_name(name), final=True))
        write_arrays(writers[-1], part, {PART_OF: manifest.id})
        writers[-1].flush()
    file_system.flush_folder(path.parent)


def _part_names(path: Path) -> re.Pattern[str]:
    return re.compile(rf"{re.escape(path.name)}\.[0-9a-f]{{8}}-[0-9]{{5}}-of-[0-9]{{5}}\.safetensors")


def _parts(arrays: Mapping[str, Unwritten], most_bytes: int) -> list[dict[str, Unwritten]]:
    """The arrays, in parts of at most so many bytes, each of one array at least."""
    parts: list[dict[str, Unwritten]] = [{}]
    size = 0
    for key, array in arrays.items():
        if parts[-1] and size + array.nbytes > most_bytes:
            parts.append({})
            size = 0
        parts[-1][key] = array
        size += array.nbytes
    return parts


class CheckpointFile:
    """A checkpoint that is open for reading; it stays readable when another one takes its name.

    Raises:
        MissingCheckpointError: there is no such file.
        CheckpointError: it is no checkpoint, is damaged, or is of a newer version.
    """

    casts = False

    def __init__(self, path: Path) -> None:
        self.path = path
        file = ArrayFile(Reader(path))
        size = file.reader.size
        if GRAPH not in file.metadata:
            for key, said in _OTHERS.items():
                if key in file.metadata:
                    raise CheckpointError(f"{path} is no checkpoint: {said}")
            raise CheckpointError(
                f"{path} is a safetensors file without an object graph: it was not saved by limelight. Weights of "
                "other libraries are read with ll.nn.load_weights(module, path)"
            )
        self.manifest: Manifest = parse(file.metadata[GRAPH], str(path), size)
        self.reopened = functools.partial(_reopened, path, self.manifest.id)
        self._files = [file]
        self._where: dict[str, ArrayFile] = dict.fromkeys(file.entries, file)
        for name, keys in self.manifest.files.items():
            self._add_part(name, keys)
        self._check_keys()

    def entry(self, key: str) -> Entry:
        return self._where[key].entries[key]

    def spec(self, key: str, dtype: str = "") -> tuple[tuple[int, ...], DType]:
        """Shape and dtype of the array that lies under `key`, as `dtype` or as what it is stored."""
        entry = self.entry(key)
        return (entry.shape[:-1], dtypes.complex128) if dtype else (entry.shape, entry.dtype)

    def array(self, key: str, dtype: str = "") -> Array:
        """The array under `key`, as a new one. Raises CheckpointError where it cannot be read."""
        array = self._where[key].array(key)
        return array.view(dtypes.complex128).reshape(array.shape[:-1]) if dtype else array

    def value_array(self, key: str) -> Array:
        """An array within a value, of which the key says whether it is complex128."""
        return self.array(key, "complex128" if key.endswith(COMPLEX) else "")

    def changed(self) -> list[str] | None:
        """The keys of the arrays whose bytes are others than were written, and names of files whose description is.

        None where the files have no checksums.
        """
        found = [file.changed() for file in self._files]
        if all(names is None for names in found):
            return None
        return [  # one save writes checksums into all of its files: a file that has lost them is another one, too
            name or f"the description in {file.reader.path.name}"
            for file, names in zip(self._files, found, strict=True)
            for name in ([""] if names is None else names)
        ]

    def verify(self) -> None:
        """Raises CheckpointError where a byte is another one than was written; warns where nothing can tell."""
        changed = self.changed()
        if changed is None:
            warn_here(
                f"{self.path} has no checksums, so nothing tells whether it is as it was written: it was saved before "
                "limelight wrote them",
                CheckpointWarning,
            )
        elif changed:
            raise CheckpointError(
                f"{self.path} is damaged, and nothing was restored: {listed(changed)} not as it was written. Copy the "
                "file once more from where it is whole, or restore another one"
            )

    def place(self, key: str) -> tuple[int, int]:
        """Where an array lies, for reading in the order of places."""
        file = self._where[key]
        return (id(file), file.entries[key].begin)

    def _add_part(self, name: str, keys: list[str]) -> None:
        part = ArrayFile(Reader(self.path.with_name(name), within=True))
        if part.metadata.get(PART_OF) != self.manifest.id or set(part.entries) != set(keys):
            raise CheckpointError(f"{name} is no part of {self.path.name}: copy all files of one save together")
        if any(key in self._where for key in keys):
            raise CheckpointError(f"{self.path} has an array in several files")
        self._files.append(part)
        self._where.update(dict.fromkeys(keys, part))

    def _check_keys(self) -> None:
        keys = self.manifest.array_keys()
        if len(set(keys)) < len(keys) or set(keys) != set(self._where):
            raise CheckpointError(f"{self.path} has other arrays than its object graph tells of")
        wide = [node.array for node in self.manifest.nodes if node.dtype]
        wide += [key for key in keys if key.endswith(COMPLEX)]
        if any(self.entry(key).dtype != dtypes.float64 or self.entry(key).shape[-1:] != (2,) for key in wide):
            raise CheckpointError(f"{self.path} has complex numbers that are not pairs")


def listed(changed: Sequence[str]) -> str:
    """Names of damaged arrays, the first few, with the verb.

    >>> listed(["kernel"]), listed(["kernel", "bias"])
    ('`kernel` is', '`kernel`, `bias` are')
    """
    names = ", ".join(f"`{name}`" for name in changed[:_MOST_NAMED])
    more = f" and {len(changed) - _MOST_NAMED} more" if len(changed) > _MOST_NAMED else ""
    return f"{names}{more} {'is' if len(changed) == 1 else 'are'}"


def _reopened(path: Path, expected: str) -> CheckpointFile:
    """The same save, opened again. Raises CheckpointError where another one has its name."""
    file = CheckpointFile(path)
    if file.manifest.id != expected:
        raise CheckpointError(f"{path} was replaced after it was restored: restore it again")
    return file


COMPLEX: Final = f"{WITHIN}complex128"


def read_info(path: Path) -> dict[str, Any]:
    """What a checkpoint says of itself, without its arrays. Errors as those of `CheckpointFile`."""
    return CheckpointFile(path).manifest.info
