"""Eager execution: the interpreter at the bottom of every stack, and the entry points that ops are called through."""

from __future__ import annotations

from limelight.core.eager import numpy_interop as numpy_interop
from limelight.core.eager.direct_call import call as call
from limelight.core.eager.entry_points import EntryPoint as EntryPoint
from limelight.core.eager.entry_points import entry_point as entry_point
from limelight.core.eager.entry_points import entry_point_of_many as entry_point_of_many
from limelight.core.eager.entry_points import operators as operators
from limelight.core.eager.entry_points import read_as_operand as read_as_operand
from limelight.core.eager.entry_points import read_operand as read_operand
from limelight.core.eager.interpreter import account as account
from limelight.core.eager.interpreter import explain as explain
from limelight.core.eager.interpreter import move as move
from limelight.core.eager.interpreter import place as place
from limelight.core.eager.operands import prepare as prepare
