"""Draw the pictures of the README and the guide anew: `python scripts/guide_pictures.py [NAME ...]`.

Each is what a magic shows of an object of the page that it stands on: the page's code runs, and the view writes its
static form to `docs/images`. They are drawn on a light card, so that they read on dark pages, too.
"""

from __future__ import annotations

import contextlib
import html
import io
import os
import re
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import limelight_widgets as views
from limelight_widgets.figures import svg

ROOT: Final = Path(__file__).resolve().parent.parent
IMAGES: Final = ROOT / "docs" / "images"
_BLOCK: Final = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
Names = dict[str, Any]

PICTURES: Final[dict[str, tuple[str, Callable[[Names], Any]]]] = {
    "step.svg": ("README.md", lambda names: views.graph(names["step"], trace=0)),
    "guide_arrays.svg": ("docs/guide/arrays.md", lambda names: TilePicture(waves(names["ll"]))),
    "guide_numpy.svg": ("docs/guide/coming_from_numpy.md", lambda names: views.graph(names["misfit"])),
    "guide_pytorch.svg": ("docs/guide/coming_from_pytorch.md", lambda names: views.graph(names["step"])),
    "guide_keras.svg": ("docs/guide/coming_from_tensorflow_and_jax.md", lambda names: views.graph(names["mixed_step"])),
    "guide_jax.svg": ("docs/guide/coming_from_tensorflow_and_jax.md", lambda names: views.graph(names["step"])),
    "guide_randomness.svg": ("docs/guide/randomness.md", lambda names: TilePicture(draws(names["ll"]))),
    "guide_debugging.svg": ("docs/guide/debugging.md", lambda names: with_nan(**names)),
    "guide_gradients.svg": ("docs/guide/gradients.md", lambda names: recorded_tape()),
    "guide_training.svg": ("docs/guide/training.md", lambda names: views.graph(names["step"])),
    "guide_model.svg": ("docs/guide/first_model.md", lambda names: views.graph(names["step"])),
    "guide_staging.svg": ("docs/guide/staging.md", lambda names: views.trace_cache(names["scaled"])),
    "guide_loop.svg": ("docs/guide/staging.md", lambda names: views.graph(names["collatz"])),
    "guide_data.svg": ("docs/guide/data.md", lambda names: views.trace_cache(names["step"])),
    "guide_saving.svg": ("docs/guide/saving.md", lambda names: views.checkpoint(names["manager"].newest.path)),
    "guide_speed.svg": ("docs/guide/speed.md", lambda names: views.devices()),
}
"""The pictures, the pages that they stand on, and what is drawn of the names that the page's code has made."""


def run(page: Path, until: str = "") -> Names:
    """The names that the code of a page makes, that up to the line `until`; lines have the numbers of the page's."""
    text, names = page.read_text(encoding="utf-8"), {"__name__": "__main__"}
    text = text[: text.index(f"{until}\n")] + "```\n" if until else text
    for block in _BLOCK.finditer(text):
        above = "\n" * (text.count("\n", 0, block.start()) + 1)
        exec(compile(above + block[1], str(page), "exec"), names)
    return names


def recorded_tape() -> Any:
    """The first tape of the page on gradients, before it has answered and let go."""
    names = run(ROOT / "docs/guide/gradients.md", until="print(tape.gradient(loss, w).tolist())")
    return views.tape(names["tape"])  # while the variable lives


def waves(ll: Any) -> Any:
    """What the page on arrays shows as a tile: sin(x) cos(y), with a few NaN."""
    x = ll.linspace(-4.0, 4.0, 64)
    return (ll.sin(x)[None, :] * ll.cos(x)[:32, None]).at[4:8, 4:8].set(float("nan"))


def draws(ll: Any) -> Any:
    """What the page on randomness shows as a tile."""
    return ll.random.Generator(0).normal((32, 64))


def with_nan(ll: Any, entropy: Any, p: Any, **others: Any) -> Any:
    """The graph of the entropy, with what each op made of the page's numbers."""
    return views.graph(entropy, costs=ll.explain.costs(entropy, p), overlay="nan")


class TilePicture:
    """A tensor's tile, which is HTML, as a picture on a light card."""

    def __init__(self, x: Any) -> None:
        self.html = str(views.tensor_tile(x).html)

    def save(self, path: Path) -> None:
        """Its heading, its two images side by side, and its words, a line each."""
        images = re.findall(r'<img src="([^"]+)" width="(\d+)" height="(\d+)"', self.html)
        lines = re.split(r"<br>", re.sub(r"<img[^>]*>", "", self.html))
        words = [html.unescape(re.sub(r"<[^>]+>", "", line)).replace("\u00a0", " ").strip() for line in lines]
        heading, *told = filter(None, words)
        body, left, below = [svg.label(heading, 16, 26, 13, font_weight="bold", font_family=svg.SANS)], 16, 40
        for source, width, height in images:
            body.append(svg.element("image", href=source, x=left, y=below, width=width, height=height))
            left += int(width) + 16
        below += max(int(height) for _, _, height in images)
        body += [svg.label(line, 16, below + 22 + 18 * i, font_family=svg.SANS) for i, line in enumerate(told)]
        size = max(left, 380), below + 36 + 18 * (len(told) - 1)
        path.write_text(svg.document(*size, heading, told[-1], body), encoding="utf-8")


def draw(name: str, folder: Path = IMAGES) -> Path:
    """Writes a picture; returns where it is."""
    page, view = PICTURES[name]
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as scratch, warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        os.chdir(scratch)
        try:
            view(run(ROOT / page)).save(folder / name)
        finally:
            os.chdir(before)
    return folder / name


if __name__ == "__main__":
    if len(sys.argv) == 2:
        path = draw(sys.argv[1])
        print(f"{path.relative_to(ROOT)}: {path.stat().st_size} bytes")
    else:  # each in a process of its own: a trace cache tells of functions of one name, and devices of all that lives
        for one in sys.argv[1:] or PICTURES:
            subprocess.run([sys.executable, __file__, one], check=True)
