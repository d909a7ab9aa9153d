"""Which traces `ll.save` writes: for the signatures that are given, and those that functions declare."""

from __future__ import annotations

import pytest

import limelight as ll
from limelight.errors import ExportError

VECTOR = ll.TensorSpec((None,))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "f.ll"


def test_a_module_makes_its_variables_when_it_is_saved(path):
    loaded = ll.load(ll.save(ll.nn.Sequential(ll.nn.Dense(2)), path, ll.TensorSpec((None, 3))))
    assert loaded(ll.ones((4, 3))).shape == (4, 2)


@pytest.mark.parametrize("signatures", [VECTOR, [VECTOR], (VECTOR,), {"f": VECTOR, "g": [(VECTOR,)]}])
def test_of_a_dictionary_they_are_for_each_function_or_by_name(path, signatures):
    f = ll.function(lambda x: x * 2)
    f(ll.ones(2))
    loaded = ll.load(ll.save({"f": f, "g": lambda x: x + 1}, path, signatures))
    assert [loaded[name](ll.ones(3)).tolist() for name in "fg"] == [[2] * 3, [2] * 3]


def test_a_name_that_is_not_in_the_dictionary_is_refused(path):
    with pytest.raises(ExportError, match="signatures for 'z', which the dictionary does not have: it has 'f'"):
        ll.save({"f": lambda x: x}, path, {"z": VECTOR})


class Shifted(ll.Module):
    def __init__(self):
        self.inner = ll.nn.Dense(2)

    def call(self, x, shift, training=False):
        return self.inner(x) + shift


@pytest.mark.parametrize(
    ("target", "form"), [(Shifted(), r"Shifted\(x, shift, training=False\)"), (lambda x, shift: x + shift, "<lambda>")]
)
@pytest.mark.parametrize("signature", [[VECTOR, VECTOR], VECTOR, (VECTOR,), [(VECTOR, VECTOR, True, 4)]])
def test_a_signature_that_is_not_the_arguments_of_a_call_is_refused_with_the_form(path, target, form, signature):
    with pytest.raises(ExportError, match=f"does not fit {form}.*write \\(x_spec, shift_spec\\); a list is of several"):
        ll.save(target, path, signature)
    assert not path.exists()
    assert ll.save(target, path, (ll.TensorSpec((None, 3)), ll.TensorSpec(()))) == path


def test_other_formats_hold_one_trace_and_speak_of_no_list(path):
    with pytest.raises(ExportError, match=r"does not fit Shifted.*write \(x_spec, shift_spec\)") as told:
        ll.export.stablehlo(Shifted(), path, [VECTOR, VECTOR])
    assert "a list is of several" not in str(told.value)


def _module():
    return ll.nn.Sequential(ll.nn.Dense(2))


@pytest.mark.parametrize(
    "made",
    [
        lambda path: ll.load(ll.save(_module(), path, ll.TensorSpec((4, 3)))),
        lambda path: ll.load(ll.save(lambda x: x * 2, path, ll.TensorSpec((4, 3)))),
        lambda path: ll.function(lambda x: x * 2).get_concrete_function(ll.TensorSpec((4, 3))),
        lambda path: {"f": ll.function(lambda x: x * 2).get_concrete_function(ll.TensorSpec((4, 3)))},
    ],
)
def test_what_cannot_be_traced_is_saved_for_signatures_that_it_has_alone(path, made):
    target = made(path)
    assert ll.save(target, path, ll.TensorSpec((4, 3))) == path
    before = path.read_bytes()
    with pytest.raises(ExportError, match=r"has no trace for \(x: f32\[\?,3\].*\n.*f32\[4,3\]"):
        ll.save(target, path, ll.TensorSpec((None, 3)))
    assert path.read_bytes() == before


class Both(ll.Module):
    v = None

    def call(self, x):
        if self.v is None:
            self.v = ll.Variable(2.0)  # before its staged methods are traced, whatever they are called
        return x * self.v

    @ll.function(input_signature=[VECTOR])
    def declared(self, x):
        return x + self.v

    @ll.function
    def undeclared(self, x):
        return x - self.v


def test_methods_are_traced_for_what_they_declare_and_others_are_named(path):
    with pytest.warns(UserWarning, match=r"leaves out `undeclared` of the Both.*call it once before") as told:
        loaded = ll.load(ll.save(Both(), path, VECTOR))
    assert [one.filename for one in told] == [__file__]
    assert loaded.declared(ll.ones(2)).tolist() == [3, 3]
    both = Both()
    both(ll.ones(2))
    both.undeclared(ll.ones(2))
    loaded = ll.load(ll.save(both, path, VECTOR))
    assert loaded.undeclared(ll.ones(2)).tolist() == [-1, -1]


def test_a_function_is_traced_for_what_it_declares(path):
    f = ll.function(lambda x: x + 1, input_signature=[VECTOR])
    assert ll.load(ll.save(f, path))(ll.ones(2)).tolist() == [2, 2]
    with pytest.raises(ExportError, match="no trace to save"):
        ll.save(ll.function(lambda x: x, input_signature=[ll.TensorSpec(None)]), path)
