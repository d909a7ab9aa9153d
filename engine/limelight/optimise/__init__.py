"""Graph to graph: each pass with a record of what it did and why."""

from limelight.optimise.pass_record import Change as Change
from limelight.optimise.pass_record import PassRecord as PassRecord
from limelight.optimise.run_passes import Optimised as Optimised
from limelight.optimise.run_passes import optimise as optimise
