"""The file that something is exported to: its name, asked about first, and its content, whole or not at all."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from limelight.checkpoint.file_system import Writer, cannot_write, sweep
from limelight.errors import CheckpointError, ExportError

_NOTHING_ELSE: Final = re.compile(r"(?!)")


def destination(path: Any, caller: str, example: str) -> Path:
    """The file of this name, which need not exist.

    Args:
        path: what the user gave.
        caller: the public function, for messages.
        example: a name for a file in a folder.

    Raises:
        ExportError: it is no path, its folder does not exist, or it is a folder itself.
    """
    try:
        file = Path(path)
    except TypeError:
        hint = "; an array is saved by np.save(path, x.numpy())" if hasattr(path, "__array__") else ""
        raise ExportError(f"{caller} takes a path as its second argument, got {type(path).__name__}{hint}") from None
    if "\0" in str(file):
        raise ExportError(f"{caller}: a path has no null characters, and this has: {str(file)!r}")
    if not os.path.isdir(file.parent):
        raise ExportError(f"there is no folder {file.parent}; make it first: Path({str(file.parent)!r}).mkdir()")
    if os.path.isdir(file):  # which raises nothing, of a name that is too long either
        raise ExportError(f"{file} is a folder; give the name of a file in it, {str(file / example)!r} for example")
    return file


def write_whole(path: Path, fill: Callable[[Writer], object]) -> None:
    """Has `fill` write a file, which gets its name when it is whole and on disk. Raises ExportError."""
    writer = None
    try:
        writer = Writer(path)
        fill(writer)
        writer.commit()
    except OSError as error:
        named = writer is not None and writer.has_its_name
        raise ExportError(cannot_write(path, error, named=named)) from error
    except CheckpointError as error:
        raise ExportError(f"{path} cannot be written: {error.bare}") from error
    finally:
        if writer is not None:
            writer.discard()
    sweep(path, _NOTHING_ELSE, ())
