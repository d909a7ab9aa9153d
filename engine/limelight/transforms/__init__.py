"""Derivatives as functions of functions, over tapes, accumulators and batching."""

from __future__ import annotations

from limelight.transforms.gradients import grad as grad
from limelight.transforms.gradients import value_and_grad as value_and_grad
from limelight.transforms.jacobians import hessian as hessian
from limelight.transforms.jacobians import jacobian as jacobian
from limelight.transforms.products import jvp as jvp
from limelight.transforms.products import vjp as vjp
