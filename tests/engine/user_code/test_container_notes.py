"""Python's own errors for a list of tensors that is computed with, and for a cell's state that is unpacked."""

import pytest

import limelight as ll
from limelight.user_code import call_notes


def notes(error):
    call_notes.note_call(error)
    return " ".join(getattr(error, "__notes__", ()))


@pytest.mark.parametrize("transform", [ll.grad, ll.function, ll.jacobian, ll.hessian])
@pytest.mark.parametrize("body", [lambda x: x**2, lambda x: 2.0 * x, lambda x: -x])
def test_a_list_that_is_computed_with_is_said_to_be_tensors(transform, body):
    with pytest.raises(TypeError) as caught:
        transform(body)([ll.constant(1.0), ll.constant(2.0)] if transform is ll.function else [1.0, 2.0])
    assert "x is a list of tensors, each an argument of its own: give one tensor" in notes(caught.value)


def test_lists_of_other_things_are_none_of_our_business():
    for x in ([1.0, 2.0], ["a"], []):
        with pytest.raises(TypeError) as caught:
            x**2
        assert not notes(caught.value)
    with pytest.raises(ValueError, match="unpack") as unpacked:
        _, _ = tuple("abc")
    assert not notes(unpacked.value)


@pytest.mark.parametrize("kind", [ll.nn.GRUCell, ll.nn.RNNCell])
@pytest.mark.parametrize("batch", [1, 3])
def test_a_state_that_is_unpacked_is_said_to_be_one_tensor(kind, batch):
    class Net(ll.Module):
        def __init__(self):
            super().__init__()
            self.cell = kind(4)

        def call(self, x, h):
            y, h = self.cell(x, h)
            return y

    for net in (Net(), ll.function(Net())):
        with pytest.raises(ValueError, match="unpack") as caught:
            net(ll.ones((batch, 2)), ll.ones((batch, 4)))
        assert f"A {kind.__name__} returns one tensor, its next state" in notes(caught.value)
        assert "write h = self.cell(x, h)" in notes(caught.value)
