"""Derivatives as functions of functions, over tapes, accumulators and batching.

Arguments get a new identity, by an `identity` op, so that a derivative is by the argument alone, also where the
function closes over the same tensor or gets it twice. What has no influence gets zeros, since a derivative is a
function; the None of a tape is a diagnosis. Integers in a nest of arguments get None.
"""

from __future__ import annotations

from limelight.autodiff.functional.gradients import grad as grad
from limelight.autodiff.functional.gradients import value_and_grad as value_and_grad
from limelight.autodiff.functional.jacobians import hessian as hessian
from limelight.autodiff.functional.jacobians import jacobian as jacobian
from limelight.autodiff.functional.products import jvp as jvp
from limelight.autodiff.functional.products import vjp as vjp
