"""Small programs as people bring them along: converted, they compute what Python does; what is refused says so."""

# ruff: noqa: SIM108, PLR5501, PERF401  # programs as they come

import functools
import math

import pytest

import limelight as ll
from limelight.core import nest
from limelight.errors import ControlFlowError

staged = functools.partial(ll.function, autograph=True)


def values(result):
    return nest.map_structure(lambda x: x.tolist() if isinstance(x, ll.Tensor) else x, result)


def gcd(a, b):
    while b != 0:
        a, b = b, a % b
    return a


def collatz(n):
    steps = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    return steps


def fibonacci(n):
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


def is_prime(n):
    if n < 2:
        return False
    d = 2
    while d * d <= n:
        if n % d == 0:
            return False
        d += 1
    return True


def binary_search(xs, wanted):
    low, high = 0, len(xs) - 1
    while low <= high:
        middle = (low + high) // 2
        if xs[middle] == wanted:
            return middle
        elif xs[middle] < wanted:
            low = middle + 1
        else:
            high = middle - 1
    return -1


def newton(x):
    guess = x
    while ll.abs(guess * guess - x) > 1e-4 * x:
        guess = (guess + x / guess) / 2
    return guess


def bubble_sort(y):
    for i in range(len(y)):
        for j in range(len(y) - 1 - i):
            if y[j] > y[j + 1]:
                y = y.at[j].set(y[j + 1]).at[j + 1].set(y[j])
    return y


def sorted_three(x):
    y = [x, x * -1, 2]
    for _ in range(2):
        for j in range(2):
            if y[j] > y[j + 1]:
                y[j], y[j + 1] = y[j + 1], y[j]
    return y


def power(x, n):
    result = x * 0 + 1
    while n > 0:
        if n % 2 == 1:
            result = result * x
        x, n = x * x, n // 2
    return result


def integer_root(n):
    i = 0
    while (i + 1) * (i + 1) <= n and i < 100:
        i += 1
    return i


def digits(n):
    total = count = 0
    while True:
        total += n % 10
        count += 1
        n = n // 10
        if n == 0:
            break
    return total, count


def first_negative(xs):
    for i, x in enumerate(xs):
        if x < 0:
            return i
    return -1


def largest(xs):
    best, where = xs[0], 0
    for i, x in enumerate(xs):
        if x > best:
            best, where = x, i
    return best, where


def two_largest(xs):
    best = {"first": -100, "second": -100}
    for x in xs:
        if x > best["first"]:
            best["second"] = best["first"]
            best["first"] = x
        elif x > best["second"]:
            best["second"] = x
    return best


def odd_sum(xs):
    total = 0
    for x in xs:
        if x % 2 == 0:
            continue
        total += x
    return total


def histogram(xs):
    counts = {"low": 0, "middle": 0, "high": 0}
    for x in xs:
        if x < 0:
            counts["low"] += 1
        elif x < 3:
            counts["middle"] += 1
        else:
            counts["high"] += 1
    return counts


def dot(xs, ys):
    total = 0
    for x, y in zip(xs, ys):  # noqa: B905
        total = total + x * y
    return total


def running_sums(xs):
    sums = ll.TensorArray(xs.dtype, len(xs))
    total = 0
    for i, x in enumerate(xs):
        total = total + x
        sums = sums.write(i, total)
    return sums.stack()


def polynomial(x):
    result = 0.0
    for c in [1.0, -2.0, 3.0]:
        result = result * x + c
    return result


def leaky(x):
    return x if x > 0 else 0.1 * x


def piecewise(x):
    if x < -1:
        y = -x
    elif x < 0:
        y = x * x
    else:
        if x > 1:
            y = 2 * x
        else:
            y = x + 1
    return y


def clipped(x, low=-1.0, high=1.0):
    return max(low, min(x, high)) + 0 * x


def simpson(x):
    def f(t):
        if t < 1:
            return t * t
        return 2 * t - 1

    h, total = x / 4, 0.0
    for k in range(4):
        a, b = k * h, (k + 1) * h
        total = total + (f(a) + 4 * f((a + b) / 2) + f(b)) * h / 6
    return total


def descent(x):
    steps = 0
    while steps < 50:
        slope = 2 * (x - 3)
        if ll.abs(slope) < 1e-3:
            break
        x = x - 0.25 * slope
        steps += 1
    return x


