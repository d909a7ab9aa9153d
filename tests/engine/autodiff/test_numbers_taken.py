"""Values that leave for NumPy or Python on the way to a result whose gradient is asked for."""

import math
import warnings

import numpy as np
import pytest

import limelight as ll
from limelight.errors import LostGradientWarning


def into_elements(p):
    out = np.zeros(2)
    out[0] = p[0] ** 2
    return ll.sum(out * p)


def into_slice(p):
    out = np.zeros(2)
    out[:] = p
    return ll.sum(out * p)


@pytest.mark.parametrize(
    ("fn", "instead"),
    [
        (lambda p: ll.sum(p) + np.asarray(p)[0] ** 3, "ll.stack"),
        (lambda p: ll.sum(p * np.array([p[0], p[1]])), "ll.stack"),
        (into_elements, r"x\.at\[i\]\.set\(y\)"),
        (into_slice, r"x\.at\[i\]\.set\(y\)"),
        (lambda p: ll.sum(p) * math.exp(p[0]), r"math.exp takes .* Write ll\.exp\(x\)"),
    ],
)
@pytest.mark.parametrize("derivative", [ll.grad, ll.jacobian, ll.hessian])
def test_numbers_taken_unseen_from_a_watched_tensor_warn_where_part_of_the_gradient_is_lost(fn, instead, derivative):
    with pytest.warns(UserWarning, match=rf"watched.*its gradient ends there.*{instead}|{instead}") as seen:
        derivative(fn)(np.array([2.0, 3.0]))
    assert {record.filename for record in seen} == {__file__}


def test_forward_mode_and_variables_warn_as_well():
    with pytest.warns(UserWarning, match="its gradient ends there"):
        ll.jvp(lambda x: x * np.asarray(x), (2.0,), (1.0,))
    v = ll.Variable([2.0, 3.0])
    with ll.GradientTape(), pytest.warns(UserWarning, match="its gradient ends there"):
        np.asarray(v)
    w = ll.Variable(1.0)
    with ll.GradientTape(), pytest.warns(UserWarning, match=r"math\.sin takes the numbers of a tensor"):
        math.sin(w)


@pytest.mark.parametrize(
    ("fn", "instead"),
    [
        (np.sum, r"write ll\.sum\(x\), or np\.sum\(x\.numpy\(\)\)"),
        (lambda p: np.dot(p, p), r"write ll\.dot\(x, y\), or np\.dot\(x\.numpy\(\), y\.numpy\(\)\)"),
        (lambda p: np.sum(np.stack([p, 2.0 * p])), r"np\.stack\(\[x\.numpy\(\), y\.numpy\(\)\]\)"),
        (lambda p: np.sum(np.clip(p, 0.0, 1.0)), r"np\.clip\(x\.numpy\(\), 0\.0, 1\.0\)"),
        (lambda p: math.sin(p[0]), "functions of ll"),
        (lambda p: float(p[0]) * 2.0, "grad: the result does not depend on the arguments"),
        (lambda p: p.numpy().sum(), "grad: the result does not depend on the arguments"),
    ],
)
def test_one_filter_stops_every_way_in_which_a_gradient_is_lost(fn, instead):
    with warnings.catch_warnings():
        warnings.simplefilter("error", LostGradientWarning)
        with pytest.raises(LostGradientWarning, match=instead):
            ll.grad(fn)(np.array([1.0, 2.0]))


def test_integers_that_are_watched_or_asked_for_lose_theirs():
    count = ll.Variable(2)
    with ll.GradientTape(persistent=True) as tape:
        y = ll.astype(count, "float32") * 2.0
        with pytest.warns(LostGradientWarning, match="watching an int32 variable has no effect"):
            tape.watch(count)
    with pytest.warns(LostGradientWarning, match=r"the gradient of an int32 variable is None.*ll\.Variable\(2\.0\)"):
        assert tape.gradient(y, count) is None


def test_numbers_asked_for_in_words_do_not_warn():
    logs = []

    def logged(p):
        logs.append((str(p), f"{p[0]:.3f} {p}", p.numpy(), p[0].item(), float(p[0]), p.tolist()))
        np.testing.assert_allclose(p, [2.0, 3.0])
        return ll.sum(p * p) if p[0] > 0 else ll.sum(p)

    with warnings.catch_warnings(action="error"):
        assert ll.grad(logged)(np.array([2.0, 3.0])).tolist() == [4.0, 6.0]
        np.asarray(ll.ones(2)), np.array([ll.ones(())])
        out = np.zeros(1)
        out[0] = ll.ones(())
        with ll.GradientTape() as tape:
            x = ll.Variable(2.0)
            y = x * x
            with tape.stop_recording():
                out[0] = y
            np.asarray(ll.stop_gradient(y))


def test_why_none_does_not_vouch_for_a_gradient_of_which_a_part_was_read_as_a_number():
    x = ll.Variable([2.0, 3.0])
    with ll.GradientTape() as tape:
        loss = ll.sum(x * x) + float(x[0]) ** 3
        assert repr(loss)
    said = str(ll.explain.why_none(tape, loss, x))
    line = test_why_none_does_not_vouch_for_a_gradient_of_which_a_part_was_read_as_a_number.__code__.co_firstlineno + 3
    assert f"values were read as numbers at test_numbers_taken.py line {line}: what was computed from" in said
    with ll.GradientTape() as tape:
        loss = ll.sum(x * x)
        assert f"{loss:.2f}" in repr(loss)[:20] + "13.00"
    assert "read as numbers" not in str(ll.explain.why_none(tape, loss, x))


def test_gradcheck_names_the_lines_at_which_values_were_read_as_numbers():
    with pytest.raises(ll.errors.GradientCheckError, match=r"read as numbers at test_numbers_taken.py line \d+:"):
        ll.gradcheck(lambda x: x * x.item(), ll.constant(2.0))
