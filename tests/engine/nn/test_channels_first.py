"""Are pictures with their channels first told of at the user's line, and are all others left alone?"""

import warnings

import pytest

import limelight as ll

FIRST = [(2, 3, 32, 32), (2, 1, 28, 28), (1, 3, 8, 8)]
LAST = [(2, 32, 32, 3), (2, 3, 32, 64), (2, 3, 4, 4), (2, 8, 8, 8), (2, 1, 1, 8)]


@pytest.mark.parametrize("shape", FIRST)
@pytest.mark.parametrize("staged", [False, True])
def test_channels_first_are_told_of_once_for_a_layer(shape, staged):
    layer = ll.nn.Conv(4, 3)
    call = ll.function(layer) if staged else layer
    with pytest.warns(UserWarning, match=r"Conv\(4, 3\): channels are the last axis.*ll.moveaxis\(x, 1, -1\)") as heard:
        call(ll.ones(shape))
    assert [warning.filename for warning in heard] == [__file__]
    assert f"looks like {shape[1]} channels first" in str(heard[0].message)
    call(ll.ones(shape))  # warnings are errors here


def test_volumes_and_transposed_convolutions_are_told_of_as_well():
    for layer, shape in ((ll.nn.Conv(2, (2, 2, 2)), (1, 3, 8, 8, 8)), (ll.nn.ConvTranspose(2, 3), (1, 3, 8, 8))):
        with pytest.warns(UserWarning, match="channels are the last axis"):
            layer(ll.ones(shape))


@pytest.mark.parametrize("shape", LAST)
def test_other_shapes_are_left_alone(shape):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ll.nn.Conv(4, 3)(ll.ones(shape))
        ll.nn.Conv(4, (1, 3))(ll.ones((2, 3, 32, 32)))  # along the columns of three sensors
        ll.nn.Conv(4, 3).build((None, None, None, 3))
