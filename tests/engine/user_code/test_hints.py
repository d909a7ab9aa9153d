"""Names that other libraries have, or that are misspelt: the error says what to write."""

from __future__ import annotations

import builtins
import functools
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import limelight as ll
from limelight.errors import ArgumentError
from limelight.user_code import equivalents, hints, tracebacks

x = ll.ones((3, 4))
loose: Any = ll  # the mistakes are no news to type checkers
FOUND = {
    "relu": "ll.nn.relu", "concatenate": "ll.concat", "power": "ll.pow", "embedding": "ll.nn.embedding",
    "zerros": "ll.zeros", "softmaxx": "ll.nn.softmax", "Adam": "ll.optim.Adam", "reduce_sum": "ll.sum",
    "tahn": "ll.tanh", "sinn": "ll.sin", "men": "ll.mean",
}  # fmt: skip


@pytest.mark.parametrize("name", FOUND)
def test_missing_names_are_suggested(name: str) -> None:
    with pytest.raises(AttributeError, match=f"no attribute '{name}'; write {FOUND[name]}$"):
        getattr(ll, name)


@pytest.mark.parametrize("name", ["nothing_like_it", "__wrapped__", "feed", "sess"])
def test_nothing_is_suggested_where_nothing_is_near(name: str) -> None:
    with pytest.raises(AttributeError, match=f"no attribute '{name}'$"):
        getattr(ll, name)


def test_a_name_of_a_training_loop_leads_to_one() -> None:
    with pytest.raises(AttributeError, match=r"write the loop: .*tape\.gradient"):
        _ = loose.fit


def resolved(path: str) -> Any:
    return functools.reduce(getattr, path.split("."), loose)


def written(words: str) -> list[str]:
    """The names of limelight's that some words tell to write."""
    return [path.rstrip(".") for path in re.findall(r"\bll\.([a-zA-Z_][\w.]*)", words)]


LIBRARIES = dict(
    line.split(": ", 1) for line in (Path(__file__).parent / "library_names.txt").read_text().splitlines()[1:]
)
OBJECTS = ("ndarray", "Array", "Tensor", "Module", "Optimizer", "Variable", "Model", "Layer")
NAMES = sorted(
    {name for home, names in LIBRARIES.items() if home.split(".")[-1] not in OBJECTS for name in names.split()}
)


@pytest.mark.slow
def test_every_public_name_of_other_libraries_leads_to_what_exists_or_to_nothing() -> None:
    for name in NAMES:
        if name not in dir(ll):
            for path in written(hints.suggested(name)):
                assert resolved(path) is not None, f"{name}: {path}"


@pytest.mark.slow
def test_no_name_of_another_library_is_taken_for_a_misspelt_one_of_ours() -> None:
    same = {"named_scope", "sgn", "fft2d", "ifft2d", "ifftnd", "rfftnd"}
    public = {_bare(name) for names in hints.public_names().values() for name in names}
    for name in NAMES:
        if name not in same and _bare(name) not in public and name not in equivalents.functions():
            assert not hints.suggested(name), f"{name}: {hints.suggested(name)}; give it a line in equivalents.txt"


def _bare(name: str) -> str:
    return name.replace("_", "").lower()


def test_what_is_suggested_exists_and_what_it_stands_for_does_not() -> None:
    for name, entry in equivalents.functions().items():
        assert not entry or name not in dir(ll), f"ll.{name} exists: its line in equivalents.txt is dead"
        for path in (*([entry.ours] if entry.ours else []), *written(entry.remark)):
            assert resolved(path) is not None
    model, optimizer = ll.nn.Dense(2), ll.optim.Adam()
    for names, thing in (
        (equivalents.of_tensors(), x),
        (equivalents.of_modules(), model),
        (equivalents.of_optimizers(), optimizer),
        (equivalents.of_datasets(), ll.data.from_sequence([1])),
        (equivalents.of_generators(), ll.random.Generator(1)),
        (equivalents.of_places(), x.at[0]),
        (equivalents.of_staged_functions(), ll.function(abs)),
    ):
        for name, hint in names.items():
            assert not hasattr(thing, name), f"{name} exists: its line in equivalents.txt is dead"
            for path in written(hint):
                assert resolved(path) is not None
            for method in re.findall(r"\bx\.([a-zA-Z_]\w*)", hint):
                assert hasattr(x, method)


