"""Python's own errors for a list of tensors that is computed with, and for one result or a dataset that is unpacked."""

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


@pytest.mark.parametrize("layer", [ll.nn.LSTM(4), ll.nn.GRU(4), ll.nn.RNN(4), ll.nn.Bidirectional(ll.nn.LSTM(4))])
def test_an_output_that_is_unpacked_is_said_to_come_without_a_state(layer):
    with pytest.raises(ValueError, match="unpack") as caught:
        _, _ = layer(ll.ones((3, 5, 2)))
    assert "layer returns its output alone, without a state: write y = layer(ll.ones((3, 5, 2)))" in notes(caught.value)
    assert notes(caught.value).endswith("or make it with return_state=True")


def test_layers_that_return_their_state_and_functions_have_no_such_note():
    layer, pair = ll.nn.LSTM(4, return_state=True), ll.function(lambda x: (x, x))
    for call in (layer, pair):
        with pytest.raises(ValueError, match="unpack") as caught:
            _, _, _ = call(ll.ones((3, 5, 2)))
        assert not notes(caught.value)


def test_a_dataset_that_is_taken_for_an_element_or_an_iterator_says_what_to_write():
    dataset = ll.data.from_sequence(range(5))
    with pytest.raises(ValueError, match="unpack") as unpacked:
        _, _ = dataset
    assert "dataset is a dataset, not an element of one: write next(iter(dataset))" in notes(unpacked.value)
    with pytest.raises(TypeError, match="not an iterator") as asked:
        next(dataset)
    assert "write batches = iter(dataset) before the loop and next(batches) in it" in notes(asked.value)


def test_a_tensor_that_is_unpacked_is_told_by_its_shape():
    total = ll.ones((3, 2))
    with pytest.raises(ValueError, match="unpack") as caught:
        _, _ = total
    assert "total is one tensor, f32[3,2], and unpacking goes over its first axis" in notes(caught.value)
