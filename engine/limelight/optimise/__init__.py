"""Graph to graph: each pass with a record of what it did and why."""

from limelight.optimise.optimiser import Optimised as Optimised
from limelight.optimise.optimiser import optimise as optimise
from limelight.optimise.pass_record import Change as Change
from limelight.optimise.pass_record import PassRecord as PassRecord
