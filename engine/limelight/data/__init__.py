"""Data that knows where it is: pipelines of elements, and iterators whose position is saved and resumed exactly."""

from __future__ import annotations

from typing import TYPE_CHECKING

from limelight.data.dataset import Dataset, from_arrays, from_generator, from_sequence, iterate, zip
from limelight.data.iterator import Iterator
from limelight.user_code import hints

__all__ = ["Dataset", "Iterator", "from_arrays", "from_generator", "from_sequence", "iterate", "zip"]

if not TYPE_CHECKING:  # type checkers are to know of names that are missing
    __getattr__ = hints.missing_name_hint("data")
__dir__ = hints.listing(__all__)
