"""Vectorising: a function of one example becomes one of many, without a loop (batching rules).

An interpreter, `Batcher`, carries a hidden first axis through ops; `rule_table` and `rules` say how each kind of op
takes it. Ops without a rule are run example by example, which is right, slower and never silent (`vectorize(f).looped`,
`batching.how(op)`). Random ops draw independent numbers for each example, in one wider draw. Other effects that depend
on no example happen once; assigning a value that differs between examples is an error.
"""

from __future__ import annotations

from limelight.batching.batched_tensor import Batched as Batched
from limelight.batching.batched_tensor import BatchedObject as BatchedObject
from limelight.batching.batched_tensor import Ragged as Ragged
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
from limelight.batching.rules import normalisation as normalisation
from limelight.batching.rules import random as random
from limelight.batching.rules import reshape as reshape
from limelight.batching.rules import scatter as scatter
from limelight.batching.vectorize import Vectorized as Vectorized
from limelight.batching.vectorize import vectorize as vectorize
