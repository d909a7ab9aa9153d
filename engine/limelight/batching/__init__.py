"""Vectorising: a function of one example becomes one of many, without a loop (batching rules).

An interpreter, `Batcher`, carries a hidden axis through ops; `rule_table` and `rules` say how each kind of op takes it.
"""

from __future__ import annotations

from limelight.batching.batched_tensor import Batched as Batched
from limelight.batching.batched_tensor import BatchedObject as BatchedObject
from limelight.batching.interpreter import Batcher as Batcher
from limelight.batching.rule_table import Shared as Shared
from limelight.batching.rule_table import Site as Site
from limelight.batching.rule_table import how as how
from limelight.batching.rule_table import rule as rule
from limelight.batching.rules import concat as concat
from limelight.batching.rules import convolution as convolution
from limelight.batching.rules import einsum as einsum
from limelight.batching.rules import indexing as indexing
from limelight.batching.rules import linalg as linalg
from limelight.batching.rules import matmul as matmul
from limelight.batching.rules import random as random
from limelight.batching.rules import reshape as reshape
from limelight.batching.rules import scatter as scatter
from limelight.batching.vectorize import Vectorized as Vectorized
from limelight.batching.vectorize import vectorize as vectorize
