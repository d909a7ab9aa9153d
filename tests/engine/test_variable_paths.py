"""Variables by their attribute paths."""

import limelight as ll
from limelight.variable_paths import paths_of


def test_paths_are_in_the_order_of_the_variables() -> None:
    model = ll.nn.Sequential(ll.nn.Dense(2), ll.nn.Dense(1))
    model.build((None, 3))
    backwards = list(model.variables)[::-1]
    assert list(paths_of(backwards).items()) == [
        (v._uid, path)
        for v, path in zip(
            backwards, ["layers.1.bias", "layers.1.kernel", "layers.0.bias", "layers.0.kernel"], strict=True
        )
    ]
