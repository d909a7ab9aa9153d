"""`ll.debug`: prints and checks that run with the program, in order, and are never removed."""

from __future__ import annotations

import numpy as np
import pytest

import limelight as ll
from limelight.errors import ArgumentError, CheckError, DTypeError


def printed(capsys, run, *args):
    run(*args)
    return capsys.readouterr().out.splitlines()


def plain(x):
    ll.debug.print("first {} {n} {t:.1f}", x, n="static", t=x * 2.0)
    x = x + 1.0
    ll.debug.print("then {}", {"x": x})
    return x


@pytest.mark.parametrize("staged", [False, True], ids=["eager", "staged"])
def test_it_prints_in_order_at_each_call(capsys, staged):
    f = ll.function(plain) if staged else plain
    for value in (1.0, 5.0):
        lines = printed(capsys, f, ll.constant(value))
        assert lines == [
            f"first {value} static {2 * value:.1f}",
            f"then {{'x': array({value + 1.0:.0f}., dtype=float32)}}",
        ]


def test_it_prints_where_nothing_is_returned_and_between_assignments(capsys):
    v = ll.Variable(1.0)

    @ll.function
    def f():
        ll.debug.print("{}", v)
        v.assign_add(1.0)
        ll.debug.print("{}", v)

    assert printed(capsys, f) == ["1.0", "2.0"]


def counted(x):
    def body(i, s):
        ll.debug.print("{}", i)
        return i + 1, ll.cond(i > 0, lambda: (ll.debug.print("positive"), s * x)[1], lambda: s)

    return ll.while_loop(lambda i, s: i < 2, body, (ll.constant(0), x))[1]


WAYS = {
    "eager": counted,
    "staged": ll.function(counted),
    "differentiated": ll.grad(counted),
    "staged and differentiated": ll.grad(ll.function(counted)),
    "forward": lambda x: ll.jvp(ll.function(counted), (x,), (x,)),
}


@pytest.mark.parametrize("way", WAYS)
def test_loops_and_branches_print_once_for_each_time_they_run(capsys, way):
    assert printed(capsys, WAYS[way], ll.constant(3.0)) == ["0", "1", "positive"]


def test_each_example_prints(capsys):
    assert printed(capsys, ll.vectorize(plain), ll.constant([1.0, 2.0])) == [
        "first 1.0 static 2.0",
        "first 2.0 static 4.0",
        "then {'x': array(2., dtype=float32)}",
        "then {'x': array(3., dtype=float32)}",
    ]
    assert printed(capsys, ll.vectorize(lambda x: (ll.debug.print("once"), x)[1]), ll.ones(3)) == ["once"]


def checked(x):
    ll.debug.check(x > 0.0, "x is {}, below {limit}", x, limit=0)
    return ll.log(x)


CHECKED = {
    "eager": checked,
    "staged": ll.function(checked),
    "differentiated": ll.grad(checked),
    "staged and differentiated": ll.grad(ll.function(checked)),
    "batched": lambda x: ll.vectorize(checked)(ll.stack([ll.constant(1.0), x])),
}


@pytest.mark.parametrize("way", CHECKED)
def test_a_check_raises_at_its_line_and_lets_pass_what_holds(way):
    CHECKED[way](ll.constant(1.0))
    with pytest.raises(CheckError, match=r"x is -2\.0, below 0.*\(test_debug\.py line"):
        CHECKED[way](ll.constant(-2.0))


def test_a_check_in_the_branch_not_taken_is_not_made():
    f = ll.function(lambda x: ll.cond(x > 0, lambda: checked(x), lambda: x))
    assert f(ll.constant(-1.0)).item() == -1.0
    assert ll.vectorize(f)(ll.constant([-1.0, 1.0])).tolist() == [-1.0, 0.0]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_are_refused(bad):
    def f(x):
        return ll.sum(ll.debug.check_numerics(x * 2.0, "doubled"))

    word = "NaN" if np.isnan(bad) else "infinite"
    fine, wrong = ll.constant([1.0, 2.0]), ll.constant([1.0, bad])
    for way in (f, ll.function(f)):
        assert way(fine).item() == 6.0
        assert ll.grad(way)(fine).tolist() == [2.0, 2.0]
        assert ll.hessian(way)(fine).tolist() == [[0.0, 0.0], [0.0, 0.0]]
        assert ll.vectorize(way)(ll.stack([fine, fine])).tolist() == [6.0, 6.0]
        with pytest.raises(CheckError, match=rf"check_numerics: doubled: 1 {word} among the elements of f32\[2\]"):
            way(wrong)


def test_unused_checks_stay_in_the_graph():
    f = ll.function(lambda x: (ll.debug.check_numerics(x), ll.ones(()))[1])
    with pytest.raises(CheckError):
        f(ll.constant(np.nan))


@pytest.mark.parametrize(
    ("text", "args", "named", "unused"),
    [
        ("x", (1.0,), {}, "0"),
        ("x = {}", (1.0, ll.ones(2)), {}, "1"),
        ("{{}}", (ll.ones(2),), {}, "0"),
        ("{1}", (ll.ones(2), 3), {}, "0"),
        ("{a}", (), {"a": 1, "b": ll.ones(2)}, "b"),
    ],
)
def test_values_for_which_a_text_has_no_place_are_refused(text, args, named, unused):
    for call in (ll.debug.print, lambda *a, **k: ll.debug.check(True, *a, **k)):
        with pytest.raises(ArgumentError, match=f"has no place for the value {unused}, which would not be shown"):
            call(text, *args, **named)


@pytest.mark.parametrize("staged", [False, True])
def test_texts_may_ask_for_parts_of_values(staged, capsys):
    def f(x):
        ll.debug.print("{0[1]} {0.shape} {d[k]}", x, d={"k": x[0]})

    (ll.function(f) if staged else f)(ll.constant([1.0, 2.0]))
    assert capsys.readouterr().out == "2.0 (2,) 1.0\n"


def test_texts_and_conditions_are_looked_at_before():
    with pytest.raises(ArgumentError, match=r"'\{\} \{\}' asks for more values than are given by place, 1"):
        ll.debug.print("{} {}", ll.ones(2))
    with pytest.raises(ArgumentError, match="asks for 'y'"):
        ll.function(lambda x: ll.debug.check(x > 0, "{y}", x=x))(ll.ones(2))
    with pytest.raises(ArgumentError, match="the first argument is the text"):
        ll.debug.print(ll.ones(2))
    with pytest.raises(DTypeError, match="needs a bool condition, got float32"):
        ll.debug.check(ll.ones(2), "")


def test_only_public_names_are_listed():
    assert dir(ll.debug) == ["check", "check_numerics", "print"]
