"""States on the wire: compressed JSON, with arrays of numbers beside it as binary buffers.

`js/src/wire.js` unpacks them in the page.
"""

from __future__ import annotations

import json
import zlib
from array import array
from typing import Any

from limelight_widgets.folds.fold import State

_LEVEL = 1  # ten times smaller already, and fast


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

    text = json.dumps(state, default=outside, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return [zlib.compress(text.encode("utf-8", "replace"), _LEVEL), *buffers]


def unpack(parts: list[bytes]) -> State:
    """What `pack` was given; arrays come back as lists."""

    def inside(value: dict[str, Any]) -> Any:
        if set(value) == {"buffer"}:
            return array("f", parts[value["buffer"]]).tolist()
        return value

    state: State = json.loads(zlib.decompress(parts[0]), object_hook=inside)
    return state