def test_settings_and_keywords_that_are_suggested_exist() -> None:
    classes = [getattr(ll.nn, name) for name in dir(ll.nn) if isinstance(getattr(ll.nn, name), type)]
    classes += [getattr(ll.optim, name) for name in dir(ll.optim) if isinstance(getattr(ll.optim, name), type)]
    taken = {parameter for kind in classes for parameter in inspect.signature(kind).parameters}
    settings = {**equivalents.layer_settings(), **equivalents.optimizer_settings()}.values()
    assert {ours for entry in settings for ours in entry.ours.split()} <= taken
    public = [
        resolved(path)
        for home, names in hints.public_names().items()
        for path in ([f"{home}.{n}" if home else n for n in names])
    ]
    functions = [value for value in public if inspect.isfunction(value) or inspect.ismethod(value)]
    functions += [value.call for value in public if isinstance(value, type) and issubclass(value, ll.Module)]
    functions += [ll.CheckpointManager, ll.data.Dataset.shuffle]
    functions += [getattr(ll.optim.schedules, name) for name in ll.optim.schedules.__all__]
    known = {parameter for function in functions for parameter in inspect.signature(function).parameters}
    assert {ours for entry in equivalents.keywords().values() for ours in entry.ours.split()} <= known


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("bitwise_not", "write ll.bitwise_invert$"),
        ("py_function", "write ll.py_func$"), ("is_tensor", r"isinstance\(x, ll.Tensor\)"), ("jacrev", "ll.jacobian$"),
        ("jacfwd", "mode=.forward"), ("remat", "ll.recompute_grad"), ("BatchNormalization", "ll.nn.BatchNorm$"),
        ("CrossEntropyLoss", "ll.nn.softmax_cross_entropy"), ("MSELoss", "ll.nn.mean_squared_error$"),
        ("sigmoid_cross_entropy_with_logits", "ll.nn.sigmoid_cross_entropy"),
        ("train", "tf.train.Checkpoint is ll.Checkpoint"),
        ("DataLoader", "write ll.data.from_arrays"), ("loss", "no attribute 'loss': there is none here$"),
        ("image", "there is no such namespace: ll.nn.resize"),
    ],
)  # fmt: skip
def test_names_that_look_like_others_lead_to_what_does_their_job(name: str, words: str) -> None:
    with pytest.raises(AttributeError, match=words):
        getattr(ll, name)


def test_parts_know_names_of_all_namespaces() -> None:
    expected = {
        "nn.sum": "ll.sum", "nn.ReLU": "ll.nn.relu", "linalg.diag": "ll.diag", "nn.functional.cross_entropy":
        "ll.nn.softmax_cross_entropy", "fft.rfft2": "ll.fft.rfftn", "nn.initializers.xavier_uniform":
        "ll.nn.initializers.glorot_uniform", "optim.schedules.CosineDecay": "ll.optim.schedules.Cosine",
        "random.sqrt": "ll.sqrt", "nn.Dens": "ll.nn.Dense",
    }  # fmt: skip
    for path, instead in expected.items():
        with pytest.raises(AttributeError, match=f"; write {instead}"):
            resolved(path)


@given(st.text("abcd", max_size=6), st.text("abcd", max_size=6))
def test_edit_distances_are_symmetric_and_count_each_letter(a: str, b: str) -> None:
    distance = hints.edit_distance(a, b)
    assert distance == hints.edit_distance(b, a)
    assert (distance == 0) == (a == b)
    assert abs(len(a) - len(b)) <= distance <= max(len(a), len(b))
    assert hints.edit_distance(a + "ab" + b, a + "ba" + b) == 1