def rnn(x):
    h, outputs = ll.zeros((2,)), ll.TensorArray(ll.float32, 3)
    for t in range(3):
        h = ll.tanh(0.5 * h + x * (t + 1))
        if ll.sum(h) > 1.5:
            h = h * 0.5
        outputs = outputs.write(t, h)
    return ll.sum(outputs.stack())


def interest(x):
    balance, years = x, 0
    while balance < 2 * x and years < 100:
        balance, years = balance * 1.07, years + 1
    return balance


def exponential(x):
    term, total, k = 1.0, 1.0, 1.0
    while ll.abs(term) > 1e-6:
        term = term * x / k
        total, k = total + term, k + 1
    return total


def mean_of_positive(x):
    total, count = 0.0, 0.0
    for v in [x, -x, 2 * x]:
        if v > 0:
            total, count = total + v, count + 1
    return total / count if count > 0 else 0.0 * x


def compose(x):
    functions = [lambda v: v * 2, lambda v: v + 1 if v > 3 else v - 1, leaky]
    for f in functions:
        x = f(x)
    return x


def by_comprehension(x):
    parts = [v * x if v > 1 else v - x for v in (1.0, 2.0, 3.0)]
    table = {k: p for k, p in enumerate(parts)}  # noqa: C416
    return sum(parts) + table[2]


def counted(function):
    @functools.wraps(function)
    def wrapper(x):
        return function(x) if x > -10 else x

    return wrapper


@counted
def decorated(x):
    return x * 3 if x > 1 else x


class Account:
    rate = 0.5

    def __init__(self, limit):
        self.limit = limit

    def fee(self, amount):
        if amount > self.limit:
            return self.rate * amount
        return 0 * amount

    @staticmethod
    def twice(x):
        return 2 * x if x > 0 else x

    def __call__(self, amount):
        return self.twice(amount) - self.fee(amount)


def with_a_class(x):
    return Account(2.0)(x)


def recursion(x, depth=3):
    if depth == 0:
        return x
    return recursion(x * 2 if x < 5 else x - 1, depth - 1)


def with_finally(x):
    scale = 1.0
    try:
        if x > 1:
            scale = 2.0
    finally:
        x = x * 3
    return x * scale


def with_assert(x):
    assert x > -100, "far too small"
    return x * x


def beam(x):
    scores = [0.0 * x, -1.0 + 0.0 * x]
    for step in ll.constant([0.3, -0.2, 0.9]):
        candidates = [scores[0] + step * x, scores[0] - step, scores[1] + 2 * step]
        first, second = candidates[0], candidates[1]
        for c in candidates[1:]:
            if c > first:
                first, second = c, first
            elif c > second:
                second = c
        scores[0], scores[1] = first, second
    return scores[0] + 0.5 * scores[1]


def last_large(xs):
    for x in xs:
        if x > 1:
            last = x
    return last


def pairs(n):
    for i in range(n):
        for j in range(i):
            product = i * j
    return product


def rows_of_pascal(n):
    row = [1, 0, 0, 0]
    for _ in range(n):
        for k in (3, 2, 1):
            row[k] = row[k] + row[k - 1]
    return row


def swapped_matrix(n):
    m = [[0, 1], [2, 3]]
    for _ in range(n):
        m[0][0], m[0][1], m[1][0], m[1][1] = m[1][0], m[0][0], m[1][1], m[0][1]
    return m


def grades(x):
    if x > 8:
        grade, passed = 1, True
    elif x > 4:
        grade, passed = 2, True
    else:
        grade, passed = 5, False
    return grade if passed and not x > 9 else 0


def all_and_any(xs):
    return all(x > -5 for x in xs) and not any(x == 4 for x in xs)


def range_with_steps(n):
    total = 0
    for i in range(n, 0, -2):
        for j in reversed(range(i)):
            total = total * 2 % 101 + j
    return total


def days(n):
    year = 1980
    while n > 365:
        if year % 4 == 0:
            if n > 366:
                n, year = n - 366, year + 1
            else:
                break
        else:
            n, year = n - 365, year + 1
    return year, n


XS = ([3, -1, 4, 1, 5], [2, 2, 0, -3, 7])
WHOLE = {
    **dict.fromkeys([collatz, fibonacci, is_prime, integer_root, digits], (1, 2, 7, 12)),
    **dict.fromkeys([rows_of_pascal, swapped_matrix, range_with_steps, sorted_three, grades], (0, 1, 3, 10)),
    days: (10, 366, 1827),
    gcd: ((12, 18), (7, 5), (3, 0)),
    power: ((3, 5), (2, 0)),
    binary_search: (([1, 3, 4, 9, 12], 4), ([1, 3, 4, 9, 12], 5), ([1, 3, 4, 9, 12], 12)),
    dot: (XS,),
    pairs: (2, 3, 5),
    **dict.fromkeys([bubble_sort, first_negative, largest, two_largest, odd_sum, histogram, running_sums], XS),
    **dict.fromkeys([last_large, all_and_any], XS),
}
REAL = [
    *(newton, polynomial, leaky, piecewise, clipped, simpson, descent, rnn, interest, exponential, mean_of_positive),
    *(compose, by_comprehension, decorated, with_a_class, recursion, with_finally, with_assert, beam),
]


