"""Layers as users of Keras and PyTorch write them: `build` by any argument, settings by any name."""

from __future__ import annotations

import pytest

import limelight as ll
from limelight.errors import ArgumentError, ShapeError


@pytest.mark.parametrize("parameter", ["shape", "input_shape", "input_shapes", "features", "n"])
def test_build_is_called_before_a_call_that_does_not_say_ready(parameter):
    given = "n[-1]" if "shape" in parameter else "n"
    scope = {}
    exec(
        "import limelight as ll\n"
        "class Scale(ll.nn.Layer):\n"
        f"    def build(self, {parameter}):\n"
        f"        n = {parameter}\n"
        f"        self.w = self.weight('w', ({given},), ll.nn.initializers.ones)\n"
        "    def call(self, x):\n"
        "        return x * self.w\n",
        scope,
    )
    layer = scope["Scale"]()
    assert layer(ll.ones((2, 3))).shape == (2, 3)
    assert layer.w.shape == (3,)
    staged = scope["Scale"]()
    assert ll.function(staged)(ll.ones((2, 3))).shape == (2, 3)


class Both(ll.nn.Layer):
    def build(self, shape):
        self.shapes = shape
        self.w = self.weight("w", (2,), ll.nn.initializers.ones)

    def call(self, pair):
        return pair["a"] * self.w if isinstance(pair, dict) else pair[0] * self.w


def test_build_gets_the_shapes_of_several_inputs():
    layer, named = Both(), Both()
    layer((ll.ones((1, 2)), ll.ones((3, 2))))
    named({"a": ll.ones((1, 2))})
    assert layer.shapes == ((1, 2), (3, 2))
    assert named.shapes == {"a": (1, 2)}
    assert layer((ll.ones((5, 2)), ll.ones((3, 2)))).shape == (5, 2)


class LowRank(ll.nn.Layer):
    def __init__(self, features, rank, form):
        self.features, self.rank, self.form = features, rank, form

    def build(self, features):
        self.w = self.weight("w", (features, self.features), ll.nn.initializers.ones)

    def call(self, x):
        return self.ready(x) @ self.w


def test_a_layer_may_have_settings_named_like_what_its_base_class_keeps():
    layer = LowRank(4, 1, "any")
    assert layer(ll.ones((2, 3))).shape == (2, 4)
    with pytest.raises(ll.errors.ShapeError, match="built for inputs with 3 features"):
        layer(ll.ones((2, 5)))


def test_what_a_module_says_of_itself_cannot_be_set_and_the_error_says_so():
    class Model(ll.Module):
        def __init__(self):
            self.variables = []

    with pytest.raises(
        AttributeError, match=r"Model\.variables is what .*: call yours otherwise, such as own_variables"
    ):
        Model()


@pytest.mark.parametrize("name", ["edges", "call", "build", "summary"])
@pytest.mark.parametrize("make", [lambda: ll.nn.Dense(2), lambda: ll.Variable(1.0)], ids=["layer", "variable"])
def test_no_attribute_hides_a_method_that_the_library_calls(name, make):
    class Model(ll.Module):
        def call(self, x):
            return x

    with pytest.raises(AttributeError, match=rf"Model\.{name} is a method .*: call yours otherwise, .* own_{name}"):
        setattr(Model(), name, make())


def test_of_a_property_of_the_users_own_that_cannot_be_set_python_says_so():
    class Model(ll.Module):
        @property
        def size(self):
            return 3

    with pytest.raises(AttributeError, match=r"^property 'size' of .*Model' object has no setter"):
        Model().size = 4


def test_a_build_that_nobody_calls_is_named_where_its_weights_are_missing():
    class Model(ll.Module):
        def build(self, input_shape):
            self.w = ll.Variable(1.0)

        def call(self, x):
            return x * self.w

    with pytest.raises(AttributeError, match=r"'w', which its `build` makes: .* Derive the class from ll\.nn\.Layer"):
        Model()(ll.ones(2))


def test_a_dictionary_for_one_tensor_is_refused_in_the_name_of_the_layer():
    with pytest.raises(ll.errors.DTypeError, match=r"Dense\(2\) takes one tensor of shape .*, got a dict"):
        ll.nn.Dense(2)({"x": ll.ones((1, 2))})


class Doubled(ll.nn.Dense):
    def call(self, x):
        return super().call(ll.concat([x, x], axis=-1))


class Flattened(ll.nn.BatchNorm):
    def call(self, x, training=False):
        return super().call(x.reshape((-1, 4)), training=training)


class ByHelper(ll.nn.Layer):
    def build(self, features):
        self.w = self.weight("w", (features, 4), ll.nn.initializers.ones)

    def call(self, x):
        return self.forward(ll.concat([x, x], axis=-1))

    def forward(self, x):
        return self.ready(x) @ self.w


class WithoutReady(ll.nn.Dense):
    def call(self, inputs, scale=1.0):
        return inputs @ self.kernel * scale


class OfThat(WithoutReady):
    def call(self, inputs, scale=2.0):
        return super().call(inputs, scale)


@pytest.mark.parametrize("kind", [Doubled, ByHelper])
def test_what_a_call_hands_on_to_its_ready_decides_the_weights(kind):
    layer = kind(4) if kind is Doubled else kind()
    assert layer(ll.ones((2, 3))).shape == (2, 4)
    assert layer.variables[0].shape == (6, 4)


