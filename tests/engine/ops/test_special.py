"""Special functions where the cases do not go: the ends of their domains, all digits, extreme parameters."""

from __future__ import annotations

import subprocess
import sys
import warnings

import numpy as np
import pytest
from opcase import raw
from scipy import special

import limelight as ll
from limelight.errors import ArgumentError, DTypeError, ShapeError

EDGES = np.array([0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -2.0, 1e-30, 1e30, -1e30, np.inf, -np.inf, np.nan])
UNARY = {
    "erf": special.erf,
    "erfc": special.erfc,
    "erfcx": special.erfcx,
    "erfinv": special.erfinv,
    "ndtr": special.ndtr,
    "ndtri": special.ndtri,
    "log_ndtr": special.log_ndtr,
    "lgamma": special.gammaln,
    "digamma": special.digamma,
    "logit": special.logit,
    "entr": special.entr,
    "i0": special.i0,
    "i0e": special.i0e,
    "i1": special.i1,
    "i1e": special.i1e,
}
BINARY = {
    "betaln": special.betaln,
    "gammainc": special.gammainc,
    "gammaincc": special.gammaincc,
    "xlogy": special.xlogy,
    "xlog1py": special.xlog1py,
}


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_ends_of_domains_are_scipys_and_silent(name, dtype):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = getattr(ll, name)(ll.constant(EDGES.astype(dtype))).numpy()
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(found, UNARY[name](EDGES.astype(dtype)))


@pytest.mark.parametrize("name", BINARY)
def test_ends_of_domains_of_two_operands(name):
    x, y = (part.ravel() for part in np.meshgrid(EDGES, EDGES))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = getattr(ll, name)(ll.constant(x), ll.constant(y)).numpy()
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(found, BINARY[name](x, y))


@pytest.mark.parametrize("n", [0, 1, 2])
def test_polygamma_at_its_poles_is_scipys(n):
    with np.errstate(all="ignore"):
        wanted = special.polygamma(n, EDGES)
    np.testing.assert_array_equal(ll.polygamma(n, ll.constant(EDGES)).numpy(), wanted)


def test_sinc_is_flat_at_zero_and_dies_out_at_infinity():
    x = ll.constant(np.array([0.0, 1.0, 1e6 + 0.5, np.inf, np.nan]))
    found = ll.sinc(x).numpy()
    np.testing.assert_allclose(found[:4], [1.0, 0.0, 1 / (np.pi * (1e6 + 0.5)), 0.0], atol=1e-15)
    assert np.isnan(found[4])
    orders = [raw("sinc", n)(ll.constant(np.array(0.0))).item() for n in range(5)]
    np.testing.assert_allclose(orders, [1.0, 0.0, -(np.pi**2) / 3, 0.0, np.pi**4 / 5], rtol=1e-14)


@pytest.mark.parametrize("order", [0, 1, 2, 5])
def test_sinc_and_its_derivatives_join_where_the_formula_changes(order):
    near, far = (raw("sinc", order)(ll.constant(np.array(x))).item() for x in (1.0, np.nextafter(1.0, 2.0)))
    assert near == pytest.approx(far, rel=1e-9, abs=1e-11)


def test_a_python_number_takes_on_the_dtype_of_the_tensor_beside_it():
    x = ll.constant(np.array([0.3, 0.7]))
    assert ll.gammainc(0.1, x).tolist() == special.gammainc(0.1, x.numpy()).tolist()
    assert ll.betainc(0.1, 0.2, x).tolist() == special.betainc(0.1, 0.2, x.numpy()).tolist()
    with ll.GradientTape() as tape:
        tape.watch(x)
        y = ll.betaln(x, 0.1)
    np.testing.assert_allclose(
        tape.gradient(y, x).numpy(), special.digamma(x.numpy()) - special.digamma(x.numpy() + 0.1), rtol=1e-13
    )


def test_what_does_not_fit_is_refused():
    with pytest.raises(DTypeError, match="floating"):
        ll.erf(ll.constant([1, 2]))
    with pytest.raises(ShapeError, match=r"betainc: shapes \(2,\) and \(3,\) do not broadcast"):
        ll.betainc(ll.ones(2), ll.ones(3), 0.5)
    with pytest.raises(ArgumentError, match="order"):
        ll.polygamma(-1, ll.ones(2))


def test_0_log_0_has_a_gradient_that_is_no_nan():
    x, y = ll.constant([0.0, 0.0, 2.0]), ll.constant([0.0, 3.0, 4.0])
    with ll.GradientTape() as tape:
        tape.watch([x, y])
        z = ll.xlogy(x, y)
    in_x, in_y = tape.gradient(z, [x, y])
    np.testing.assert_allclose(in_x.numpy(), [0.0, np.log(3.0), np.log(4.0)], rtol=1e-6)
    assert in_y.tolist() == [0.0, 0.0, 0.5]


