"""What `docs/conf.py` adds to Sphinx: entries of the reference, programs of the gallery, links at names.

Entries are put into the pages as they are read. Names in code (`ll.grad`, `ShapeError`) lead to their entries wherever
they stand, and classes of errors to their pages.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

from docutils import nodes
from sphinx import addnodes

import reference

DOCS: Final = Path(__file__).resolve().parent.parent / "docs"
_NAME: Final = re.compile(r"(ll(?:\.\w+)+)")
_PROGRAM: Final = re.compile(r"\[(\w+)\]\(\1\.py\)")
_ERRORS: Final = frozenset(path.stem for path in (DOCS / "errors").glob("*.md"))
_ERROR: Final = re.compile(rf"\b({'|'.join(sorted(_ERRORS - {'README'}))})\b")
_ALONE: Final = (
    nodes.title, nodes.reference, nodes.literal, nodes.literal_block, nodes.comment, addnodes.pending_xref,
    addnodes.desc_signature,
)  # fmt: skip
"""In these no link begins."""
_MENDED: Final = {
    "<pre>": '<pre tabindex="0">',  # blocks that scroll sideways are reached by the keyboard
    '<div class="table-wrapper': '<div tabindex="0" class="table-wrapper',
    'role="heading">': 'role="heading" aria-level="2">',
    '<aside class="sidebar-drawer">': '<aside class="sidebar-drawer" aria-label="All pages">',
    '<aside class="toc-drawer">': '<aside class="toc-drawer" aria-label="On this page">',
}


def connect(app: Any) -> None:
    """Registers all of it."""
    app.connect("source-read", _read)
    app.connect("doctree-read", _link_names)
    app.connect("build-finished", _mend_pages)


def _read(app: Any, docname: str, source: list[str]) -> None:
    if docname.startswith("reference/"):
        source[0] = reference.expanded(source[0])
    elif docname == "gallery/README":
        source[0] = _with_programs(source[0])


def _with_programs(text: str) -> str:
    """The gallery's page with the programs below it, to which its table leads."""
    names = _PROGRAM.findall(text)
    text = _PROGRAM.sub(lambda link: f"[{link[1]}](#{link[1].replace('_', '-')})", text)
    parts = [f"\n({name.replace('_', '-')})=\n## {name}\n\n```{{literalinclude}} {name}.py\n```\n" for name in names]
    return text + "".join(parts)


def _link_names(app: Any, doctree: Any) -> None:
    """Leads each name in code to its entry, but in headings, links, and in the entry itself."""
    docname = app.env.docname
    for literal in list(doctree.findall(nodes.literal)):
        target = _target(literal.astext())
        if target and not _is_linked(literal):
            literal.replace_self(_link(docname, target, literal))
    for text in list(doctree.findall(nodes.Text)):
        words = _ERROR.split(text)
        if len(words) > 1 and not _is_linked(text) and not docname.startswith("errors/"):
            text.parent.replace(text, [_word(docname, word) for word in words if word])


def _target(code: str) -> tuple[str, str, str] | None:
    """Where a name in code leads: domain, kind, name."""
    if code in _ERRORS:
        return "std", "doc", f"/errors/{code}"
    found = _NAME.match(code)
    name = found[1] if found else "ll"
    while name != "ll" and name not in reference.public_names():
        name = name.rpartition(".")[0]
    return ("py", "obj", name) if name != "ll" else None


def _word(docname: str, word: str) -> Any:
    return _link(docname, ("std", "doc", f"/errors/{word}"), nodes.Text(word)) if word in _ERRORS else nodes.Text(word)


def _is_linked(node: Any) -> bool:
    return any(isinstance(above, _ALONE) for above in _above(node.parent))


def _above(node: Any) -> Any:
    while node is not None:
        yield node
        node = node.parent


def _link(docname: str, target: tuple[str, str, str], shown: Any) -> Any:
    domain, kind, name = target
    link = addnodes.pending_xref(
        "", refdomain=domain, reftype=kind, reftarget=name, refdoc=docname, refexplicit=True, refwarn=True
    )
    link += shown.deepcopy()
    return link


def _mend_pages(app: Any, error: Exception | None) -> None:
    """What axe finds in the theme's own HTML, and on the pages that Sphinx writes itself."""
    for path in Path(app.outdir).rglob("*.html") if error is None else ():
        text = path.read_text(encoding="utf-8")
        for wrong, right in _MENDED.items():
            text = text.replace(wrong, right)
        path.write_text(text, encoding="utf-8")