def test_dir_has_public_names_only() -> None:
    assert {"nn", "linalg", "widgets", "sum", "Tensor", "config"} <= set(dir(ll))
    below = {"nn.initializers", "nn.layers", "nn.functional", "optim.schedules"}
    parts = {name for name in dir(ll) if inspect.ismodule(getattr(ll, name)) and name != "widgets"}
    for path in ("", *parts, *below):
        namespace = resolved(path) if path else ll
        for name in dir(namespace):
            value = getattr(namespace, name)
            home = getattr(value, "__module__", None) or ""
            assert name[0] != "_" or path == ""
            assert not inspect.ismodule(value) or path == "" or f"{path}.{name}" in below
            assert name not in ("Any", "TYPE_CHECKING", "annotations", "np", "hints", "TensorLike", "DTypeLike")
            assert not isinstance(value, type) or home.startswith("limelight") or isinstance(value, type(ll.float32))


def test_dir_of_tensors_has_public_names_only() -> None:
    symbolic: list[str] = []
    ll.function(lambda t: symbolic.extend(dir(t)))(x)
    for names in (dir(ll.Tensor), dir(x), symbolic):
        assert {"reshape", "sum", "T", "shape", "__add__"} <= set(names)
        assert not [name for name in names if name[0] == "_" and name[:2] != "__"]
        assert not set(names) & set(equivalents.of_tensors())


def test_a_star_import_shadows_nothing_of_python() -> None:
    scope: dict[str, Any] = {}
    exec("from limelight import *", scope)
    assert {"zeros", "function", "Variable", "nn"} <= set(scope)
    assert not [name for name in scope if hasattr(builtins, name) and name != "__builtins__"]
    assert "importlib" not in scope


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: x.backward(), r"GradientTape.*tape\.gradient\(loss, x\)"),
        (lambda x: x.grad, r"g = tape\.gradient"),
        (lambda x: x.detach(), r"write ll\.stop_gradient\(x\)"),
        (lambda x: x.requires_grad, r"tape\.watch\(x\)"),
    ],
)
@pytest.mark.parametrize("kind", [lambda: x, lambda: ll.Variable(1.0)], ids=["tensor", "variable"])
def test_attributes_of_other_tensors(call: Callable[[Any], Any], words: str, kind: Callable[[], Any]) -> None:
    with pytest.raises(AttributeError, match=words):
        call(kind())
    with pytest.raises(AttributeError, match=words):
        ll.function(call)(kind())


def test_tensors_still_take_attributes_and_lack_others() -> None:
    t = ll.ones(2)
    t.note = "mine"  # type: ignore[attr-defined]  # users may attach what they like
    assert t.note == "mine"
    assert not hasattr(t, "nothing")
    assert "backward" not in dir(t)
    t.grad = 1.0  # type: ignore[attr-defined]  # a name of other libraries, too
    assert t.grad == 1.0


def test_two_axes_are_one_argument() -> None:
    with pytest.raises(ArgumentError, match=r"write x\.transpose\(\(1, 0\)\)"):
        x.transpose(1, 0)  # the mistake


