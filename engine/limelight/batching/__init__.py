"""Vectorising: a function of one example becomes one of many, without a loop (batching rules).

An interpreter, `Batcher`, carries a hidden axis through ops; `rules` say how each kind of op takes it.
"""

from __future__ import annotations

from limelight.batching import contracting as contracting
from limelight.batching import drawing as drawing
from limelight.batching import joining as joining
from limelight.batching import matrices as matrices
from limelight.batching import picking as picking
from limelight.batching import placing as placing
from limelight.batching import products as products
from limelight.batching import shaping as shaping
from limelight.batching import windows as windows
from limelight.batching.batched import Batched as Batched
from limelight.batching.batched import BatchedObject as BatchedObject
from limelight.batching.interpreter import Batcher as Batcher
from limelight.batching.rules import Shared as Shared
from limelight.batching.rules import Site as Site
from limelight.batching.rules import how as how
from limelight.batching.rules import rule as rule
from limelight.batching.vectorize import Vectorized as Vectorized
from limelight.batching.vectorize import vectorize as vectorize
