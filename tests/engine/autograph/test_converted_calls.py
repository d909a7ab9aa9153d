"""What the library calls for converted code is converted too: modules, layers within layers, transforms."""

# ruff: noqa: PLW0108  # lambdas are what is tested

import functools

import pytest

import limelight as ll
from limelight.core import recursion_limit
from limelight.errors import ControlFlowError

staged = functools.partial(ll.function, autograph=True)
ONES = ll.ones((1, 2))


def positive(x):
    if ll.sum(x) > 0:
        return x
    return -x


class Net(ll.Module):
    def __init__(self):
        self.inner = ll.nn.Sequential(ll.nn.Dense(2, activation=positive, kernel_initializer="ones"), positive)

    def call(self, x):
        y = self.inner(x)
        if ll.sum(y) > 0:
            return y
        return -y


@pytest.mark.parametrize("wrap", [lambda net: net, lambda net: lambda x: net(x)], ids=["itself", "within"])
def test_modules_and_functions_in_layers(wrap):
    net = Net()
    assert staged(wrap(net))(-ONES).tolist() == net(-ONES).tolist() == [[2.0, 2.0]]


recomputed = ll.recompute_grad(positive)


@ll.custom_gradient
def doubled(x):
    y = positive(x)

    def grad(dy):
        if ll.sum(dy) > 0:
            return 2 * dy
        return dy

    return (y if ll.sum(y) > 0 else x), grad


def of_module():
    net = ll.nn.Sequential(positive)
    return ll.recompute_grad(lambda x: net(x))


@pytest.mark.parametrize(("f", "slope"), [(recomputed, -1.0), (doubled, 2.0), (of_module(), -1.0)])
def test_functions_with_gradients_of_their_own_made_outside(f, slope):
    assert ll.grad(staged(lambda x: ll.sum(f(x))))(-ONES).tolist() == [[slope, slope]]


def test_transforms_made_outside():
    f = ll.grad(lambda x: x * x if x > 0 else x)
    assert staged(f)(ll.constant(3.0)).item() == staged(lambda x: f(x))(ll.constant(3.0)).item() == 6.0


@ll.function
def plain(x):
    if x > 0:
        return x
    return -x


def test_a_function_staged_without_autograph_says_so():
    with pytest.raises(ControlFlowError, match=r"`plain` asks a tensor .*it runs in plain, which is staged without"):
        staged(lambda x: plain(x))(ll.constant(1.0))


@staged
def factorial(n):
    if n <= 1:
        return ll.constant(1)
    return n * factorial(n - 1)


def unstaged(n):
    if n <= 1:
        return ll.constant(1)
    return n * unstaged(n - 1)


def below(depth, f, x):
    return f(x) if depth == 0 else below(depth - 1, f, x)


def test_endless_recursion_names_the_function_at_once():
    with pytest.raises(RecursionError, match=r"^factorial calls itself with arguments of the same types"):
        factorial(ll.constant(5))


@pytest.mark.parametrize("depth", range(3))
def test_endless_recursion_of_a_plain_function_names_that(depth, monkeypatch):
    monkeypatch.setattr(recursion_limit, "MAX_RAISE", 600)  # the work grows with the square of the stack
    with pytest.raises(RecursionError, match=r"^`unstaged` calls itself while it is traced"):
        below(depth, staged(lambda n: unstaged(n)), ll.constant(5))