def tensors(given):
    return [ll.constant(x) for x in (given if isinstance(given, tuple) else (given,))]


@pytest.mark.parametrize("f", WHOLE, ids=lambda f: f.__name__)
def test_programs_of_whole_numbers(f):
    g = staged(f)
    for given in WHOLE[f]:
        assert values(g(*tensors(given))) == values(f(*tensors(given)))
    assert g.trace_count == 1


@pytest.mark.parametrize("f", REAL, ids=lambda f: f.__name__)
def test_programs_of_real_numbers_and_their_gradients(f):
    g = staged(f)
    for x in (0.5, 2.25, 7.0):
        assert g(ll.constant(x)).item() == pytest.approx(f(ll.constant(x)).item(), rel=1e-5)
        assert ll.grad(g)(ll.constant(x)).item() == pytest.approx(ll.grad(f)(ll.constant(x)).item(), rel=1e-4)


def test_a_global_step_counts_in_a_variable():
    step = ll.Variable(0)

    @staged
    def train(n):
        for _ in range(n):
            if step % 2 == 0:
                step.assign_add(3)
            else:
                step.assign_add(1)
        return step + 0

    def plain(n, k=0):
        for _ in range(n):
            k += 3 if k % 2 == 0 else 1
        return k

    assert train(ll.constant(4)).item() == plain(4)
    assert train(ll.constant(3)).item() == plain(7)


def test_an_assert_fails_when_the_graph_runs():
    g = staged(with_assert)
    with pytest.raises(AssertionError, match="far too small"):
        g(ll.constant(-200.0))
    assert g(ll.constant(2.0)).item() == 4.0


def fizzbuzz(n):
    out = []
    for i in range(n):
        if i % 3 == 0:
            out.append("fizz")
        else:
            out.append(str(i))
    return out


def fizz(n):
    word = ""
    if n % 3 == 0:
        word = "fizz"
    return word


def primes(n):
    found = []
    for i in range(n):
        if is_prime(i):
            found.append(i)
    return found


def evens(n):
    found = []
    for i in range(n):
        found.append(i * 2)
    return found


def best_of(xs):
    best = None
    for x in xs:
        if x > 2:
            best = x
    return best


def root(x):
    return math.sqrt(x)


def words(n):
    names = {"a": 1}
    while n > 0:
        names["b"] = n
        n = n - 1
    return names


def stack_machine(n):
    stack = [1, 2]
    while n > 0:
        stack.pop()
        n = n - 1
    return stack


REFUSED = {
    fizz: r"`word` is 'fizz' in the `if` branch .* and '' in the `else` branch.*choose among tensors, or",
    primes: r"`found` is \[\*\] in the `if` branch and \[\] in the `else` branch \(.*found.append\(i\)\)",
    evens: r"`found = ll.TensorArray\(ll.int32, size\)` bef.*`found = found.write\(i, i \* 2\)` in it.*found.stack\(\)",
    best_of: r"`best` is i32\[\] in .* and None in .*ll.zeros\(\(\), dtype=ll.int32\).*`has_best = True` where it is",
    words: r"`names` is {a: \*} on entry of this `while` loop and {a: \*, b: \*} after one .*make all its parts",
    stack_machine: r"`stack` is \[\*, \*\] on entry of .* and \[\*\] after one iteration \(.*stack.pop\(\)\)",
}


@pytest.mark.parametrize("f", REFUSED, ids=lambda f: f.__name__)
def test_refused_with_what_to_write(f):
    given = ll.constant([1, 3]) if f is best_of else ll.constant(3)
    with pytest.raises(ControlFlowError, match=REFUSED[f]):
        staged(f)(given)


@pytest.mark.parametrize("f", [fizzbuzz, root], ids=lambda f: f.__name__)
def test_python_that_needs_a_value_is_refused(f):
    with pytest.raises(ll.errors.LimelightError):
        staged(f)(ll.constant(3.0) if f is root else ll.constant(3))
