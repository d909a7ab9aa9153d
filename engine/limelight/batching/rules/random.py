"""Batching rules of random ops: independent numbers for each example, in one wider draw.

Their first operand is the generator. Any other random op is run example by example.
"""

from __future__ import annotations

from typing import Any

from limelight.batching.rule_table import Site, rule, shape_with

_OF_A_SHAPE = [
    f"random_{name}" for name in ("normal", "uniform", "exponential", "laplace", "gumbel", "cauchy", "integers")
]


@rule(*_OF_A_SHAPE)
def of_a_shape(site: Site) -> Any:
    *rest, shape = site.attrs
    return site.run(site.inputs, *rest, (site.size, *shape)) if isinstance(site.size, int) else NotImplemented


@rule(*[f"{name}_dynamic" for name in _OF_A_SHAPE])
def of_a_shape_found_at_run_time(site: Site) -> Any:
    *generator, shape = site.inputs
    *rest, rank = site.attrs
    if any(site.mask):
        return NotImplemented
    return site.run((*generator, shape_with(site.size, shape)), *rest, rank + 1)


@rule(
    *("random_gamma", "random_log_gamma", "random_bernoulli", "random_poisson"),
    *("random_categorical", "random_multinomial", "dropout_mask"),
)
def of_parameters(site: Site) -> Any:
    """One draw for each element, or row, of the parameters."""
    last = len(site.inputs) - 1
    return site.run((*site.inputs[:last], site.lead(last)), *site.attrs)
