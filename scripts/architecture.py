"""Draw the rooms of the engine, and which room imports which, from the code: `docs/images/architecture.svg`.

    python scripts/architecture.py          # draws it anew
    python scripts/architecture.py --check  # fails if the picture is not that of the code

Rooms and their order are those of the import contract in `pyproject.toml`; what a room is for is the first line of its
docstring; a dot stands where the room of the row imports the room of the column. One way down means: no dot above the
diagonal. The picture has no counts, so that it changes when the structure does, and only then.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
import tomllib
from pathlib import Path
from typing import Final, NamedTuple
from xml.sax.saxutils import escape

import grimp

ROOT: Final = Path(__file__).resolve().parent.parent
PICTURE: Final = ROOT / "docs" / "images" / "architecture.svg"
ENGINE: Final = ROOT / "engine" / "limelight"
PACKAGES: Final = {
    "limelight_kernel": ROOT / "kernel_ext" / "limelight_kernel",
    "limelight_widgets": ROOT / "widgets" / "limelight_widgets",
    "limelight": ENGINE,
}
FACADE: Final = "limelight"
ROW, LEFT, NAME, CELL, TOP = 30, 16, 150, 22, 132
LONGEST: Final = 96


class Room(NamedTuple):
    """A folder of the engine, or a module beside these; or one of the packages above."""

    name: str
    says: str
    is_new_layer: bool  # whether a line is drawn above it: rooms of one layer do not import one another


def rooms() -> list[Room]:
    """From the top down: the two packages above the engine, its facade, and the rooms of the contract that exist."""
    above = [Room(name, _says(path), True) for name, path in PACKAGES.items()]
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    (layers,) = [one["layers"] for one in contracts if one.get("containers") == ["limelight"]]
    below = []
    for layer in layers:
        found = [name for name in re.findall(r"\w+", layer) if _path(name).exists()]
        below += [Room(name, _says(_path(name)), i == 0) for i, name in enumerate(found)]
    return above + below


def imports(names: list[str]) -> set[tuple[str, str]]:
    """Pairs (importer, imported) of rooms, as the code has them now. The facade's imports are left out: all rooms."""
    graph = grimp.build_graph(*PACKAGES, include_external_packages=False, cache_dir=None)
    pairs = set()
    for module in graph.modules:
        for other in graph.find_modules_directly_imported_by(module):
            pairs.add((_room_of(module), _room_of(other)))
    return {(a, b) for a, b in pairs if a not in (b, FACADE) and {a, b} <= set(names)}


def draw(found: list[Room], pairs: set[tuple[str, str]]) -> str:
    """The picture as SVG: a row a room, then a matrix of dots. It reads on a light page and on a dark one."""
    longest = max(len(room.says) for room in found)
    matrix = LEFT + NAME + int(longest * 6.6) + 24
    width, height = matrix + CELL * len(found) + 28, TOP + ROW * len(found) + 16
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="system-ui, sans-serif" font-size="13" role="img" aria-label="The rooms of the engine">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="30" font-size="17" font-weight="600" fill="#1f2328">One way down</text>',
        f'<text x="{LEFT}" y="52" fill="#59636e">A room may import those below it, and none above.</text>',
        f'<text x="{LEFT}" y="70" fill="#59636e">A dot: the room of the row imports that of the column.</text>',
    ]
    for i, room in enumerate(found):
        y, x = TOP + ROW * i, matrix + CELL * i + CELL / 2
        if room.is_new_layer:
            parts.append(f'<line x1="{LEFT}" x2="{width - 28}" y1="{y}" y2="{y}" stroke="#d1d9e0"/>')
        parts.append(f'<text x="{LEFT}" y="{y + 20}" font-weight="600" fill="#0550ae">{escape(room.name)}</text>')
        parts.append(f'<text x="{LEFT + NAME}" y="{y + 20}" fill="#1f2328">{escape(room.says)}</text>')
        turned = f'transform="rotate(-60 {x:g} {TOP - 8})"'
        parts.append(f'<text x="{x:g}" y="{TOP - 8}" fill="#59636e" font-size="11" {turned}>{escape(room.name)}</text>')
        parts.append(f'<rect x="{x - 4:g}" y="{y + ROW / 2 - 4:g}" width="8" height="8" fill="#d1d9e0"/>')
        parts += [
            f'<circle cx="{matrix + CELL * j + CELL / 2:g}" cy="{y + ROW / 2:g}" r="4.5" '
            f'fill="{"#0550ae" if j > i else "#cf222e"}"/>'
            for j, other in enumerate(found)
            if (room.name, other.name) in pairs
        ]
    return "\n".join([*parts, "</svg>", ""])


def main() -> None:
    """Draw, or check."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    arguments.add_argument("--check", action="store_true", help="fail if the committed picture is another one")
    found = rooms()
    drawn = draw(found, imports([room.name for room in found]))
    if not arguments.parse_args().check:
        PICTURE.write_text(drawn, encoding="utf-8")
        print(f"Drew {PICTURE.relative_to(ROOT)}")
    elif PICTURE.read_text(encoding="utf-8") != drawn:
        sys.exit(f"{PICTURE.relative_to(ROOT)} is not the picture of this code: run `make architecture`")


def _path(name: str) -> Path:
    return ENGINE / name if (ENGINE / name).is_dir() else ENGINE / f"{name}.py"


def _says(path: Path) -> str:
    """The first sentence of its docstring, on one line."""
    text = ast.get_docstring(ast.parse((path / "__init__.py" if path.is_dir() else path).read_text(encoding="utf-8")))
    first = " ".join((text or "").partition("\n\n")[0].split())
    return first if len(first) <= LONGEST else first[: LONGEST - 1].rsplit(" ", 1)[0] + " …"


def _room_of(module: str) -> str:
    """The room that a module lies in: the second part of its name in the engine, else the package."""
    parts = module.split(".")
    return parts[1] if parts[0] == FACADE and len(parts) > 1 else parts[0]


if __name__ == "__main__":
    main()
