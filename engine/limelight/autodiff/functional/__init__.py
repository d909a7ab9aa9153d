"""Derivatives as functions of functions, over tapes, accumulators and batching."""

from __future__ import annotations

from limelight.autodiff.functional.gradients import grad as grad
from limelight.autodiff.functional.gradients import value_and_grad as value_and_grad
from limelight.autodiff.functional.jacobians import hessian as hessian
from limelight.autodiff.functional.jacobians import jacobian as jacobian
from limelight.autodiff.functional.products import jvp as jvp
from limelight.autodiff.functional.products import vjp as vjp
