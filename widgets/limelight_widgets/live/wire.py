"""States on the wire: compressed JSON, with arrays of numbers beside it as binary buffers.

`js/src/wire.js` unpacks them in the page. Long lists of records, such as the nodes of a large graph, travel as columns:
their keys, and values that come again and again, are written once. The page takes a third of the time to read them.
"""

from __future__ import annotations

import json
import zlib
from array import array
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any, Final

import numpy as np

from limelight.core.collector import collector_paused
from limelight_widgets.folds.fold import State
from limelight_widgets.folds.node_columns import Nodes

_LEVEL = 1  # ten times smaller already, and fast
_TABLE: Final = "=table"
LONG: Final = 500
"""Records from which on a list of them is packed as columns."""
_DEPTH: Final = 4  # of containers in which such lists are looked for


def pack(state: State) -> list[bytes]:
    """The state as compressed JSON, followed by the buffers that it refers to as {"buffer": k}.

    Arrays become little-endian float32.

    >>> len(pack({"history": array("f", [1.0, 2.0])}))
    2
    """
    buffers: list[bytes] = []

    def outside(value: Any) -> dict[str, int]:
        if not isinstance(value, array):
            raise TypeError(f"a state holds JSON and arrays of numbers, not a {type(value).__name__}")
        buffers.append(array("f", value).tobytes())
        return {"buffer": len(buffers)}

    with collector_paused():
        told = _mapped(state, _DEPTH, _as_table)
    text = json.dumps(told, default=outside, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return [zlib.compress(text.encode("utf-8", "replace"), _LEVEL), *buffers]


def unpack(parts: list[bytes]) -> State:
    """What `pack` was given; arrays come back as lists."""

    def inside(value: dict[str, Any]) -> Any:
        if set(value) == {"buffer"}:
            return array("f", parts[value["buffer"]]).tolist()
        return _rows(value[_TABLE]) if set(value) == {_TABLE} else value

    state: State = json.loads(zlib.decompress(parts[0]), object_hook=inside)
    return state


def _mapped(value: Any, depth: int, table: Callable[[Sequence[Any]], Any]) -> Any:
    """The state with its long lists of records replaced by what `table` makes of them."""
    if depth and type(value) is dict:
        return {key: _mapped(one, depth - 1, table) for key, one in value.items()}
    if depth and isinstance(value, Nodes):
        return table(value) if len(value) >= LONG else list(value)
    if not depth or type(value) is not list or not value or type(value[0]) not in {dict, list}:
        return value
    if len(value) >= LONG:
        return table(value) if all(type(one) is dict for one in value) else value
    return [_mapped(one, depth - 1, table) for one in value]


def _as_table(records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The records as columns.

    How many records there are, and for each key: values, the place of each record among them (None where most differ),
    and the rows that have one, where not all do.
    """
    if isinstance(records, Nodes) and not records.is_filled:
        return {_TABLE: [len(records), _columns_of(records)]}
    told = {}
    for key in dict.fromkeys(chain.from_iterable(records)):
        try:
            told[key] = _distinct([record[key] for record in records])
        except KeyError:
            rows = [row for row, record in enumerate(records) if key in record]
            told[key] = [*_distinct([records[row][key] for row in rows]), rows]
    return {_TABLE: [len(records), told]}


def _columns_of(nodes: Nodes) -> dict[str, list[Any]]:
    """The columns of records of nodes most of which have not been made: those that have are kinds of their own."""
    columns, made = nodes.columns, nodes.made()
    kinds, kind = [*columns.kinds, *made.values()], columns.kind.copy()
    kind[list(made)] = np.arange(len(columns.kinds), len(kinds))
    told = {key: _of_kinds(key, kinds, kind) for key in dict.fromkeys(chain.from_iterable(kinds))}
    own = {
        "in": [reads or None for reads in columns.reads],
        "names": list[Any](columns.names()),
        "group": [group if group >= 0 else None for group in columns.group.tolist()],
    }
    own |= {key: [noted.get(k) for k in range(len(nodes))] for key, noted in columns.notes.items()}
    for key, values in own.items():
        for k, row in made.items():
            values[k] = row.get(key)
        rows = [k for k, value in enumerate(values) if value is not None] if None in values else range(len(nodes))
        if rows:
            told[key] = [[values[k] for k in rows], None, rows] if len(rows) < len(nodes) else [values, None]
    return told


def _of_kinds(key: str, kinds: Sequence[Mapping[str, Any]], kind: Any) -> list[Any]:
    """A column of what nodes of one kind have in common."""
    having = [k for k, one in enumerate(kinds) if key in one]
    values, at = _distinct([kinds[k][key] for k in having])
    place = np.full(len(kinds), -1)
    place[having] = range(len(having)) if at is None else at
    places = place[kind]
    rows = np.flatnonzero(places >= 0)
    return [values, places[rows].tolist(), *([rows.tolist()] if len(rows) < len(kind) else [])]


def _distinct(values: list[Any]) -> list[Any]:
    """The different values and the place of each; where most differ, or are short, as they are."""
    keys: list[Any]
    if type(values[0]) is str:  # other kinds of a value are no strings: none equals one
        keys = values
    elif type(values[0]) is list and values[0] and type(values[0][0]) in {str, list}:
        # A list of other lists is the same where it is the same object: the nodes of a line share their stack.
        keys = [(*value,) if value and type(value[0]) is str else id(value) for value in values]
    else:
        return [values, None]
    try:
        found = dict(zip(keys, values, strict=True))
    except TypeError:  # a list of strings and of something else
        return [values, None]
    if len(found) > len(values) // 2:
        return [values, None]
    places = dict(zip(found, range(len(found)), strict=True))
    return [list(found.values()), [places[key] for key in keys]]


def _rows(table: list[Any]) -> list[dict[str, Any]]:
    length, columns = table
    records: list[dict[str, Any]] = [{} for _ in range(length)]
    for key, (values, at, *some) in columns.items():  # `some` is empty where all records have the key
        rows = some[0] if some else range(length)
        for k, row in enumerate(rows):
            records[row][key] = values[k if at is None else at[k]]
    return records
