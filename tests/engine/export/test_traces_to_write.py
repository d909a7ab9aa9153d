"""Which trace goes into a file, and into which file: the same for `ll.save` and for all exporters."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

import limelight as ll
from limelight.errors import ExportError
from limelight.export.traces_to_write import argument_specs, single_trace, traces_by_name

spec = ll.TensorSpec
EXPORTERS = [ll.save]
if importlib.util.find_spec("onnx") and importlib.util.find_spec("onnxruntime"):
    EXPORTERS.append(ll.export.onnx)
if importlib.util.find_spec("jax") and importlib.util.find_spec("flatbuffers"):
    EXPORTERS.append(ll.export.stablehlo)
every_exporter = pytest.mark.parametrize("export", EXPORTERS, ids=lambda export: export.__name__)


@every_exporter
@pytest.mark.parametrize("signature", [ll.constant([1.0, 2.0]), np.ones(2, np.float32), spec((2,))])
def test_a_signature_may_be_a_tensor(export, signature, tmp_path):
    assert export(lambda x: x + 1.0, tmp_path / "f", signature).exists()


@every_exporter
def test_a_function_without_arguments_needs_no_signature(export, tmp_path):
    assert export(lambda: ll.ones(3) * 2.0, tmp_path / "f").exists()


@every_exporter
def test_messages_name_the_function_that_was_called(export, tmp_path):
    name = "ll.save" if export is ll.save else f"ll.export.{export.__name__}"
    for target, words in ((lambda x: x, f"has no trace to save: call it once, or give {name}"), (3, f"{name} takes")):
        with pytest.raises(ExportError, match=words):
            export(target, tmp_path / "f")
    assert list(tmp_path.iterdir()) == []


@every_exporter
@pytest.mark.parametrize(("path", "words"), [("a\0b", "no null characters"), (5, "takes a path"), (".", "is a folder")])
def test_a_path_that_is_none_is_refused_before_anything_is_traced(export, path, words):
    def f(x):
        raise AssertionError("traced")

    with pytest.raises(ExportError, match=words):
        export(f, path, spec((3,)))


def test_a_variable_as_an_argument_is_refused_by_name():
    trace = ll.function(lambda w: w + 1.0).get_concrete_function(ll.Variable([1.0]))
    with pytest.raises(ExportError, match="its argument `w` is a variable"):
        argument_specs(trace)


class Net(ll.Module):
    @ll.function
    def call(self, x):
        return x * 2.0

    @ll.function
    def encode(self, x):
        return x


def test_a_file_of_one_trace_says_nothing_of_methods_that_were_never_called(recwarn):
    net = Net()
    net(ll.ones(3))
    assert single_trace(net, (), "ll.export.onnx").graph.outputs
    assert not recwarn.list
    with pytest.warns(UserWarning, match="ll.save leaves out `encode`"):
        assert list(traces_by_name(net, ())) == ["call"]


@every_exporter
@pytest.mark.parametrize("signature", [(None, 4), ((None, 4),)], ids=str)
def test_a_shape_stands_for_a_modules_argument_as_in_build(export, signature, tmp_path):
    net = ll.nn.Sequential(ll.nn.Dense(3))
    net.build((None, 4))
    assert export(net, tmp_path / "f", signature).exists()


def test_a_saved_module_may_have_traces_for_training(tmp_path):
    net = ll.nn.Sequential(ll.nn.Dropout(0.5))
    loaded = ll.load(ll.save(net, tmp_path / "f", [(None, 64), ((None, 64), True)]))
    x = ll.ones((2, 64))
    assert ll.all(loaded(x) == x).item()
    assert set(loaded(x, True).numpy().flat) == {0.0, 2.0}


def test_sizes_beside_a_spec_stay_sizes():
    class Scaled(ll.Module):
        def call(self, x, p):
            return x * p[0] + p[1]

    (trace,) = traces_by_name(Scaled(), [(spec((1, 2)), (3, 2))])["call"]
    assert trace(ll.ones((1, 2)), (3, 2)).tolist() == [[5.0, 5.0]]