def test_the_tail_of_the_normal_distribution_is_as_steep_as_it_should_be():
    x = ll.constant([-1e4, -100.0, -10.0, 0.0, 10.0, 100.0])
    with ll.GradientTape() as tape:
        tape.watch(x)
        y = ll.log_ndtr(x)
    wide = x.numpy().astype(np.float64)
    wanted = np.sqrt(2 / np.pi) / special.erfcx(-wide / np.sqrt(2))
    np.testing.assert_allclose(tape.gradient(y, x).numpy(), wanted, rtol=1e-6)


# (a, t = log x, order, the derivative), by mpmath with 60 digits
GAMMA = [
    (0.0001, 2.219114015868989, 1, -988.9075756129666),
    (0.3, -61.76285184486743, 2, 12642.149388425865),
    (0.3, -2.615501067658653, 1, -8.779627922280326),
    (0.3, -0.7763681785109974, 2, -0.10723136416488437),
    (30.0, 2.1501150507026794, 1, -0.05873194563590219),
    (30.0, 3.231606799632734, 2, 0.0062007408097665365),
    (30.0, 3.5405544412017407, 1, -0.031237716932001232),
    (30.0, 4.320688052520179, 2, -0.01883956907750163),
    (1000000.0, 13.81466848520947, 1, -1.0004212622048069e-06),
]
# (a, b, x, order in a, order in b, the derivative), the same
BETA = [
    (0.001, 0.001, 1.4142853421410697e-222, 1, 0, -1010825.6249642686),
    (0.001, 200.0, 0.001326283898344564, 0, 1, 0.005015832439270565),
    (0.3, 0.7, 1.6635847967496997e-20, 1, 1, -92.97523905260388),
    (0.3, 200.0, 6.374274943824898e-05, 1, 0, -14.143801608262574),
    (0.3, 10000.0, 1.2727095114733671e-06, 0, 1, 0.00010000356368367737),
    (2.0, 0.7, 0.0012962393281056351, 1, 1, -6.612424294591403),
    (2.0, 200.0, 0.00545813658630175, 1, 0, -0.7201302447127873),
    (2.0, 10000.0, 0.00010972341473169894, 0, 1, 0.0001000004868891631),
    (10000.0, 0.7, 0.9987239099364535, 1, 1, -0.00037688411081340963),
    (10000.0, 200.0, 0.9796956244225231, 1, 0, -0.00010004047596392149),
    (10000.0, 10000.0, 0.4981459474048402, 0, 1, 9.981838057840475e-05),
]


@pytest.mark.parametrize(("a", "t", "order", "wanted"), GAMMA)
def test_derivatives_in_the_parameter_of_the_incomplete_gamma_function(a, t, order, wanted):
    found = raw("gamma_tail", order)(*[ll.constant(np.array(x)) for x in (a, t)]).item()
    assert found == pytest.approx(wanted, rel=1e-8)


@pytest.mark.parametrize(("a", "b", "x", "m", "n", "wanted"), BETA)
def test_derivatives_in_the_parameters_of_the_incomplete_beta_function(a, b, x, m, n, wanted):
    found = raw("beta_tail", m, n)(*[ll.constant(np.array(part)) for part in (a, b, x)]).item()
    assert found == pytest.approx(wanted, rel=1e-8)


def test_many_elements_are_integrated_a_few_at_a_time_and_alike():
    a = ll.constant(np.linspace(0.5, 5.0, 5000).reshape(50, 100))
    whole = raw("gamma_tail", 1)(a, ll.constant(np.array(0.25)))
    assert whole.shape == (50, 100)
    assert whole[17, 3].item() == raw("gamma_tail", 1)(a[17, 3], ll.constant(np.array(0.25))).item()


def test_parameters_beyond_the_domain_give_nan_and_its_ends_nothing_to_gain():
    a = ll.constant(np.array([-1.0, np.nan, 2.0, 2.0]))
    x = ll.constant(np.array([1.0, 1.0, 0.0, np.inf]))
    with ll.GradientTape() as tape:
        tape.watch(a)
        y = ll.gammainc(a, x)
    found = tape.gradient(y, a).numpy()
    assert np.isnan(found[:2]).all()
    assert found[2:].tolist() == [0.0, 0.0]
    with ll.GradientTape() as tape:
        tape.watch(a)
        y = ll.betainc(a, 2.0, ll.constant(np.array([0.5, 0.5, 0.0, 1.0])))
    found = tape.gradient(y, a).numpy()
    assert np.isnan(found[:2]).all()
    assert found[2:].tolist() == [0.0, 0.0]


