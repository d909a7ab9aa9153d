"""A grammar of the statements that people write in cells: over tensors, variables, containers, classes, randomness."""

from __future__ import annotations

from hypothesis import strategies as st

SETUP = """\
import collections, contextlib, dataclasses, enum, functools, itertools, math, random, time
from collections import Counter, OrderedDict, defaultdict, deque
from types import SimpleNamespace
random.seed(0)
class Box:
    made = 0
    def __init__(self):
        self.t, self.n, self.kept = ll.ones(2), 1, []
    def keep(self, x):
        self.kept.append(x)
        return x * 2.0
    @property
    def twice(self):
        return self.t * 2.0
    def bump(self):
        self.n += 1
        return self
class Noting:
    def __init__(self):
        self.log, self.depth = [], 0
    def __enter__(self):
        self.depth += 1
        return self
    def __exit__(self, *error):
        self.depth -= 1
        self.log.append(self.depth)
        return error[0] is KeyError
class Gauge:
    def __init__(self):
        self.total, self.n = ll.zeros(2), 0
    def add(self, x):
        self.total, self.n = self.total + x * scale, self.n + 1
        return self
@dataclasses.dataclass
class Config:
    rate: float = 0.1
    t: object = None
    steps: int = 2
    history: list = dataclasses.field(default_factory=list)
class Mode(enum.Enum):
    TRAIN = 1
    TEST = 2
def helper(x, k=2.0):
    return ll.tanh(x) * k + scale
def noisy(x):
    return x + 0.1 * ll.random.normal((2,))
def counted(x):
    global calls
    calls += 1
    return x * 0.5
def keeping(x, into=[]):
    into.append(len(into))
    return x + float(len(into))
def batches():
    for x in xs[:2]:
        yield x * 2.0
def cached(key, x):
    if key not in cache:
        cache[key] = x * 2.0
    return cache[key]
def counter():
    count = 0
    def step(x):
        nonlocal count
        count += 1
        return x * float(count)
    return step
@ll.function
def inner(x, y):
    return x * y + ll.sin(x)
step = counter()
scale, n, flag, word, calls = 0.5, 2, True, "ab", 0
a, b = ll.constant([1.0, -2.0]), ll.constant([0.5, 3.0])
v, u = ll.Variable([1.0, 2.0]), ll.Variable([0.1, 0.2])
xs, ys = [a, b], [ll.zeros(2)]
alias = xs
d = {"p": a, "q": b * 0.5, "m": 1}
groups, window, names = defaultdict(list), deque([ll.zeros(2)], maxlen=3), {"x"}
tally, order, cache, ns = Counter("aab"), OrderedDict(p=a, q=1), {}, SimpleNamespace(t=b, k=1)
history = {"loss": [], "n": []}
box, noting, cfg, mode = Box(), Noting(), Config(t=ll.ones(2)), Mode.TRAIN
gauges, hooks = {"a": Gauge(), "b": Gauge()}, [lambda x: x * scale, box.keep, functools.partial(helper, k=n)]
actions = {"grow": lambda x: x * (n + 1.0), "deep": [(1, lambda x: counted(x) - scale)]}
arr, ints, grid = np.array([1.0, 2.0], "float32"), np.array([3, 1, 2]), np.zeros((2, 2), "float32")
opt = ll.optim.SGD(0.1)
net, lazy = ll.nn.Dense(2), ll.nn.Dense(2, kernel_initializer="ones")
built = net(ll.ones((1, 2)))
best = math.inf"""