def test_a_layer_of_the_library_may_be_handed_another_shape():
    assert Flattened()(ll.ones((2, 8)), training=True).shape == (4, 4)


@pytest.mark.parametrize("kind", [WithoutReady, OfThat])
def test_the_first_argument_may_have_a_name(kind):
    by_place, by_name = kind(2), kind(2)
    assert by_place(ll.ones((1, 3))).shape == by_name(scale=1.0, inputs=ll.ones((1, 3))).shape == (1, 2)


def test_a_weight_takes_the_name_of_an_initializer():
    class Scaled(ll.nn.Layer):
        def build(self, features):
            self.kernel = self.weight("kernel", (features, 4), "he_normal")
            self.scale = self.weight("scale", (4,), "ones")

        def call(self, x):
            return self.ready(x) @ self.kernel * self.scale

    layer = Scaled()
    assert layer(ll.ones((2, 3))).shape == (2, 4)
    assert layer.scale.numpy().tolist() == [1.0] * 4
    with pytest.raises(ArgumentError, match="there is no initializer 'one'; did you mean 'ones'"):
        layer.weight("w", (2,), "one")


@pytest.mark.parametrize(
    ("foreign", "instead"),
    [
        ("xavier_uniform", "; write 'glorot_uniform' ("),
        ("xavier_normal_", "; write 'glorot_normal' ("),
        ("kaiming_uniform", "; write 'he_uniform' ("),
        ("kaiming_normal", "; write 'he_normal' ("),
        ("random_normal", "; write 'normal' (of another spread"),
        ("uniform", ": an initializer is any function of shape and dtype: lambda shape, dtype: ll.random.uniform("),
        (
            "random_uniform",
            ": an initializer is any function of shape and dtype: lambda shape, dtype: ll.random.uniform(",
        ),
        ("constant", ": an initializer is any function of shape and dtype: lambda shape, dtype: ll.full("),
        ("variance_scaling", "; there are glorot_normal, "),
        ("glorot", "; did you mean 'glorot_normal' or 'glorot_uniform'?"),
        ("he_unifrom", "; did you mean 'he_uniform'?"),
        ("trunc_normal", "; did you mean 'truncated_normal'?"),
    ],
)
def test_initializers_of_other_libraries_lead_to_ours_or_to_none(foreign, instead):
    """Two variances are two initializers, however alike their names: none was near to `xavier_uniform` but another."""
    with pytest.raises(ArgumentError) as refused:
        ll.nn.Dense(3, kernel_initializer=foreign)
    assert f"there is no initializer {foreign!r}{instead}" in str(refused.value)


@pytest.mark.parametrize("dtype", ["bfloat16", "float64"])
def test_a_layer_of_ones_own_takes_a_dtype(dtype):
    class Scale(ll.nn.Layer):
        def build(self, features):
            self.scale = self.weight("scale", (features,), "ones")

        def call(self, x):
            return self.ready(x) * self.scale

    class Settled(Scale):
        def __init__(self, dtype=None):
            super().__init__(dtype=dtype)

    for layer in (Scale(dtype=dtype), Settled(dtype)):
        assert layer(ll.ones((2, 3))).dtype.name == dtype
        assert layer.scale.dtype.name == dtype
    assert Scale()(ll.ones((2, 3))).dtype == ll.float32
    with pytest.raises(ll.errors.CallError, match="Scale has no setting 'rate'"):
        Scale(rate=0.5)
    with pytest.raises(ll.errors.ArgumentError, match="Scale: dtype must be a floating one"):
        Scale(dtype="int32")


def test_an_embedding_may_have_a_dense_gradient():
    for sparse in (True, False):
        layer = ll.nn.Embedding(4, 2, sparse=sparse)
        with ll.GradientTape() as tape:
            loss = ll.sum(layer(ll.constant([1, 1])))
        gradient = tape.gradient(loss, layer.table)
        assert isinstance(gradient, ll.SparseGradient) == sparse
        dense = gradient.dense() if sparse else gradient
        assert dense.tolist() == [[0.0, 0.0], [2.0, 2.0], [0.0, 0.0], [0.0, 0.0]]


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        (
            lambda given: (given, 3),
            r"got \(\(2, 4\), 3\); input_shape is a whole shape: .* is input_shape\[-1\]",
        ),
        (lambda given: (None, 3), r"got \(None, 3\)"),
        (lambda given: (given[-1], 3.0), r"got \(4, 3.0\)"),
    ],
)
@pytest.mark.parametrize("initializer", ["zeros", "glorot_uniform"])
def test_a_shape_of_weights_that_is_none_is_refused(shape, words, initializer):
    class Broken(ll.nn.Layer):
        def build(self, input_shape):
            self.w = self.weight("w", shape(input_shape), initializer)

        def call(self, x):
            return x @ self.w

    with pytest.raises(ShapeError, match=f"the shape of w must be a tuple of sizes, {words}"):
        Broken()(ll.ones((2, 4)))


def test_a_shape_of_weights_may_be_one_size():
    class Scaled(ll.nn.Layer):
        def build(self, features):
            self.w = self.weight("w", features, "ones")

        def call(self, x):
            return x * self.w

    layer = Scaled()
    assert layer(ll.ones((2, 4))).shape == (2, 4)
    assert layer.w.shape == (4,)
