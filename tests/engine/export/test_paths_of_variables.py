"""Every variable of a module is where it was when the module is loaded, whatever its keys and attributes are called."""

import numpy as np
import pytest

import limelight as ll
from limelight.errors import CheckpointError, ExportError


class Net(ll.Module):
    def __init__(self, **attributes):
        vars(self).update(attributes)

    def call(self, x):
        for variable in self.variables:
            x = x * variable
        return x


class _Setting:
    pass


_SETTING = _Setting()


def _v(value):
    return ll.Variable(float(value))


def _again(module, folder):
    return ll.load(ll.save(module, folder / "m.ll", ll.TensorSpec((None,))))


TREES = [
    {"d": {"a": 2.0, "a/b": 3.0}},
    {"d": {"a/b": 2.0, "a": 3.0}},
    {"d": {1: 2.0, "1": 3.0}},
    {"d": {0: 2.0, 1: 3.0}},
    {"d": {"0": 2.0, "1": 3.0}},
    {"d": {-1: 2.0, "~1": 3.0, "~2": 5.0, "~": 7.0}},
    {"d": {"variables": 2.0, "call": 3.0, "functions": 5.0}},
    {"d": {"": 2.0, "__metadata__": 3.0, "\ud800": 5.0}},
    {"functions": [2.0], "w": 3.0},
    {"functions": 2.0},
    {"x/y": 2.0, "x": [{"y": 3.0}, {"y": [5.0]}]},
    {"d": {"<functions>": 2.0, "variables": 3.0}},
    {"variables": 3.0, "layers": 2.0},
]


@pytest.mark.parametrize("tree", TREES, ids=str)
def test_the_tree_is_the_same(tree, tmp_path):
    def made(x):
        if isinstance(x, dict):
            return {key: made(item) for key, item in x.items()}
        return [made(item) for item in x] if isinstance(x, list) else _v(x)

    def values(x):
        if isinstance(x, dict):
            return {key: values(item) for key, item in x.items()}
        return [values(item) for item in x] if isinstance(x, list) else x.item()

    loaded = _again(Net(**made(tree)), tmp_path)
    assert {name: values(vars(loaded)[name]) for name in tree} == tree
    assert loaded(ll.ones(1)).item() == np.prod([v.item() for v in loaded.variables])
    assert {name: values(vars(_again(loaded, tmp_path))[name]) for name in tree} == tree


def test_keys_that_are_alike_as_text_are_refused(tmp_path):
    with pytest.raises(ExportError, match=r"two variables would be at 'd/2\.5'"):
        _again(Net(d={2.5: _v(1), "2.5": _v(2)}), tmp_path)
    with pytest.raises(ExportError, match="two variables would be at"):
        _again(Net(d={2.5: _v(1), "2.5": [_v(2)]}), tmp_path)
    assert _again(Net(d={2.5: _v(1)}), tmp_path).d["2.5"].item() == 1.0


def test_the_name_of_what_holds_the_functions_is_refused(tmp_path):
    with pytest.raises(ExportError, match="attribute '<functions>' cannot be saved"):
        _again(Net(**{"<functions>": _v(1)}), tmp_path)


def test_a_list_in_which_some_have_no_variables_keeps_the_places(tmp_path):
    assert list(_again(Net(layers=[ll.nn.Flatten(), _v(2)]), tmp_path).layers) == [1]


def test_a_dictionary_of_one_function_is_a_dictionary(tmp_path):
    f = ll.function(lambda x: x + 1)
    f(ll.ones(2))
    loaded = ll.load(ll.save({"call": f}, tmp_path / "f.ll"))
    assert loaded["call"](ll.ones(2)).tolist() == [2.0, 2.0]


class TestDefaults:
    @pytest.mark.parametrize("default", [np.full(3, 5.0, np.float32), ll.constant([5.0, 5.0, 5.0])], ids=["np", "ll"])
    def test_an_array_is_kept(self, default, tmp_path):
        def f(x, scale=2.0, w=default):
            return x * scale * w

        spec = ll.TensorSpec((None, 3))
        loaded = ll.load(ll.save(f, tmp_path / "f.ll", spec))
        assert loaded(ll.ones((1, 3))).tolist() == [[10.0, 10.0, 10.0]]

    def test_one_that_cannot_be_kept_before_one_that_can_is_refused(self, tmp_path):
        def f(x, how=_SETTING, n=3):
            return x * n

        with pytest.raises(ExportError, match=r"cannot hold the default of `how`, a _Setting, and `n` comes behind it"):
            ll.save(f, tmp_path / "f.ll", (ll.TensorSpec((2,)), None))
        assert list(tmp_path.iterdir()) == []


def test_save_weights_refuses_a_name_that_occurs_twice(tmp_path):
    net = Net(d={"a": {"b": _v(1)}, "a.b": _v(2)})
    with pytest.raises(CheckpointError, match=r"two variables are called d\.a\.b"):
        ll.nn.save_weights(net, tmp_path / "w.safetensors")
    assert list(tmp_path.iterdir()) == []
