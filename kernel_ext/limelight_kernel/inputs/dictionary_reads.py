"""Which keys of a dictionary a cell reads: of a large one, the rest is not looked at when the cell runs again."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Hashable, Mapping
from typing import Any, Final, TypeAlias

from limelight_kernel.inputs.input_keys import MANY, PLAIN

_OTHER_WAYS: Final = frozenset(["globals", "locals", "vars", "eval", "exec", "get_ipython"])  # to what a name means
Keys: TypeAlias = "tuple[Hashable, ...]"


def keys_read(tree: ast.Module) -> Mapping[str, Keys]:
    """The names of which every mention in a cell reads an item by a key that is written there, with these keys.

    >>> keys_read(ast.parse("y = d['a'] + d['b'] * c['a']; c['a'] = y; len(e); e['a']"))
    {'d': ('a', 'b')}
    """
    mentions = Counter(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))
    if not _OTHER_WAYS.isdisjoint(mentions):
        return {}
    found: dict[str, list[Hashable]] = {}
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Subscript)
            and isinstance(node.value, ast.Name)
            and isinstance(node.slice, ast.Constant)
            and isinstance(node.ctx, ast.Load)
        ):
            found.setdefault(node.value.id, []).append(node.slice.value)
    return {name: tuple(dict.fromkeys(keys)) for name, keys in found.items() if len(keys) == mentions[name]}


def parts_read(values: Mapping[str, Any], keys: Mapping[str, Keys]) -> dict[str, dict[Any, Any]]:
    """What a cell finds in large dictionaries, of which it reads these keys, where plain values stand there.

    >>> parts_read({"d": dict.fromkeys(range(100), 0.5), "e": {1: 2}}, {"d": (7, "other"), "e": (1,)})
    {'d': {7: 0.5}}
    """
    large = {name: x for name in keys if type(x := values.get(name)) is dict and len(x) >= MANY}
    parts = {name: {key: x[key] for key in keys[name] if key in x} for name, x in large.items()}
    return {name: part for name, part in parts.items() if PLAIN.issuperset(map(type, part.values()))}
