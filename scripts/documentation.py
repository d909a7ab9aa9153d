"""What `docs/conf.py` adds to Sphinx: entries of the reference, programs of the gallery, links at names.

Entries are put into the pages as they are read. Names in code (`ll.grad`, `ShapeError`) lead to their entries wherever
they stand, and classes of errors to their pages.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import reference
from docutils import nodes
from sphinx import addnodes

DOCS: Final = Path(__file__).resolve().parent.parent / "docs"
_NAME: Final = re.compile(r"(ll(?:\.\w+)+)")
_PROGRAM: Final = re.compile(r"\[(\w+)\]\(\1\.py\)")


def connect(app: Any) -> None:
    """Registers all of it."""
    app.connect("source-read", _read)
    app.connect("doctree-read", _link_names)
    app.connect("html-page-context", _mark_scrolling)


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
    errors = {path.stem for path in (DOCS / "errors").glob("*Error.md")} | {
        path.stem for path in (DOCS / "errors").glob("*Warning.md")
    }
    for literal in list(doctree.findall(nodes.literal)):
        if any(isinstance(above, nodes.title | nodes.reference | addnodes.pending_xref) for above in _above(literal)):
            continue
        text = literal.astext()
        if text in errors and not docname.startswith(f"errors/{text}"):
            _wrap(literal, docname, "std", "doc", f"/errors/{text}")
        elif found := _NAME.match(text):
            name = found[1]
            while name != "ll" and name not in reference.public_names():
                name = name.rpartition(".")[0]
            if name != "ll":
                _wrap(literal, docname, "py", "obj", name)


def _above(node: Any) -> Any:
    while node is not None:
        yield node
        node = node.parent


def _wrap(literal: Any, docname: str, domain: str, kind: str, target: str) -> None:
    link = addnodes.pending_xref(
        "", refdomain=domain, reftype=kind, reftarget=target, refdoc=docname, refexplicit=True, refwarn=True
    )
    literal.replace_self(link)
    link += literal


def _mark_scrolling(app: Any, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    """Blocks that scroll sideways can be reached by the keyboard."""
    if "body" in context:
        context["body"] = context["body"].replace("<pre>", '<pre tabindex="0">')
