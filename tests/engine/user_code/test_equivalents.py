"""The code that hints tell to write does what the name does elsewhere: it is run beside NumPy's and SciPy's own."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.special

import limelight as ll
from limelight.user_code import equivalents, hints

RNG = np.random.default_rng(0)
X, Y = np.array([3.0, -1.0, 2.0, 0.0, 2.0]), np.array([2.0, 5.0, -1.0, 0.0, 1.0])
GAPS = np.array([3.0, np.nan, 2.0])
M, N = RNG.normal(size=(3, 3)), RNG.normal(size=(3, 3))
PD = M @ M.T + np.eye(3)
ROWS, COLUMNS = np.array([0, 2, 1, 2]), np.array([1, 0, 1, 1])

SAME: list[tuple[str, dict[str, Any], str, Callable[..., Any]]] = [
    ("geomspace", {"start": 1.0, "stop": 8.0, "n": 4}, "ll.exp(ll.linspace(math.log(start), math.log(stop), n))",
     np.geomspace),
    ("logspace", {"start": 0.0, "stop": 2.0, "n": 5}, "10 ** ll.linspace(start, stop, n)", np.logspace),
    ("diag_indices", {"n": 3}, "(ll.arange(n), ll.arange(n))", np.diag_indices),
    ("mgrid", {"n": 2, "m": 3}, 'll.meshgrid(ll.arange(n), ll.arange(m), indexing="ij")',
     lambda n, m: np.mgrid[:n, :m]),
    ("ix_", {"x": M, "rows": np.array([0, 2]), "columns": np.array([1, 2])}, "x[rows[:, None], columns]",
     lambda x, rows, columns: x[np.ix_(rows, columns)]),
    ("digitize", {"x": X, "bins": np.array([-1.0, 0.0, 2.0])}, 'll.searchsorted(bins, x, side="right")', np.digitize),
    ("column_stack", {"xs": [X, Y]}, "ll.stack(xs, axis=1)", np.column_stack),
    ("append", {"x": X, "y": Y}, "ll.concat([x, y])", np.append),
    ("dstack", {"xs": [M, N]}, "ll.stack(xs, axis=2)", np.dstack),
    ("flatnonzero", {"x": M * (M > 0)}, "ll.nonzero(x.ravel())[0]", np.flatnonzero),
    ("gradient", {"y": X, "step": 0.5}, "ll.concat([y[1:2] - y[:1], (y[2:] - y[:-2]) / 2, y[-1:] - y[-2:-1]]) / step",
     np.gradient),
    ("array_split", {"x": np.arange(10.0)}, "ll.split(x, [4, 3, 3])", lambda x: np.array_split(x, 3)),
    ("select", {"x": X, "y": Y, "z": -Y, "a": X > 1, "b": Y > 1}, "ll.where(a, x, ll.where(b, y, z))",
     lambda x, y, z, a, b: np.select([a, b], [x, y], z)),
    ("choose", {"choices": [X, Y], "index": np.array([0, 1, 1, 0, 1])},
     "ll.take_along_axis(ll.stack(choices), index[None], axis=0)[0]", lambda choices, index: np.choose(index, choices)),
    ("tril_indices", {"n": 3}, "ll.nonzero(ll.tril(ll.ones((n, n))))", np.tril_indices),
    ("triu_indices", {"n": 3}, "ll.nonzero(ll.triu(ll.ones((n, n))))", np.triu_indices),
    ("tri", {"n": 3, "m": 4}, "ll.tril(ll.ones((n, m)))", np.tri),
    ("beta", {"a": 2.0, "b": 3.0}, "ll.exp(ll.betaln(a, b))", scipy.special.beta),
    ("gamma", {"x": 4.5}, "ll.exp(ll.lgamma(x))", scipy.special.gamma),
    ("polyfit", {"x": X, "y": Y, "degree": 2},
     "ll.linalg.lstsq(x[:, None] ** ll.arange(degree, -1.0, -1.0), y).solution",
     np.polyfit),
    ("polyval", {"c": Y, "x": M},
     "ll.sum(c * x[..., None] ** ll.arange(c.size - 1.0, -1.0, -1.0), axis=-1)", np.polyval),
    ("correlate", {"x": X, "y": Y[:3]}, 'll.convolve(x, ll.flip(y), mode="valid")', np.correlate),
    ("atleast_1d", {"x": np.array(2.0)}, "x.reshape(x.shape or (1,))", np.atleast_1d),
    ("apply_along_axis", {"f": lambda row: row[0], "x": M}, "ll.vectorize(f)(x)",
     lambda f, x: np.apply_along_axis(f, 1, x)),
    ("apply_along_axis", {"f": lambda column: column[1:], "x": M}, "ll.vectorize(f, in_axes=1, out_axes=-1)(x)",
     lambda f, x: np.apply_along_axis(f, 0, x)),
    ("kthvalue", {"x": X, "k": 2}, "ll.sort(x)[..., k - 1]", lambda x, k: np.partition(x, k - 1)[k - 1]),
    ("histogram2d", {"i": ROWS, "j": COLUMNS, "n": 3, "m": 2},
     "ll.segment_sum(ll.ones(i.shape), i * m + j, n * m).reshape((n, m))",
     lambda i, j, n, m: np.histogram2d(i, j, bins=[np.arange(n + 1), np.arange(m + 1)])[0]),
    ("vander", {"x": X, "n": 3}, "x[:, None] ** ll.arange(n - 1.0, -1.0, -1.0)", np.vander),
    ("unravel_index", {"i": np.array([5, 7]), "columns": 3}, "(i // columns, i % columns)",
     lambda i, columns: np.unravel_index(i, (4, columns))),
    ("ravel_multi_index", {"i": ROWS, "j": COLUMNS, "columns": 3}, "i * columns + j",
     lambda i, j, columns: np.ravel_multi_index((i, j), (4, columns))),
    ("union1d", {"x": X, "y": Y}, "ll.unique_values(ll.concat([x, y]))", np.union1d),
    ("setxor1d", {"x": X, "y": Y}, "ll.unique_values(ll.concat([x[~ll.isin(x, y)], y[~ll.isin(y, x)]]))", np.setxor1d),
    ("insert", {"x": X, "i": 2, "values": Y[:2]}, "ll.concat([x[:i], values, x[i:]])",
     np.insert),
    ("delete", {"x": X, "i": 2}, "ll.concat([x[:i], x[i + 1:]])", np.delete),
    ("divmod", {"x": X, "y": np.array([2.0, 2, 2, 2, 3])}, "divmod(x, y)", np.divmod),
    ("ldexp", {"x": X, "n": np.array([1, -2, 3, 0, 1])}, "x * ll.exp2(ll.astype(n, x.dtype))", np.ldexp),
    ("fmax", {"x": GAPS, "y": GAPS[::-1].copy()},
     "ll.where(ll.isnan(x), y, ll.where(ll.isnan(y), x, ll.maximum(x, y)))",
     np.fmax),
    ("heaviside", {"x": X, "y": Y}, "ll.where(x > 0, 1.0, ll.where(x < 0, 0.0, y))", np.heaviside),
    ("nanmedian", {"x": GAPS}, "ll.median(x[~ll.isnan(x)])", np.nanmedian),
    ("nanvar", {"x": GAPS}, "ll.var(x[~ll.isnan(x)])", np.nanvar),
    ("nancumprod", {"x": GAPS}, "ll.cumprod(ll.where(ll.isnan(x), 1.0, x))", np.nancumprod),
    ("hanning", {"n": 5}, 'll.constant(np.hanning(n), dtype="float32")', np.hanning),
    ("isneginf", {"x": np.array([1.0, -np.inf])}, "x == -ll.inf", np.isneginf),
    ("block", {"rows": [[M, N], [N, M]]}, "ll.concat([ll.concat(row, axis=1) for row in rows], axis=0)", np.block),
    ("spacing", {"x": np.array([1.0, 3.0])}, "ll.nextafter(x, ll.inf) - x", np.spacing),
    ("logaddexp2", {"x": X, "y": Y}, "ll.log2(ll.exp2(x) + ll.exp2(y))", np.logaddexp2),
    ("cumlogsumexp", {"x": X}, "ll.scan(lambda c, t: (ll.logaddexp(c, t), ll.logaddexp(c, t)), x[0], x[1:])[1]",
     lambda x: np.logaddexp.accumulate(x)[1:]),
    ("complex", {"x": X, "y": Y},
     "ll.astype(x, ll.complex64) + 1j * ll.astype(y, ll.complex64)", lambda x, y: x + 1j * y),
    ("linalg.cond", {"x": M, "s": np.linalg.svd(M)[1]}, "s[..., 0] / s[..., -1]", lambda x, s: np.linalg.cond(x)),
    ("cho_solve", {"a": PD, "b": X[:3]}, "ll.linalg.cholesky_solve(ll.linalg.cholesky(a), b)", np.linalg.solve),
    ("block_diag", {"a": M, "b": N[:, :2]},
     "ll.concat([ll.pad(a, ((0, 0), (0, b.shape[1]))), ll.pad(b, ((0, 0), (a.shape[1], 0)))])",
     scipy.linalg.block_diag),
    ("toeplitz", {"column": X[:3], "row": np.array([3.0, 7.0, 8.0]), "n": 3, "i": np.arange(3)},
     "ll.concat([ll.flip(row[1:]), column])[i[:, None] - i + n - 1]",
     lambda column, row, n, i: scipy.linalg.toeplitz(column, row)),
    ("sqrtm", {"x": PD, "w": np.linalg.eigh(PD)[0], "q": np.linalg.eigh(PD)[1]}, "(q * ll.sqrt(w)) @ q.mT",
     lambda x, w, q: scipy.linalg.sqrtm(x)),
    ("tensorsolve", {"a": M, "b": X[:3]}, "ll.linalg.solve(a.reshape((b.size, -1)), b.ravel())", np.linalg.tensorsolve),
    ("factorial", {"n": 4}, "ll.exp(ll.lgamma(n + 1.0))", math.factorial),
    ("comb", {"n": 5, "k": 2}, "ll.exp(ll.lgamma(n + 1.0) - ll.lgamma(k + 1.0) - ll.lgamma(n - k + 1.0))", math.comb),
    ("sequence_mask", {"n": 3, "lengths": np.array([1, 3])}, "ll.arange(n) < lengths[:, None]",
     lambda n, lengths: np.arange(n) < lengths[:, None]),
    ("to_categorical", {"labels": ROWS, "classes": 3},
     "ll.one_hot(labels, classes)", lambda labels, classes: np.eye(classes)[labels]),
    ("select_n", {"which": X > 1, "a": X, "b": Y}, "ll.where(which, b, a)", lambda which, a, b: np.where(which, b, a)),
    ("div", {"x": np.array([7, -7]), "y": np.array([2, 2])},
     "ll.astype(ll.trunc(x / y), x.dtype)", lambda x, y: [3, -3]),
    ("dynamic_update_slice", {"x": X, "i": 1, "n": 2, "v": Y[:2]}, "x.at[i:i + n].set(v)",
     lambda x, i, n, v: np.concatenate([x[:i], v, x[i + n:]])),
    ("foldl", {"f": lambda c, t: 2.0 * c + t, "init": np.array(1.0), "xs": X},
     "ll.scan(lambda c, t: (f(c, t), None), init, xs)[0]",
     lambda f, init, xs: functools.reduce(f, xs, init)),
    ("associative_scan", {"f": lambda c, t: c + t, "xs": X},
     "ll.scan(lambda c, t: (f(c, t), f(c, t)), xs[0], xs[1:])[1]", lambda f, xs: np.cumsum(xs)[1:]),
    ("PiecewiseConstantDecay", {"t": 2000.0}, "ll.where(t < 1000, 0.1, 0.01)", lambda t: 0.01),
    ("pad_sequences", {"rows": [X[:2], Y[:3]], "n": 4}, "ll.stack([ll.pad(x, (0, n - len(x))) for x in rows])",
     lambda rows, n: np.stack([np.pad(row, (0, n - len(row))) for row in rows])),
    ("Dropout2d", {"x": np.ones((2, 3, 3, 4)), "n": 2, "channels": 4, "rate": 0.0},
     "x * ll.random.dropout_mask(ll.ones((n, 1, 1, channels)), rate)", lambda x, n, channels, rate: x),
    ("random.orthogonal", {"n": 3}, "ll.linalg.qr(ll.random.normal((n, n))).Q", lambda n: None),
]  # fmt: skip
DRAWN = {
    "random.logistic": (0.0, math.pi / 3**0.5), "random.loggamma": (0.4228, 0.8031), "random.t": (0.0, (5 / 3) ** 0.5),
    "random.f": (5 / 3, None), "binomial": (3.0, 1.2247), "chisquare": (5.0, 10**0.5), "pareto": (1.25, None),
    "rayleigh": (1.2533, 0.6551), "maxwell": (1.5958, 0.6734), "weibull": (1.7725, 0.9265), "geometric": (2.0, 2**0.5),
    "rademacher": (0.0, 1.0), "lognormal": (1.6487, 2.1612),
}  # fmt: skip
"""Means and deviations, of a = 2, b = 5, df = m = n = 5 (n = 6 for binomial), p = 0.5, k = 2 and scale = 2."""


def taken(value: Any) -> Any:
    """Arrays as tensors, of the default precision, as a user has them."""
    if isinstance(value, list):
        return [taken(v) for v in value]
    if isinstance(value, np.ndarray):
        return ll.constant(value, dtype="float64") if value.dtype.kind == "f" else ll.constant(value)
    return value


@pytest.mark.parametrize(("name", "given", "code", "elsewhere"), SAME, ids=[case[0] for case in SAME])
def test_what_is_to_be_written_gives_what_the_other_gives(name, given, code, elsewhere) -> None:
    entry = equivalents.functions()[name]
    assert code in entry.remark
    arguments = {key: taken(value) for key, value in given.items()}
    mine, theirs = eval(code, {"ll": ll, "np": np, "math": math, **arguments}), elsewhere(*given.values())
    pairs = zip(mine, theirs, strict=True) if isinstance(mine, (tuple, list)) else [(mine, theirs)]
    for ours, other in pairs:
        if other is not None:
            np.testing.assert_allclose(np.asarray(ours), other, rtol=1e-5, atol=1e-5)


def test_set_operations_of_two_steps() -> None:
    known = {"ll": ll, "a": ll.unique_values(ll.constant(X)), "y": ll.constant(Y)}
    for name, code in (("setdiff1d", "a[~ll.isin(a, y)]"), ("intersect1d", "a[ll.isin(a, y)]")):
        assert code in equivalents.functions()[name].remark
        assert eval(code, known).tolist() == getattr(np, name)(X, Y).tolist()
    keys, b = ll.constant([1, 0, 1]), ll.constant([2, 1, 0])
    i = ll.argsort(b)
    assert i[ll.argsort(keys[i])].tolist() == np.lexsort((b.numpy(), keys.numpy())).tolist()


def test_datasets_of_rows_of_different_lengths_are_padded_before_they_are_batched() -> None:
    code = "ds.map(lambda x: ll.pad(x, (0, n - len(x)))).batch(size)"
    for remark in (
        equivalents.of_datasets()["padded_batch"],
        *(equivalents.functions()[name].remark for name in ("padded_batch", "RaggedTensor", "pad_sequences")),
    ):
        assert code in remark
    ds = ll.data.from_generator(lambda: iter([np.array([1, 2]), np.array([3])]))
    (batch,) = eval(code, {"ll": ll, "ds": ds, "n": 3, "size": 2})
    assert batch.tolist() == [[1, 2, 0], [3, 0, 0]]


@pytest.mark.parametrize("name", DRAWN)
def test_draws_have_the_moments_of_the_distribution(name: str) -> None:
    ll.random.seed(3)
    remark = equivalents.functions()[name].remark
    code = re.sub(r", (which|with|for|of) .*", "", remark.removeprefix("write ").rpartition(": ")[2])
    sizes = {"n": 6 if name == "binomial" else 5, "m": 5, "df": 5, "a": 2.0, "b": 5, "p": 0.5, "k": 2, "scale": 2.0}
    drawn = eval(code, {"ll": ll, "math": math, "shape": (20_000,), **sizes}).numpy()
    mean, deviation = DRAWN[name]
    assert drawn.shape == (20_000,)
    assert abs(drawn.mean() - mean) < 0.05 * max(1.0, abs(mean))
    assert deviation is None or abs(drawn.std() / deviation - 1) < 0.1


# Code of hints for tensors

SAMPLES: dict[str, Any] = {
    "x": ll.constant([[2.0, 1.0], [1.0, 3.0]]), "y": ll.constant([[1.0, 2.0], [3.0, 5.0]]), "axis": 0, "axis1": 0,
    "axis2": 1, "source": 0, "destination": 1, "shape": (2, 2), "sizes": (1, 2), "n": 2, "k": 1, "q": 0.5, "shift": 1,
    "parts": 2, "repetitions": 2, "repeats": 2, "slope": 0.1, "dtype": ll.float32, "low": 0.0, "high": 1.0,
    "value": 1.0,
    "mask": ll.constant([[True, False], [True, True]]), "indices": ll.constant([[0, 1], [1, 0]]), "start": 0, "stop": 1,
    "depth": 2, "values": ll.constant([[0.0, 1.0], [1.0, 0.0]]), "min": 0.0, "max": 1.0, "index": 0, "path": None,
}  # fmt: skip
WHOLE = {"bincount", "bitwise_and", "bitwise_or", "bitwise_xor", "one_hot"}
TRUTH = {"logical_and", "logical_or", "logical_not", "logical_xor"}
ONE_AXIS = {"searchsorted", "bincount", "outer"}
NOT_RUN = {"choose", "scatter_add", "select"}  # of lists and places that only the user has


def code_of(hint: str) -> str | None:
    """The first expression that a hint tells to write; None where it is none."""
    match = re.search(r"write (?:x = )?((?:ll\.|np\.save|x\b|divmod)[^;]*)", hint)
    code = match[1] if match else ""
    while code:
        try:
            compile(code, "", "eval")
            return code
        except SyntaxError:
            code = re.split(r"[ ,]", code[::-1], maxsplit=1)[1][::-1] if re.search(r"[ ,]", code) else ""
    return None


def test_each_hint_of_tensors_is_code_that_runs(tmp_path) -> None:
    ran, wrong = 0, []
    for name, hint in equivalents.of_tensors().items():
        code = code_of(hints.with_form(hint))
        if code is None or name in NOT_RUN or "gpu" in code:
            continue
        given = {**SAMPLES, "ll": ll, "np": np, "path": tmp_path / "x"}
        if name in WHOLE:
            given["x"] = ll.constant([[1, 0], [0, 1]])
            given["y"] = ll.constant([[1, 1], [0, 1]])
        if name in TRUTH:
            given["x"] = given["y"] = SAMPLES["mask"]
        if name in ONE_AXIS:
            given["x"] = given["y"] = given["x"][0]
        if name in ("mm", "bmm", "cross"):
            given["x"] = given["y"] = ll.ones((3, 3))
        try:
            eval(code, given)
            ran += 1
        except Exception as error:  # noqa: BLE001  # whatever it is, the hint is wrong
            wrong.append(f"{name}: {code}: {type(error).__name__} {error}")
    assert not wrong, "\n".join(wrong)
    assert ran > 150


def test_numpy_functions_of_tensors_are_told_by_their_whole_form() -> None:
    x = ll.constant([1.0, 2.0])
    for function, form in ((np.dot, r"write ll.dot\(x, y\)"), (np.where, r"write ll.where\(condition, x, y\)")):
        given = (x > 1, x, 0) if function is np.where else (x, x)
        with ll.GradientTape() as tape:
            tape.watch(x)
            with pytest.warns(UserWarning, match=form):
                function(*given)


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("from limelight import jit", "cannot import name 'jit' from 'limelight'; write ll.function"),
        ("from limelight import nn, lax", "cannot import name 'lax' from 'limelight': there is no such namespace"),
        ("from limelight import nothing_like_it", "cannot import name 'nothing_like_it' from 'limelight'$"),
    ],
)
def test_names_that_are_imported(statement: str, words: str) -> None:
    with pytest.raises(ImportError, match=words):
        exec(statement, {})
    exec("from limelight import data, nn, events", {})


def test_completion_offers_what_objects_are_for() -> None:
    opt, staged = ll.optim.Adam(), ll.function(lambda x: x)
    for names in (dir(ll.GradientTape), dir(ll.GradientTape()), dir(opt), dir(staged)):
        assert not {
            "observe_many",
            "below",
            "abandon",
            "makes_handles",
            "renew_slots",
            "lower",
            "follows_sharing",
        } & set(names)
        assert not [name for name in names if name[0] == "_" and name[:2] != "__"]
    assert {"gradient", "watch", "jacobian", "stop_recording", "watched_variables"} <= set(dir(ll.GradientTape))
    assert {"apply", "learning_rate", "step", "beta1", "variables"} <= set(dir(opt))
    assert {"trace_cache", "get_concrete_function", "clear_cache"} <= set(dir(staged))


def test_a_staged_assertion_is_told_of_the_op() -> None:
    def positive(x: Any) -> Any:
        assert x > 0
        return x

    with pytest.raises(ll.errors.SymbolicValueError, match=r"Write ll\.debug\.check\(condition, message\)"):
        ll.function(positive)(ll.constant(1.0))
