"""Views as files, by the ending of the name, and answers as JSON: what `--save` and `--json` of the magics write.

| ending | what |
| --- | --- |
| `.svg` | the static picture; the same bytes for the same view |
| `.png` | that picture at twice its size, where `cairosvg` is installed |
| `.html` | a page of its own: picture and table, without a script |
| `.json` | all that the view or the answer knows |
| `.txt` | plain text |
"""

from __future__ import annotations

import dataclasses
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, Final

from limelight.errors import ArgumentError
from limelight_widgets.figures.static_forms import Figure

ENDINGS: Final = (".svg", ".png", ".html", ".json", ".txt")
_DEEPEST: Final = 12


def json_ready(value: Any, depth: int = 0) -> Any:
    """`value` as what JSON can hold: what has `to_dict` by that, records by their fields, all else by its text.

    >>> json_ready({"a": (1, 2.5), 3: None})
    {'a': [1, 2.5], '3': None}
    >>> json_ready(float("inf"))
    'inf'
    """
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if abs(value) < float("inf") else str(value)  # JSON has neither infinity nor NaN
    if depth > _DEEPEST:
        return str(value)
    if callable(getattr(value, "to_dict", None)):
        return json_ready(value.to_dict(), depth + 1)
    if isinstance(value, Mapping):
        return {str(key): json_ready(one, depth + 1) for key, one in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {one.name: json_ready(getattr(value, one.name), depth + 1) for one in dataclasses.fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {name: json_ready(one, depth + 1) for name, one in zip(value._fields, value, strict=True)}
    if isinstance(value, (Sequence, set, frozenset)) and not isinstance(value, (bytes, bytearray)):
        return [json_ready(one, depth + 1) for one in value]
    return {"text": str(value)} if depth == 0 else str(value)


def save(path: str | os.PathLike[str], value: Any, figure: Figure) -> str:
    """Writes a file, in the place of one that is there; what was there stays if that fails.

    Args:
        path: the file's name; its ending says what is written.
        value: what a `.json` tells.
        figure: the static forms.

    Returns:
        what was done, in a sentence.

    Raises:
        ArgumentError: nothing is written under such a name, or there is no picture.
        ImportError: for a PNG something must be installed.
        OSError: the file cannot be written; the message says why.
    """
    ending = Path(path).suffix.lower()
    if ending not in ENDINGS:
        raise ArgumentError(f"this is not saved as {Path(path).name!r}: give a name that ends in {', '.join(ENDINGS)}")
    if ending in (".svg", ".png") and not figure.svg:
        raise ArgumentError(f"there is no picture of this for {Path(path).name!r}: write .html, .json or .txt")
    return replaced(path, _content(ending, value, figure))


def _content(ending: str, value: Any, figure: Figure) -> bytes:
    if ending == ".png":
        return png(figure.svg)
    if ending == ".json":
        return (json.dumps(json_ready(value), ensure_ascii=False, separators=(",", ":")) + "\n").encode()
    text = {".svg": figure.svg, ".txt": figure.text}.get(ending)
    return (page(figure) if text is None else text).encode() + b"\n"


def page(figure: Figure) -> str:
    """The static forms as a page of HTML that needs nothing else."""
    title = escape(figure.text.partition("\n")[0])
    body = figure.html or f"<pre>{escape(figure.text)}</pre>"
    return f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>{body}</html>'


def replaced(path: str | os.PathLike[str], content: bytes) -> str:
    """Writes a file in one go, and tells so in a sentence; raises OSError where that cannot be."""
    target = Path(path).expanduser()
    was_there = target.exists()
    folder = target.parent
    if not folder.is_dir():
        raise FileNotFoundError(f"{target} is not written: there is no folder {folder}; make it first")
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a folder: give the name of a file")
    try:
        handle, name = tempfile.mkstemp(dir=folder, prefix=".limelight-")
    except OSError as error:
        raise PermissionError(f"{target} is not written: no file can be made in {folder} ({error.strerror})") from None
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(name).chmod(0o666 & ~_umask())
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return f"{target}: {len(content):,} bytes" + (", in the place of the file that was there" if was_there else "")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def png(picture: str) -> bytes:
    """An SVG at twice its size.

    Raises:
        ImportError: `cairosvg` is not installed.
    """
    try:
        import cairosvg  # noqa: PLC0415  # optional
    except (ImportError, OSError):  # OSError: the library behind it is missing
        raise ImportError(
            "a PNG is drawn by cairosvg, which is not here: pip install cairosvg, or save it as .svg, or press "
            "Save, PNG in the view, where the browser draws it"
        ) from None
    drawn: bytes = cairosvg.svg2png(bytestring=picture.encode(), scale=2)
    return drawn