def test_modules_name_what_they_have_and_let_properties_fail_by_themselves() -> None:
    class Net(ll.nn.Dense):
        @property
        def broken(self) -> Any:
            return x.nothing

    net = Net(2)
    with pytest.raises(
        AttributeError, match=r"'Net' object has no attribute 'parameters': write module\.trainable_var"
    ):
        net.parameters()  # type: ignore[attr-defined]  # the mistake
    with pytest.raises(AttributeError, match="'Tensor' object has no attribute 'nothing'"):
        _ = net.broken


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: loose.zeros((2,), loose.int32), r"write ll\.zeros\(\(2,\), dtype=ll\.int32\)"),
        (lambda: loose.ones(2, 3), r"write ll\.ones\(\(2, 3\)\)"),
        (lambda: loose.full((2,), 1, "int32"), r"write ll\.full\(\(2,\), 1, dtype=ll\.int32\)"),
        (lambda: loose.zeros_like(x, loose.int32), r"write ll\.zeros_like\(x, dtype=ll\.int32\)"),
        (lambda: loose.optim.SGD(0.1).step(), r"write optimizer\.apply\(gradients, variables\)"),
        (lambda: loose.optim.SGD(0.1).apply(zip([x], [ll.Variable(x)], strict=True)), r"two lists, not one of pairs"),
        (lambda: loose.optim.SGD(0.1).apply([(x, ll.Variable(x))]), r"two lists, not one of pairs"),
        (lambda: loose.optim.Adam([ll.Variable(x)], 1e-3), r"^Adam takes settings only.* optimizer\.apply\("),
        (lambda: loose.optim.Adam(iter([ll.Variable(x)])), r"^Adam takes settings only"),
        (lambda: loose.optim.SGD(0.1, momentum=0.9), r"no setting 'momentum': write ll\.optim\.Momentum"),
        (lambda: loose.optim.Adam(lr=0.1), "did you mean 'learning_rate'"),
        (lambda: loose.nn.Conv(8, kernel_size=3), "no setting 'kernel_size'; did you mean 'window'"),
        (lambda: loose.nn.Conv(8, 3, strides=2), "did you mean 'stride'"),
        (lambda: loose.nn.Dense(3, in_features=2), "the first call finds them"),
        (lambda: loose.nn.Dense(3, bias=False), "did you mean 'use_bias'"),
        (lambda: loose.cond(True, abs, abs, x), r"^cond: .*write ll\.cond\(pred, lambda: f\(x\)"),
        (lambda: loose.function(abs, static_argnums=0), "'static_argnums': plain Python values are keyed by value"),
    ],
)
def test_calls_as_in_other_libraries(call: Callable[[], Any], words: str) -> None:
    with pytest.raises((TypeError, ArgumentError), match=words):
        call()


@pytest.mark.parametrize(
    ("get", "words"),
    [
        (lambda: loose.optim.SGD(0.1).apply_gradients, "two lists, not one of pairs"),
        (lambda: loose.optim.SGD(0.1).minimize, "GradientTape"),
        (lambda: loose.nn.Dense(1).train, "training=True"),
        (lambda: loose.nn.Linear, r"write ll\.nn\.Dense"),
        (lambda: loose.optim.Adm, r"write ll\.optim\.Adam"),
        (lambda: loose.linalg.inverse, r"write ll\.linalg\.inv"),
        (lambda: loose.random.randn, r"write ll\.random\.normal"),
        (lambda: loose.save_model, r"write ll\.save"),
        (lambda: loose.Assert, r"write ll\.debug\.check"),
        (lambda: loose.tensor, r"write ll\.constant\(value\)"),
        (lambda: x.numel, r"write x\.size"),
    ],
)
def test_names_of_parts_and_objects(get: Callable[[], Any], words: str) -> None:
    with pytest.raises(AttributeError, match=words) as caught:
        get()
    assert not tracebacks.is_at_fault(caught.value)


def test_pythons_round_and_divmod() -> None:
    assert round(loose.constant([1.2, 2.5])).tolist() == round(loose.Variable([1.2, 2.5])).tolist() == [1.0, 2.0]
    for pair in (divmod(ll.constant([7, -7]), 3), divmod(loose.Variable([7, -7]), 3)):
        assert [y.tolist() for y in pair] == [[2, -3], [1, 2]]
    assert [y.tolist() for y in divmod(7, loose.constant([2]))] == [[3], [1]]


