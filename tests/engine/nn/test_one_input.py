"""A layer takes one tensor: a list or tuple of tensors is refused, where an op would stack it."""

import numpy as np
import pytest

import limelight as ll
from limelight.errors import ShapeError

MAKERS = {
    "Dense": lambda: ll.nn.Dense(3),
    "LayerNorm": ll.nn.LayerNorm,
    "Sequential": lambda: ll.nn.Sequential(ll.nn.Dense(3)),
}


@pytest.mark.parametrize("staged", [False, True])
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_two_inputs_are_refused_by_the_layer(make, staged):
    layer = make()
    call = ll.function(layer) if staged else layer
    x = ll.ones((2, 4))
    for given in ((x, x), [x, ll.ones((3, 4))]):
        with pytest.raises(ShapeError, match=rf"got a {type(given).__name__} of 2, f32.*ll.concat"):
            call(given)
    with pytest.raises(ShapeError, match=r"got a list of 1, f32\[2,4\]: write layer\(x\)"):
        call([x])
    assert not layer.variables
    assert call(x).shape[0] == 2


def test_numbers_in_lists_are_data():
    layer = ll.nn.Dense(3)
    assert layer([[1.0, 2.0]]).shape == (1, 3)
    assert layer([np.ones(2), np.ones(2)]).shape == (2, 3)
    assert layer([[ll.constant(1.0), ll.constant(2.0)]]).shape == (1, 3)
    assert layer([ll.constant(1.0), ll.constant(2.0)]).shape == (3,)
