"""Finding nodes of a described graph: `matmul`, `op:matmul`, `dtype:f32`, `line:7`, and several of them together.

The live view does the same in `js/src/graph/search.js`; the tests hold both to the same examples.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from limelight_widgets.folds.fold import State

_FIELDS: Final[dict[str, Callable[[State, str], bool]]] = {
    "op": lambda node, text: text in node["op"].lower(),
    "dtype": lambda node, text: any(spec.lower().startswith(text) for spec in node.get("out", ())),
    "line": lambda node, text: any(str(line) == text for _, line, *_ in node.get("stack", ())),
    "dev": lambda node, text: text in node.get("device", "").lower(),
    "fused": lambda node, text: str(node.get("fused", "")) == text,
    "was": lambda node, text: text in (node["became"][0] if "became" in node else node.get("came", "")).lower(),
}


def matches(node: State, query: str) -> bool:
    """Whether a node has all that the words of a query ask for.

    >>> node = {"op": "matmul", "names": ["y"], "out": ["f32[2,3]"]}
    >>> matches(node, "op:mat dtype:f32"), matches(node, "y F32"), matches(node, "line:7")
    (True, True, False)
    """
    return all(_has(node, term) for term in query.lower().split())


def _has(node: State, term: str) -> bool:
    field, colon, text = term.partition(":")
    if colon and text and field in _FIELDS:
        return _FIELDS[field](node, text)
    attributes = [str(word) for pair in node.get("attrs", {}).items() for word in pair]
    called = f"{node['op']} {', '.join(label for _, label in node['calls'])}" if "calls" in node else node["op"]
    words = [called + node.get("operands", ""), *node.get("names", ()), *node.get("out", ()), *attributes]
    return term in " ".join(words).lower()
