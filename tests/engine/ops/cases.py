"""Every case of every op."""

from __future__ import annotations

import cases_algebra
import cases_array_api
import cases_cumulative
import cases_einsum
import cases_elementwise
import cases_fourier
import cases_linalg
import cases_linalg_equations
import cases_loops
import cases_networks
import cases_padding
import cases_random
import cases_reductions
import cases_scattering
import cases_shapes
import cases_sparse
import cases_special
import cases_windows
from opcase import Case

CASES: list[Case] = [
    *cases_elementwise.CASES,
    *cases_reductions.CASES,
    *cases_shapes.CASES,
    *cases_algebra.CASES,
    *cases_array_api.CASES,
    *cases_sparse.CASES,
    *cases_special.CASES,
    *cases_random.CASES,
    *cases_fourier.CASES,
    *cases_cumulative.CASES,
    *cases_einsum.CASES,
    *cases_padding.CASES,
    *cases_scattering.CASES,
    *cases_windows.CASES,
    *cases_loops.CASES,
    *cases_networks.CASES,
    *cases_linalg.CASES,
    *cases_linalg_equations.CASES,
]
