"""Mutable tables from keys to values, in eager and staged code, whose contents are saved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from limelight.lookup.hash_table import HashTable
from limelight.user_code import hints

__all__ = ["HashTable"]

if not TYPE_CHECKING:  # type checkers are to know of names that are missing
    __getattr__ = hints.missing_name_hint("lookup")
__dir__ = hints.listing(__all__)
