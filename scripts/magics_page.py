"""Write docs/magics.md from the magics themselves: `python scripts/magics_page.py`.

A test holds the page to what this writes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from limelight_kernel.magics.registry import MAGICS

PAGE = Path(__file__).resolve().parent.parent / "docs" / "magics.md"
_HEAD = """\
# Magics

`%load_ext limelight` brings these; each has an equal in plain Python, and `%name?` shows its help. Written from the
parsers by `scripts/magics_page.py`.
"""


def page() -> str:
    """The page as it should be."""
    return "\n".join([_HEAD, *(part for magic in MAGICS for part in _sections(magic))])


def _sections(magic: Any) -> Iterator[str]:
    for name in sorted(magic.magics["line"]):
        method = getattr(magic, magic.magics["line"][name])
        summary, examples, *others = _described(method)
        cell = name in magic.magics["cell"]
        yield f"## %{name}{f', %%{name}' if cell else ''}\n"
        yield f"{summary}\n"
        yield f"```\n{examples}\n```\n"
        yield from (f"{other}\n" for other in others if other)
        yield "| Argument | What it does |\n| --- | --- |"
        yield "\n".join(_row(action) for action in method.parser._actions) + "\n"


def _row(action: Any) -> str:
    flags = ", ".join(f"`{flag}`" for flag in action.option_strings)
    value = action.metavar if action.metavar is not None else "{" + ",".join(map(str, action.choices or ())) + "}"
    value = " ".join(value) if isinstance(value, tuple) else value
    takes = action.nargs != 0 and value != "{}"
    said = ((action.help or "") % {}).replace("|", "\\|")  # as argparse fills it
    return f"| {f'{flags} `{value}`'.strip() if takes else flags} | {said} |"


def _described(method: Any) -> tuple[str, ...]:
    """The first sentence of the help, its examples, what is the same in plain Python, and what its paragraphs tell."""
    written = re.split(r"^(?:positional arguments|options):", method.__doc__, flags=re.MULTILINE)[0]
    written = written.split("\n\n", 2)[2]
    summary = written.split("\n\n")[0].replace("\n", " ").strip()
    examples = "\n\n".join(
        "\n".join(line[4:] for line in block.rstrip().split("\n"))
        for block in re.findall(r"(?:^    .+\n?)+", written, flags=re.MULTILINE)
    )
    plain = _told(written, "From Python: ")
    paragraphs = ("As a callable: ", "In place: ", "Sizes: ")
    told = [f"{begins}{told}" for begins in paragraphs if (told := _told(written, begins))]
    return summary, examples, f"From Python: `{plain}`" if plain else "", *told


def _told(written: str, begins: str) -> str:
    """The rest of the paragraph that begins so; "" where there is none."""
    return " ".join(written.partition(begins)[2].split("\n\n")[0].split())


def main() -> None:
    """Write it."""
    PAGE.write_text(page(), encoding="utf-8")
    print(PAGE)


if __name__ == "__main__":
    main()