@pytest.mark.slow  # starts another Python
def test_importing_the_engine_does_not_import_scipy():
    code = (
        "import sys, limelight as ll; early = 'scipy' in sys.modules; ll.erf(0.5); print(early, 'scipy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


# (x, order, the derivative of exp(x²) erfc(x)), by mpmath
SCALED = [
    (0.5, 1, -0.5126888229025867),
    (0.5, 2, 0.718691865483265),
    (0.5, 3, -1.3320634261270818),
    (3.0, 1, -0.05437226000717287),
    (3.0, 3, -0.02687658611023545),
    (40.0, 1, -0.0003522884252874839),
    (40.0, 2, 1.75979437569139e-05),
    (1e6, 1, -5.641895835469289e-13),
    (1e200, 1, 0.0),
    (np.inf, 2, 0.0),
]


@pytest.mark.parametrize(("x", "order", "wanted"), SCALED)
def test_the_scaled_error_function_has_slopes_that_do_not_cancel(x, order, wanted):
    assert raw("erfcx", order)(ll.constant(np.array(x))).item() == pytest.approx(wanted, rel=1e-12, abs=1e-300)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_and_left_of_zero_as_well(order):
    x, step = np.array([-3.0, -0.5, 0.0]), 1e-5
    ends = [raw("erfcx", order - 1)(ll.constant(x + sign * step)).numpy() for sign in (1, -1)]
    found = raw("erfcx", order)(ll.constant(x)).numpy()
    np.testing.assert_allclose(found, (ends[0] - ends[1]) / (2 * step), rtol=1e-7)


def test_log_ndtr_is_flat_far_above_zero_to_any_order():
    x = ll.constant([40.0, 1000.0, 1e300], "float64")
    with ll.GradientTape() as outer:
        outer.watch(x)
        with ll.GradientTape() as inner:
            inner.watch(x)
            y = ll.log_ndtr(x)
        slope = inner.gradient(y, x)
    assert slope.tolist() == pytest.approx([0.0, 0.0, 0.0], abs=1e-300)
    assert outer.gradient(slope, x).tolist() == pytest.approx([0.0, 0.0, 0.0], abs=1e-300)


ENDS = (5e-324, 1e-310, 1e-200, 1e-30, 1e8, 1e155, 1e200, 1e308)


@pytest.mark.parametrize("size", ENDS)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_slopes_of_bessel_functions_at_the_ends_of_the_range(size, sign):
    """By their series near 0; far from it the scaled ones fall as 1 / √(2πx), the others are infinite."""
    x = ll.constant(sign * size, "float64")
    assert ll.grad(ll.i1)(x).item() == pytest.approx(0.5 if size < 1 else np.inf)
    assert ll.grad(ll.i1e)(x).item() == pytest.approx(0.5 if size < 1 else 0.0, abs=1e-12)
    assert ll.grad(ll.grad(ll.i0))(x).item() == pytest.approx(0.5 if size < 1 else np.inf)


def test_bessel_functions_of_order_two_join_where_the_formula_changes():
    x = np.array([1e5, 9.99e5, 1e6, 1.01e6, 1e7])
    two = ll.grad(lambda x: ll.sum(ll.grad(lambda x: ll.sum(ll.i0e(x)))(x)))  # i0e'' has the order 2
    wanted = 0.75 / np.sqrt(2 * np.pi) * x**-2.5
    np.testing.assert_allclose(two(ll.constant(x)).numpy(), wanted, rtol=1e-2, atol=1e-15)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("f", [ll.i0e, ll.i1e])
def test_slopes_of_scaled_bessel_functions_do_not_cancel(f, dtype):
    """By the first terms for large arguments, of which the fourth is below the rounding from here on."""
    x = np.array([1e4, 2e5, 1e6, 1e8])
    m = 0 if f is ll.i0e else 4
    terms = -0.5 + 1.5 * (m - 1) / (8 * x) - 2.5 * (m - 1) * (m - 9) / (128 * x**2)
    wanted = terms * x**-1.5 / np.sqrt(2 * np.pi)
    slopes = ll.grad(lambda x: ll.sum(f(x)))(ll.constant(x, dtype)).numpy()
    np.testing.assert_allclose(slopes, wanted, rtol=1e-6 if dtype == "float32" else 1e-11)
    odd = ll.grad(lambda x: ll.sum(f(x)))(ll.constant(-x, dtype)).numpy()
    np.testing.assert_array_equal(odd, -slopes if f is ll.i0e else slopes)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_slope_of_asinh_does_not_overflow(dtype):
    large = {"float32": 1e30, "float64": 1e300}[dtype]
    x = ll.constant([-np.inf, -large, -3.0, 0.0, 1.0, large, np.inf], dtype)
    got = ll.grad(lambda x: ll.sum(ll.asinh(x)))(x).numpy()
    np.testing.assert_allclose(got, [0.0, 1 / large, 10**-0.5, 1.0, 0.5**0.5, 1 / large, 0.0], rtol=1e-6)