def test_variables_without_a_name_are_called_as_their_attribute() -> None:
    class Net(ll.Module):
        def __init__(self, shared: ll.Variable) -> None:
            self.w, self.b, self.tied = ll.Variable(1.0), ll.Variable(2.0, name="bias"), shared
            with ll.name_scope("inner"):
                self.v = ll.Variable(3.0)

    first = Net(ll.Variable(0.0))
    second = Net(first.w)
    assert [v.name for v in first.variables] == ["w", "bias", "tied", "inner/v"]
    assert second.tied.name == "w"


def test_modules_that_were_written_for_keras() -> None:
    class Scale(loose.nn.Layer):  # type: ignore[misc, name-defined]  # of Any
        def __init__(self, units: int, name: str | None = None, **kwargs: Any) -> None:
            super().__init__(name=name, **kwargs)
            self.units = units

        def build(self, input_shape: Any) -> None:
            self.kernel = ll.Variable(ll.ones((input_shape[-1], self.units)), name="kernel")
            super().build(input_shape)
            self.built = True

        def call(self, inputs: Any, training: bool = False) -> Any:
            return inputs @ self.kernel

    for stage in (lambda f: f, ll.function):
        layer = Scale(3, name="scale")
        assert stage(layer)(ll.ones((2, 4))).shape == (2, 3)
        assert layer.name == "scale"
        assert [path for path, _ in layer.named_variables()] == ["kernel"]
        with pytest.raises(ll.errors.ShapeError):
            layer(ll.ones((2, 5)))

    class Net(loose.Module):  # type: ignore[misc, name-defined]  # of Any
        def __init__(self) -> None:
            super().__init__(name="net")

    assert Net().name == "net"
    with pytest.raises(TypeError):
        loose.Module("net")


def test_whether_a_variable_is_trainable_is_not_set_later() -> None:
    v: Any = ll.Variable(1.0)
    with pytest.raises(AttributeError, match=r"said when it is made: .*ll\.Variable\(x, trainable=False\)"):
        v.trainable = False
    assert v.trainable


@pytest.mark.parametrize(
    "run",
    [
        lambda: ll.Module()(x),
        lambda: type("L", (ll.nn.Layer,), {"call": lambda self, x: self.ready(x)})()(x),
        lambda: ll.optim.Optimizer(0.1).apply([x], [ll.Variable(x)]),
    ],
)
def test_a_method_that_a_subclass_lacks_is_the_users_mistake(run: Callable[[], object]) -> None:
    with pytest.raises(TypeError, match="does not define") as caught:
        run()
    assert not tracebacks.is_at_fault(caught.value)


def _with_attribute(name: str, value: Any) -> Any:
    module = ll.Module()
    setattr(module, name, value)
    return module


MISTAKES_OF_OBJECTS: dict[str, Callable[[], Any]] = {
    "a dataset of TensorFlow": lambda: loose.data.Dataset.from_tensor_slices,
    "the end of an endless dataset": lambda: len(ll.data.from_arrays(x).repeat()),
    "a buffer": lambda: loose.data.from_arrays(x).shuffle(buffer_size=10),
    "a schedule that is assigned to": lambda: loose.optim.schedules.Cosine(0.1, 10).assign(0.2),
    "a schedule as a number": lambda: float(loose.optim.schedules.Cosine(0.1, 10)),
    "an attribute that is ours": lambda: _with_attribute("variables", [1]),
    "a layer that is frozen": lambda: _with_attribute("trainable", False),
    "a method that there is not": lambda: loose.Variable(1.0).nonsense,
    "a variable that is frozen": lambda: setattr(ll.Variable(1.0), "trainable", False),
    "a part of a variable": lambda: loose.Variable([1.0]).at[0].nonsense,
}


@pytest.mark.parametrize("mistake", MISTAKES_OF_OBJECTS)
def test_what_is_raised_as_python_would_is_the_users_mistake(mistake: str) -> None:
    with pytest.raises((AttributeError, TypeError)) as caught:
        MISTAKES_OF_OBJECTS[mistake]()
    assert not tracebacks.is_at_fault(caught.value)