CHANGES = st.sampled_from(
    [
        "n = n % 3 + 1",
        "flag = not flag",
        "a = a * 0.5 + 1.0",
        "xs.append(b)",
        "d['q'] = ll.ones(2)",
        "box.t = box.t + 1.0",
        "scale = scale + 0.25",
        "v.assign([3.0, -1.0])",
        "box = Box()",
        "xs = [b, a]",
        "def helper(x, k=2.0):\n    return x * k - scale",
        "ys = xs",
        "names.add(word + str(n))",
        "box.n += 1",
        "cfg.t = cfg.t * 2.0",
        "cfg = Config(t=a)",
        "cfg.rate = cfg.rate * 0.5",
        "net = ll.nn.Dense(2)\nbuilt = net(ll.ones((1, 2)))",
        "lazy = ll.nn.Dense(2, kernel_initializer='ones')",
        "opt = ll.optim.SGD(0.2)",
        "arr = arr + 1",
        "arr[0] = 5.0",
        "ints[0] = ints[0] % 3 + 1",
        "mode = Mode.TEST",
        "step = counter()",
        "cache.clear()",
        "ns.t = ns.t + 1.0",
        "order['p'] = order['p'] + 1.0",
        "v = ll.Variable([0.5, 0.25])",
        "tally['a'] += 1",
        "Box.made += 1",
        "window.append(a)",
        "ll.random.seed(3)",
        "calls = 0",
        "history = {'loss': [], 'n': []}",
        "counted = noisy",
        "cfg.history = [a]",
        "gauges['b'].total = gauges['b'].total + 1.0",
        "gauges['a'].n = 7",
        "gauges = {'b': Gauge(), 'c': Gauge()}",
        "hooks[0] = lambda x: x - float(n)",
        "hooks.append(noisy)",
        "actions['grow'] = helper",
    ]
)
TESTS = st.sampled_from(
    [
        "flag",
        "n > 1",
        "len(xs) % 2 == 0",
        "'x' in names",
        "xs is alias",
        "word == 'ab'",
        "box.n > 1",
        "cfg.steps > 1",
        "mode is Mode.TRAIN",
        "tally['a'] > 2",
        "calls % 2",
        "len(window) == 3",
        "'z' in d",
        "arr.shape == (2,)",
        "isinstance(box.t, ll.Tensor)",
        "hasattr(box, 'extra')",
    ]
)
ATOMS = st.sampled_from(
    [
        *("a", "b", "v", "u", "xs[0]", "xs[-1]", "ys[-1]", "d['p']", "d['q']", "box.t", "alias[0]", "window[-1]"),
        *("ll.ones(2)", "sum(xs)", "(v * scale)", "ll.random.normal((2,))", "d.get('z', a)", "box.keep(b)"),
        *("cfg.t", "ns.t", "box.twice", "order['p']", "(arr * scale)", "(a + arr)", "counted(a)", "step(b)"),
        *("keeping(a)", "cached('k', a)", "cached(n, b)", "next(batches())", "sum(batches())", "box.bump().t"),
        *("inner(a, b)", "ll.reshape(net(ll.reshape(a, (1, 2))), (2,))", "(a * cfg.rate)", "(b * random.random())"),
        *("ll.constant(np.random.normal(size=2).astype('float32'))", "functools.reduce(lambda p, q: p + q, xs)"),
        *("(a * math.sqrt(n))", "ll.constant(arr)", "(y := a * 2.0)", "max([a, b], key=len) * 0.0"),
        *(
            "getattr(box, 'extra', a)",
            "ll.reshape(lazy(ll.reshape(b, (1, 2))), (2,))",
            "[x * 0.5 for x in xs][-1]",
            "dict(d, r=a)['r']",
            "(xs + ys)[1]",
        ),
    ]
)
TENSORS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from("+-*"), ATOMS),
        st.builds("{}({})".format, st.sampled_from(["helper", "noisy", "ll.tanh", "ll.sin", "ll.abs", "step"]), inner),
        st.builds(
            "({} * {})".format,
            inner,
            st.sampled_from(["n", "len(xs)", "0.5", "scale", "box.n", "len(word)", "cfg.rate", "cfg.steps"]),
        ),
        st.builds("({} if {} else {})".format, inner, TESTS, ATOMS),
    ),
    max_leaves=3,
)
NAMES = st.sampled_from(
    [
        *("a", "b", "c", "box.t", "xs[0]", "xs[-1]", "d['p']", "d['z']", "cfg.t", "ns.t", "ns.new", "order['p']"),
        *("window[-1]", "cache['c']", "box.extra", "groups['one']", "xs[:]", "y, z"),
    ]
)
CHANGING = st.sampled_from(["assign_add", "assign_sub", "assign"])
STEPS = [
    "with ll.GradientTape() as tape:\n    loss = ll.sum(v * v * a)\nv.assign_sub(0.01 * tape.gradient(loss, v))",
    "with ll.GradientTape() as tape:\n    loss = ll.sum(v * v * b)\n"
    "opt.apply(tape.gradient(loss, [v]), [v])\nhistory['loss'].append(loss)",
    "with ll.GradientTape() as tape:\n    loss = ll.mean(net(ll.reshape(a, (1, 2))) ** 2)\n"
    "grads = tape.gradient(loss, net.trainable_variables)\nopt.apply(grads, net.trainable_variables)",
    "loss, g = ll.value_and_grad(lambda t: ll.sum(ll.tanh(t) * scale))(a)\na = a - 0.1 * g",
]
PLAIN = [
    "n = n + 1",
    "n, m = n % 4, n",
    "word = word + 'c'",
    "names.add(word)",
    "d['m'] += 1",
    "box.n += 1",
    "xs[0], xs[-1] = xs[-1], xs[0]",
    "a, b = b, a",
    "alias = list(xs)",
    "ys = xs",
    "kept = box",
    "w = v",
    "xs.reverse()",
    "last = ys.pop() if len(ys) > 1 else None",
    "window.popleft() if len(window) > 1 else None",
    "box = Box()",
    "copied = dict(d)",
    "pair = (a, xs)",
    "label = f'{word}{n}'",
    "gone = d.pop('z', None)",
    "flag = not flag",
    "old = box.kept\nbox.kept = []",
    "xs.insert(0, xs.pop())",
    "xs *= 2\ndel xs[4:]",
    "del xs[2:]",
    "calls += 1",
    "tally[word] += 1",
    "tally.update('abc')",
    "common = tally.most_common(1)",
    "order.move_to_end('p')",
    "window.rotate(1)",
    "window.extend(xs)",
    "window.clear()\nwindow.append(a)",
    "names.discard('x')",
    "names |= {'y', 'z'}",
    "cfg.steps += 1",
    "cfg.rate *= 0.5",
    "cfg = dataclasses.replace(cfg, rate=0.2)",
    "cfg.history.append(n)",
    "fields = dataclasses.asdict(ns) if dataclasses.is_dataclass(ns) else vars(ns)",
    "ns.k -= 1",
    "Box.made += 1",
    "mode = Mode.TEST if mode is Mode.TRAIN else Mode.TRAIN",
    "mode_name = mode.name.lower()",
    "box.bump().bump()",
    "first, *rest = xs",
    "(p, q), r = (a, b), n",
    "del word\nword = 'ab'",
    "groups[n].append(word)",
    "groups[word] += [n]",
    "history['n'].append(n)",
    "history['n'] = history['n'][-2:]",
    "d |= {'m': 3}",
    "d.setdefault('z', b)",
    "keys = sorted(map(str, d))",
    "shape = a.shape",
    "size = len(a)",
    "kind = str(a.dtype)",
    "print('n is', n)",
    "print(f'{n:03d} {word!r} {scale:.2f}')",
    "text = '%s-%d' % (word, n)",
    "best = min(best, n)",
    "it = iter([1, 2, 3])\nfirst = next(it)",
    "total = sum(i * i for i in range(n))",
    "pairs = list(zip(names, [1]))",
    "table = {i: str(i) for i in range(3)}",
    "assert n >= 0, 'n'",
    "import os.path",
    "step = counter()",
    "lucky = random.random() < 2",
    "draw = random.randint(0, 9)",
    "noise = np.random.normal(size=2)",
    "np.random.shuffle(ints)",
    "random.shuffle(xs)",
    "chosen = random.choice([1, 2, 3])",
    "ll.random.seed(n)",
    "rng = np.random.default_rng(n)\nsample = rng.integers(10)",
    "del ys[1:]",
    "setattr(box, 'extra', b)",
    "swap = d['p'], d['q']\nd['q'], d['p'] = swap",
    "both = {**d, 'w': a}",
    "nested = {'a': [a, {'b': b}]}",
    "u = v",
    "v, u = u, v",
    "last = _ if '_' in dir() else None",
    "same = a is xs[0]",
    "contains = any(x is a for x in xs)",
    "order['n'] = n",
    "chain = list(itertools.accumulate([1, 2, n]))",
]
ARRAYS = [
    "arr *= 2",
    "arr[0] = 3.0",
    "arr += 1",
    "ints.sort()",
    "ints[1] += 1",
    "grid[0, 1] = n",
    "grid[1] = arr",
    "arr = arr * 0.5",
    "mean = arr.mean()",
    "mask = ints > 1",
    "grid += np.eye(2, dtype='float32')",
    "picked = ints[0]",
    "arr2 = arr",
    "arr2 = arr.copy()",
    "arr -= arr.mean()",
    "np.add(arr, 1, out=arr)",
    "grid.fill(n)",
    "stats = arr.max(), arr.min()",
    "view = grid[0]",
    "arr = np.append(arr, 1.0)[:2].astype('float32')",
    "ints = np.sort(ints)",
    "z = ll.constant(ints)",
    "arr2 = np.copy(arr) * 2",
    "part = arr[1:] * 2",
    "part = arr[:1]\npart += 1",
    "stacked = np.stack([arr, arr])",
    "joined = np.concatenate([arr, arr * 2])",
    "chosen = np.where(arr > 1, arr, 0)",
    "same = np.array_equal(arr, arr)",
    "text = str(arr)",
    "flat = grid.flatten()",
    "rows = [row.sum() for row in grid]",
    "for row in grid:\n    row += 1",
]
NESTED = [
    "tried = 0\nwhile True:\n    tried += 1\n    if tried > 2:\n        break",
    "def helper(x, k=2.0):\n    return x + k * scale",
    "global_scale = scale\nscale = scale * 0.5",
    "squares = {i: i * i for i in range(4) if i % 2}",
    "evens = [t * 2.0 for k, t in enumerate(xs) if k % 2 == 0]",
    "longest = max(xs, key=len)",
    "lines = [f'{k}={x!r}' for k, x in sorted(tally.items())]\nprint('; '.join(lines))",
    "print('first')\nnames.add('z')\nprint(sorted(names))",
    "try:\n    int(word)\nexcept ValueError as error:\n    kind = type(error).__name__\nelse:\n    kind = None",
    "report = {k: gauge.n for k, gauge in gauges.items()}",
    "if 'c' not in gauges:\n    gauges['c'] = Gauge()",
    "hooks.insert(0, hooks.pop())",
    "made = list(batches())\ndel made[0]",
    "lazy_sum = sum(t for t in xs if t is not None)",
    "class Sized:\n    size = 2\n    def __len__(self):\n        return self.size\nsized = len(Sized())",
    "ns.__dict__['k'] = 5",
    "pairs = sorted(((k, len(x)) for k, x in groups.items()), key=str)",
]
LIBRARY = [
    "other = {1}\nc = ll.cond(ll.sum({0}) > 0.0, lambda: other, lambda: a * 0.5)",
    "c = ll.scan(lambda s, x: (s * 0.5 + x, s), {0}, ll.stack([a, {1}]))[0]",
    "c = ll.while_loop(lambda x: ll.sum(x * x) < 9.0, lambda x: (ll.abs(x) + 1.0,), ({0},))[0]",
    "c = ll.vectorize(lambda x: x * {0})(ll.stack([{1}, b]))",
    "c = ll.map_fn(lambda x: ll.tanh(x), ll.stack([{0}, {1}]))",
    "with ll.GradientTape(persistent=True) as tape:\n    tape.watch(a)\n    y = a * a * {0}\nj = tape.jacobian(y, a)",
    "with ll.GradientTape() as outer_tape:\n    with ll.GradientTape() as tape:\n        y = ll.sum(v ** 3 * {0})\n"
    "    g1 = tape.gradient(y, v)\ng2 = outer_tape.gradient(g1, v)",
    "c = a.at[0].set(ll.sum({0}))\nd['z'] = ll.where(c > 0.0, c, {1})",
    "first, second = ll.unstack(ll.stack([{0}, {1}]))\nd['p'] = first - second",
    "c = ll.stop_gradient({0}) + ll.concat([a[:1], {1}[1:]])",
    "array = ll.TensorArray(ll.float32, 2)\nfor place in range(2):\n    array = array.write(place, {0} * float(place))"
    "\nc = array.stack()",
    "c = ll.recompute_grad(lambda x: ll.tanh(x) * {0})({1})",
    "from copy import copy, deepcopy\ntwo = copy(xs), deepcopy(ys)\ntwo[0].append({0})\ntwo[1][0] = {1}",
    "v.at[0].assign(ll.sum({0}))",
    "box.t, (cfg.t, *ns.many) = {0}, [{1}, a, b]",
    "store = {{'k': {0}}}\nstore['k'] += {1}\nc, = store.values()",
    "class Meter:\n    def __init__(self):\n        self.values, self.n = [], 0\n    def __iadd__(self, x):\n"
    "        self.values.append(x)\n        self.n += 1\n        return self\nmeter = Meter()\nmeter += {0}\n"
    "meter += {1}",
    "def collected(*parts, scale=1.0, **more):\n    return sum(parts) * scale + sum(more.values())\n"
    "c = collected({0}, a, scale=0.5, x={1})",
    "def sender():\n    x = yield a\n    while True:\n        x = yield x * {0}\nline = sender()\nnext(line)\n"
    "c = [line.send(x) for x in (a, {1})]\ndel line",
    "try:\n    try:\n        c = {0}\n        raise ValueError('no')\n    finally:\n        d['z'] = {1}\n"
    "except ValueError as error:\n"
    "    text = str(error)",
    "xs[::2] = [{0}] * len(xs[::2])",
    "xs.sort(key=lambda x: 0)\nxs.extend([{0}, {1}])\ndel xs[3:]",
    "chosen = {{name: x for name, x in d.items() if isinstance(x, ll.Tensor)}}\n"
    "d.update((k, x * {0}) for k, x in chosen.items())",
    "total = ll.zeros(2)\nfor key, value in sorted(d.items()):\n    match value:\n        case int():\n"
    "            continue\n"
    "        case _:\n            total += value * {0}",
    "with contextlib.ExitStack() as stack:\n    stack.enter_context(noting)\n"
    "    stack.callback(history['n'].append, n)\n    c = {0}",
    "averaged = functools.reduce(lambda s, x: s * 0.9 + x * 0.1, xs, {0})",
    "w1, b1 = ll.Variable({0}), ll.Variable(a)\nw1.assign_add(b1 * {1})",
    "rows = [[x, x * {0}] for x in xs[:2]]\nrows[0][1], rows[-1][0] = rows[-1][0], rows[0][1]",
    "box.kept = box.kept[-1:] + [{0}]\nlatest = box.kept[-1]",
    "counts = Counter(len(x.shape) for x in xs)\nd['m'] = counts[1]",
    "for gauge in gauges.values():\n    gauge.add({0})\n    c = gauge.total + {1}",
    "totals = [gauge.add({0}).total for _, gauge in sorted(gauges.items())]\n"
    "c = max(gauges.values(), key=lambda gauge: gauge.n).total * 0.5",
    "c = {0}\nfor hook in hooks:\n    c = hook(c)",
    "c = actions['grow']({0}) + actions['deep'][0][1]({1})",
    "hooks.append(lambda x: x + {0} * scale)\ndel hooks[:-3]",
    "c = ll.cond(ll.sum({0}) > 0.0, lambda: ll.reshape(lazy(ll.reshape(a, (1, 2))), (2,)), "
    "lambda: -ll.reshape(lazy(ll.reshape(b, (1, 2))), (2,)))",
    "c = sum((last := {0}, last * scale)) + {1}",
    "matrix = ll.outer({0}, {1})\na = matrix @ b\ngrid_sum = float(n) * ll.linalg.trace(matrix)",
]
LIBRARY_CALLS = st.builds(lambda text, one, other: text.format(one, other), st.sampled_from(LIBRARY), TENSORS, TENSORS)
SIMPLE = st.one_of(
    LIBRARY_CALLS,
    st.builds("{} = {}".format, NAMES, TENSORS),
    st.builds(
        "{} {} {}".format,
        st.sampled_from(["a", "b", "d['q']", "xs[0]", "box.t", "cfg.t", "order['p']", "ns.t"]),
        st.sampled_from(["+=", "-=", "*=", "/=", "**="]),
        TENSORS,
    ),
    st.builds(
        "{}.append({})".format,
        st.sampled_from(["xs", "ys", "window", "groups['g']", "box.kept", "history['loss']", "cfg.history"]),
        TENSORS,
    ),
    st.builds("{}.{}({})".format, st.sampled_from("vu"), CHANGING, TENSORS),
    st.builds("ys = [{}, {}]".format, TENSORS, TENSORS),
    st.builds("ys += [{}]".format, TENSORS),
    st.builds("xs[{}:] = [{}]".format, st.sampled_from("01"), TENSORS),
    st.builds("d.update(p={})".format, TENSORS),
    st.builds("made = [t + {} for t in xs]".format, TENSORS),
    st.builds("both = [xs.append({}) or i for i in range(2)]".format, TENSORS),
    st.builds("table = {{k: [t, {}] for k, t in d.items() if k != 'm'}}".format, TENSORS),
    st.builds("g = ll.grad(lambda t: ll.sum(t * {}))({})".format, TENSORS, TENSORS),
    st.builds("def own(x, y=2.0):\n    return x * y + {}\ne = own({})".format, TENSORS, TENSORS),
    st.builds(
        "def outer(x):\n    def inside(z):\n        xs.append(z)\n        return z * {}\n    return inside(x) + 1.0\n"
        "e = outer({})".format,
        TENSORS,
        TENSORS,
    ),
    st.builds("def gen():\n    for i in range(2):\n        yield i * {}\nmade = list(gen())".format, TENSORS),
    st.builds(
        "class Own:\n    def __init__(self, t):\n        self.t = t\n    def __call__(self, x):\n"
        "        self.t = self.t + x\n        return self.t\nown_object = Own({})\ne = own_object({})".format,
        TENSORS,
        TENSORS,
    ),
    st.builds("part = functools.partial(helper, k=3.0)\ne = part({})".format, TENSORS),
    st.builds("made_cfg = Config(t={}, steps=n)".format, TENSORS),
    st.builds("@ll.function\ndef fn(x):\n    return x * {}\ne = fn({})".format, TENSORS, TENSORS),
    st.builds("if (y := {}) is not None:\n    c = y + 1.0".format, TENSORS),
    st.builds("first, *rest = [{}, a, b]".format, TENSORS),
    st.builds("made = tuple(map(helper, [{}, a]))".format, TENSORS),
    st.builds("{}".format, TENSORS),
    st.sampled_from(PLAIN),
    st.sampled_from(PLAIN),
    st.sampled_from(ARRAYS),
    st.sampled_from(NESTED),
    st.builds(
        "def running():\n    total = ll.zeros(2)\n    def add(x):\n        nonlocal total\n        total = total + x\n"
        "        return total\n    return add\nadd = running()\nadd({})\ne = add({})".format,
        TENSORS,
        TENSORS,
    ),
    st.builds("made = [t * {} for t in xs if t is not b]".format, TENSORS),
    st.builds(
        "def gen(n):\n    while True:\n        if n > 2:\n            return\n        n += 1\n        yield n * {}\n"
        "last_made = [*gen(0)][-1]".format,
        TENSORS,
    ),
    st.builds("box.extra = {}\ndel box.extra".format, TENSORS),
    st.sampled_from(STEPS),
)  # fmt: skip


