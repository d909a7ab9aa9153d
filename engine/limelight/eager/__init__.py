"""Eager execution: the interpreter at the bottom of every stack, and the entry points that ops are called through."""

from __future__ import annotations

from limelight.eager import foreign as foreign
from limelight.eager.calls import Entry as Entry
from limelight.eager.calls import entry as entry
from limelight.eager.calls import entry_of_many as entry_of_many
from limelight.eager.calls import operators as operators
from limelight.eager.direct import call as call
from limelight.eager.operands import prepare as prepare
from limelight.eager.running import account as account
from limelight.eager.running import explain as explain
from limelight.eager.running import move as move
from limelight.eager.running import place as place
