"""Differentiation: in reverse by recording (paper section 4.2), and forward by tangents that travel along."""

from __future__ import annotations

from limelight.autodiff.backward import filled as filled
from limelight.autodiff.backward import once as once
from limelight.autodiff.backward import zeros as zeros
from limelight.autodiff.forward_mode import ForwardAccumulator as ForwardAccumulator
from limelight.autodiff.tape import INEXACT as INEXACT
from limelight.autodiff.tape import GradientTape as GradientTape
from limelight.autodiff.tape import alive as alive
from limelight.autodiff.tape import unrecorded as unrecorded
from limelight.autodiff.tape_entries import EntryRecord as EntryRecord
