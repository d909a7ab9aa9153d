"""A notebook as a page, as nbconvert makes it."""

from __future__ import annotations

from pathlib import Path


def as_page(notebook: Path) -> str:
    """What `jupyter nbconvert --to html` writes of a notebook that has been executed.

    In this process, where it is imported once: that takes 3.5 seconds of a processor, converting hardly one.
    """
    from nbconvert import HTMLExporter  # noqa: PLC0415  who collects tests shall not wait for it

    exporter = HTMLExporter()  # type: ignore[no-untyped-call]  # of traitlets
    return str(exporter.from_filename(str(notebook))[0])
