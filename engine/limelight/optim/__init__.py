"""Optimisers, learning-rate schedules and gradient clipping."""

from __future__ import annotations

from typing import TYPE_CHECKING

from limelight.optim import schedules as schedules
from limelight.optim.adaptive import Adagrad, Adam, AdamW, RMSProp
from limelight.optim.clipping import clip_by_global_norm, clip_by_norm, clip_by_value, global_norm
from limelight.optim.descent import SGD, Momentum
from limelight.optim.optimizer import Optimizer
from limelight.user_code import hints

__all__ = [
    "SGD",
    "Adagrad",
    "Adam",
    "AdamW",
    "Momentum",
    "Optimizer",
    "RMSProp",
    "clip_by_global_norm",
    "clip_by_norm",
    "clip_by_value",
    "global_norm",
    "schedules",
]

if not TYPE_CHECKING:  # type checkers are to know of names that are missing
    __getattr__ = hints.missing_name_hint("optim")
__dir__ = hints.listing(__all__)
