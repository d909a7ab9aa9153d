"""Special functions: series and continued fractions of a fixed length."""

from __future__ import annotations