def indented(lines: list[str]) -> str:
    """The statements, in a block."""
    return "\n".join("    " + line for text in lines for line in text.splitlines())


BLOCKS = st.lists(SIMPLE, min_size=1, max_size=2).map(indented)
TAPED = "with ll.GradientTape() as tape:\n{}\n    loss = ll.sum(v * v)\ngv = tape.gradient(loss, v)"
STATEMENTS = st.one_of(
    SIMPLE,
    SIMPLE,
    SIMPLE,
    st.builds("if {}:\n{}\nelse:\n{}".format, TESTS, BLOCKS, BLOCKS),
    st.builds(
        "for i in range({}):\n{}".format, st.sampled_from(["2", "n % 3", "cfg.steps % 3", "ints[0]", "1, 3"]), BLOCKS
    ),
    st.builds("for t in list(xs):\n{}".format, BLOCKS),
    st.builds("for k, t in enumerate(batches()):\n{}".format, BLOCKS),
    st.builds("for key in list(d):\n{}\n    if key == 'q':\n        break\nelse:\n    n = 0".format, BLOCKS),
    st.builds("i = 0\nwhile i < 3:\n    i += 1\n    if i == 2:\n        continue\n{}".format, BLOCKS),
    st.builds("try:\n{}\n    d['missing']\nexcept KeyError as error:\n{}".format, BLOCKS, BLOCKS),
    st.builds("try:\n    xs[99]\nexcept IndexError:\n{}\nfinally:\n{}".format, BLOCKS, BLOCKS),
    st.builds("with noting:\n{}".format, BLOCKS),
    st.builds("with noting as entered, contextlib.suppress(KeyError):\n{}\n    d['missing']".format, BLOCKS),
    st.builds(TAPED.format, BLOCKS),
    st.builds("match n:\n  case 1:\n{}\n  case _:\n{}".format, BLOCKS, BLOCKS),
    st.builds("for x, y in zip(xs, {}):\n{}".format, st.sampled_from(["xs[:]", "[*window]", "range(2)"]), BLOCKS),
)  # fmt: skip
CELLS = st.lists(STATEMENTS, min_size=1, max_size=4).map(lambda lines: "%%stage\n" + "\n".join(lines))
ORDERS = st.lists(st.sampled_from([2, 2, 2, 3, 3, 4]), min_size=2, max_size=6).map(lambda order: (1, 2, 2, *order))
