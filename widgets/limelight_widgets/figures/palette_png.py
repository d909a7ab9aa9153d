"""Pictures of a few colours as PNG (ISO/IEC 15948): what a reader keeps that drops inline SVG, and small."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import numpy as np

Colour = tuple[int, int, int]
_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def palette_png(indices: np.ndarray[Any, Any], palette: list[Colour]) -> bytes:
    """The picture whose pixel (row, column) has the colour `palette[indices[row, column]]`, of at most 256.

    >>> palette_png(np.zeros((2, 3), "uint8"), [(0, 114, 178)])[1:4]
    b'PNG'
    """
    height, width = indices.shape
    head = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)  # 8 bits a pixel, by palette, not interlaced
    rows = np.zeros((height, width + 1), np.uint8)  # each row begins with its filter: none
    rows[:, 1:] = indices
    colours = bytes(part for colour in palette for part in colour)
    body = zlib.compress(rows.tobytes(), 9)
    chunks = ((b"IHDR", head), (b"PLTE", colours), (b"IDAT", body), (b"IEND", b""))
    return _SIGNATURE + b"".join(_chunk(kind, data) for kind, data in chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
