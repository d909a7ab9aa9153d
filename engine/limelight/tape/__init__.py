"""Differentiation: in reverse by recording (paper section 4.2), and forward by tangents that travel along."""

from __future__ import annotations

from limelight.tape.backward import filled as filled
from limelight.tape.backward import zeros as zeros
from limelight.tape.entries import EntryRecord as EntryRecord
from limelight.tape.forward import ForwardAccumulator as ForwardAccumulator
from limelight.tape.gradient_tape import INEXACT as INEXACT
from limelight.tape.gradient_tape import GradientTape as GradientTape
from limelight.tape.gradient_tape import alive as alive
from limelight.tape.jacobians import joined_sizes as joined_sizes
from limelight.tape.jacobians import unit_vectors as unit_vectors
from limelight.tape.pauses import unrecorded as unrecorded
