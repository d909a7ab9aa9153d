"""Objects that a staged function reads as a whole are told of when they, or what they hold, have changed."""

from types import SimpleNamespace

import pytest

import limelight as ll


class Config:
    def __init__(self):
        self.rate, self.sizes = 1.0, [1]
        self.columns = {"a": ll.ones(2)}

    def __getitem__(self, key):
        return self.columns[key]


def rate_of(config):
    return config.rate


WHOLE = {
    "vars": (lambda c: vars(c)["rate"], lambda c: setattr(c, "rate", 2.0)),
    "helper": (rate_of, lambda c: setattr(c, "rate", 2.0)),
    "list": (lambda c: len(c.sizes), lambda c: c.sizes.append(2)),
    "__getitem__": (lambda c: c["a"], lambda c: c.columns.update(a=ll.zeros(2))),
}


@pytest.mark.parametrize(("read", "change"), WHOLE.values(), ids=WHOLE)
@pytest.mark.parametrize("kind", [Config, SimpleNamespace])
def test_an_object_that_holds_something_else_is_out_of_date(read, change, kind):
    cfg = Config() if kind is Config or read is WHOLE["__getitem__"][0] else SimpleNamespace(**vars(Config()))

    @ll.function
    def step(x):
        return x * read(cfg)

    step(ll.ones(2))
    assert not ll.explain.baked(step).changed
    change(cfg)
    (told,) = ll.explain.baked(step).changed
    assert told.name == "cfg"
    assert told.then != told.now
    assert "step.clear_cache()" in told.fix
    step.clear_cache()
    step(ll.ones(2))
    assert not ll.explain.baked(step).changed


def test_another_optimiser_under_the_name_is_told():
    opt, other, w = ll.optim.SGD(0.1), ll.optim.SGD(0.5), ll.Variable([1.0])

    @ll.function
    def step():
        opt.apply([ll.ones(1)], [w])

    step()
    assert not ll.explain.baked(step).changed
    opt = other
    (told,) = ll.explain.baked(step).changed
    assert (told.name, told.then, told.now) == ("opt", "a SGD", "another SGD")


def test_a_called_object_that_counts_its_calls_is_not_out_of_date():
    class Net:
        def __init__(self):
            self.calls, self.log = 0, []

        def __call__(self, x):
            return x * 2.0

    net = Net()

    @ll.function
    def step(x):
        return net(x)

    step(ll.ones(2))
    net.calls += 1
    net.log.append(1)
    assert not ll.explain.baked(step).changed


class _OwnNet(ll.Module):
    def __init__(self):
        self._rate = 2.0
        self.inner = ll.nn.Sequential(ll.nn.Dense(2))

    def call(self, x):
        return self.inner(x) * self._rate


@pytest.mark.parametrize("made", [lambda: ll.nn.Sequential(ll.nn.Dense(4), ll.nn.Dense(2)), _OwnNet])
def test_what_a_module_notes_of_its_own_calls_is_no_value_of_the_users(made):
    net, x = made(), ll.ones((1, 3))
    net(x)
    values = [v * 2.0 for v in net.variables]
    f = ll.function(lambda x: ll.functional_call(net, values, x))
    f(x)
    net.build((None, 3))
    found = ll.explain.baked(f)
    assert not found.changed
    assert "_called" not in str(found)
    assert "_built_on" not in str(found)
    if made is _OwnNet:
        net._rate = 3.0
        assert {one.name for one in ll.explain.baked(f).changed} == {"self._rate"}


class Scaled(ll.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale, self.shift = 2.0, 1.0

    def __call__(self, x):
        return x * self.scale + vars(self)["shift"]


def test_an_attribute_is_told_by_its_own_name_or_with_its_object_not_twice():
    net = Scaled()

    def loss(model, x):
        return ll.sum(model(x))

    @ll.function
    def step(x):
        return loss(net, x)

    step(ll.ones(2))
    net.scale = 3.0
    (told,) = ll.explain.baked(step).changed
    assert (told.name, told.then, told.now) == ("self.scale", "2.0", "3.0")
    net.shift = 2.0  # which no chain of names leads to
    assert [told.name for told in ll.explain.baked(step).changed] == ["net", "self.scale"]
