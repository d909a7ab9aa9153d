"""Write the tables of names in docs/guide/coming_from_*.md: `python scripts/names_pages.py`.

They come from the table behind the hints of errors (`limelight/user_code/equivalents.txt`) and from the public
names of the libraries. What is written by hand stands above the tables and stays. A test holds the pages to this.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from limelight.user_code import equivalents

ROOT = Path(__file__).resolve().parent.parent
GUIDE = ROOT / "docs" / "guide"
PAGES = {
    "coming_from_pytorch.md": {
        "torch": "torch",
        "torch.nn": "torch.nn",
        "torch.nn.functional": "torch.nn.functional",
        "torch.optim": "torch.optim",
        "torch.linalg": "torch.linalg",
        "torch.func": "torch.func",
    },
    "coming_from_tensorflow_and_jax.md": {
        "tensorflow": "tf",
        "tensorflow.math": "tf.math",
        "tensorflow.nn": "tf.nn",
        "tensorflow.linalg": "tf.linalg",
        "keras.layers": "keras.layers",
        "keras.losses": "keras.losses",
        "keras.optimizers": "keras.optimizers",
        "jax": "jax",
        "jax.numpy": "jax.numpy",
        "jax.lax": "jax.lax",
        "jax.nn": "jax.nn",
    },
}
BEGIN = "<!-- Names: written by scripts/names_pages.py from here on -->\n"
_NAMES = ROOT / "tests" / "engine" / "user_code" / "library_names.txt"


def page(name: str) -> str:
    """The page as it should be: what is written by hand in it, and its tables."""
    by_hand = (GUIDE / name).read_text(encoding="utf-8").partition(BEGIN)[0]
    return by_hand + BEGIN + "\n" + "\n".join(part for one in PAGES[name].items() for part in _table(*one))


def _table(namespace: str, short: str) -> Iterator[str]:
    rows = sorted(
        (name, entry)
        for name in _public().get(namespace, ())
        if (entry := equivalents.functions().get(name)) and not name.startswith("_")
    )
    if rows:
        yield f"### {short}\n"
        yield "| There | Here | Write |\n| --- | --- | --- |"
        for name, entry in rows:
            ours = f"`ll.{entry.ours}`" if entry.ours else ""
            yield f"| `{name}` | {ours} | {_cell(entry.remark)} |"
        yield ""


def _cell(remark: str) -> str:
    return remark.replace("|", "\\|").replace("*", "\\*").replace("_", "\\_").replace("<", "&lt;")


def _public() -> dict[str, list[str]]:
    """The libraries' public names, by namespace."""
    lines = _NAMES.read_text(encoding="utf-8").splitlines()
    return {space: names.split() for space, _, names in (line.partition(": ") for line in lines if line[0] != "#")}


if __name__ == "__main__":
    for name in PAGES:
        (GUIDE / name).write_text(page(name), encoding="utf-8")
