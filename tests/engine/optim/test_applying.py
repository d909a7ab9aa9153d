"""What `apply` takes, refuses and warns about; and the learning rate."""

from __future__ import annotations

import copy
import warnings

import numpy as np
import pytest

import limelight as ll


def test_a_missing_gradient_is_skipped_with_one_warning_that_names_the_variable():
    a, b = ll.Variable([1.0], name="used"), ll.Variable([1.0], name="forgotten")
    optimiser = ll.optim.SGD(0.5)
    with pytest.warns(UserWarning, match=r"SGD.apply: no gradient for 'forgotten': .*why_none") as caught:
        optimiser.apply([ll.constant([1.0]), None], [a, b])
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        optimiser.apply([ll.constant([1.0]), None], [a, b])
    assert (a.numpy().item(), b.numpy().item()) == (0.0, 1.0)


def test_variables_of_one_name_are_told_apart_by_their_places():
    variables = [ll.Variable([1.0], name=name) for name in ("kernel", "bias", "kernel")]
    said = r"no gradient for 'bias', 'kernel' \(number 3 of 3\): not updated"
    with pytest.warns(UserWarning, match=said):
        ll.optim.SGD(0.5).apply([ll.ones((1,)), None, None], variables)


def test_no_gradient_at_all_is_an_error_before_anything_changes():
    v, optimiser = ll.Variable([1.0], name="w"), ll.optim.SGD(0.5)
    with pytest.raises(ll.errors.ArgumentError, match=r"every variable is None \('w'\).*ll\.explain\.why_none"):
        optimiser.apply([None], [v])
    assert optimiser.step.numpy() == 0


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        (lambda v: ([], []), ll.errors.ArgumentError, "after the model has been called"),
        (lambda v: ([ll.ones(2)], [v, v]), ll.errors.ArgumentError, "1 gradients for 2 variables"),
        (lambda v: ([ll.ones(2)] * 2, [v, v]), ll.errors.ArgumentError, "variable 'w' occurs twice"),
        (lambda v: (ll.ones(2), v), ll.errors.ArgumentError, r"write apply\(\[g\], \[v\]\)"),
        (
            lambda v: ([ll.ones(2)], [ll.nn.Dense(2)]),
            ll.errors.ArgumentError,
            r"got Dense: write one module, or sum\(\[m.trainable_variables for m in modules\], \[\]\)",
        ),
        (lambda v: ([ll.ones(2)], [ll.ones(2)]), ll.errors.ArgumentError, "changes variables, got a tensor"),
        (lambda v: ([ll.ones(3)], [v]), ll.errors.ShapeError, r"'w' has shape \(3,\), the variable \(2,\)"),
        (lambda v: ([ll.ones((2, 1))], [v]), ll.errors.ShapeError, "same order"),
        (lambda v: ([ll.constant([1, 2])], [v]), ll.errors.DTypeError, "float32, its gradient int32"),
        (lambda v: ([ll.ones(2)], [ll.Variable([1j, 2j])]), ll.errors.DTypeError, "real and imaginary"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("staged", [False, True])
def test_what_does_not_fit_is_refused_before_anything_changes(arguments, error, said, staged, retraces_are_meant):
    v, optimiser = ll.Variable([1.0, 2.0], name="w"), ll.optim.Adam()

    def step():
        optimiser.apply(*arguments(v))

    with pytest.raises(error, match=said):
        (ll.function(step) if staged else step)()
    assert v.numpy().tolist() == [1.0, 2.0]
    assert optimiser.step.numpy() == 0
    assert not optimiser.slots


def test_the_learning_rate_changes_between_staged_steps_without_a_new_trace():
    v, optimiser = ll.Variable(10.0), ll.optim.SGD(1.0)
    step = ll.function(lambda g: optimiser.apply([g], [v]))
    step(ll.constant(1.0))
    traces = step.trace_count
    optimiser.learning_rate = 0.5
    step(ll.constant(1.0))
    optimiser.learning_rate.assign(2)
    step(ll.constant(1.0))
    assert step.trace_count == traces
    assert v.numpy() == 10.0 - 1.0 - 0.5 - 2.0
    assert optimiser.learning_rate.numpy() == 2.0


def test_the_learning_rate_takes_the_value_of_a_scalar_tensor():
    v, optimiser = ll.Variable(10.0), ll.optim.SGD(1.0)
    rate = optimiser.learning_rate
    optimiser.learning_rate = ll.constant(0.5)
    optimiser.apply([ll.constant(1.0)], [v])
    assert (v.numpy(), optimiser.learning_rate) == (9.5, rate)
    with pytest.raises(ll.errors.ShapeError, match=r"a value of shape \(1,\) does not fit"):
        optimiser.learning_rate = ll.constant([0.5])
    staged = ll.function(lambda x: setattr(optimiser, "learning_rate", x * 2.0))
    staged(ll.constant(0.25))
    staged(ll.constant(0.125))
    assert rate.numpy() == 0.25


def test_a_variable_may_be_the_rate_of_several_optimisers():
    rate, a, b = ll.Variable(0.5), ll.Variable(1.0), ll.Variable(1.0)
    first, second = ll.optim.SGD(rate), ll.optim.SGD(rate)
    rate.assign(0.25)
    first.apply([ll.constant(1.0)], [a])
    second.apply([ll.constant(1.0)], [b])
    assert (a.numpy(), b.numpy()) == (0.75, 0.75)


def test_a_schedule_is_followed_without_a_new_trace_and_cannot_be_overwritten():
    v, optimiser = ll.Variable(0.0), ll.optim.SGD(lambda done: 1.0 / (1.0 + done))
    step = ll.function(lambda g: optimiser.apply([g], [v]))
    seen = []
    for _ in range(3):
        step(ll.constant(-1.0))
        seen.append(float(v.numpy()))
    assert np.allclose(seen, np.cumsum([1.0, 1 / 2, 1 / 3]))
    assert len(step.trace_cache) == 1
    with pytest.raises(ll.errors.ArgumentError, match="follows a schedule"):
        optimiser.learning_rate = 0.1


def test_a_gradient_of_unknown_sizes_is_taken():
    v, optimiser = ll.Variable([1.0, 2.0]), ll.optim.Momentum(0.5)
    step = ll.function(lambda g: optimiser.apply([g], [v]), input_signature=[ll.TensorSpec((None,))])
    step(ll.ones(2))
    assert v.numpy().tolist() == [0.5, 1.5]


def test_a_rate_is_one_number_and_not_negative():
    with pytest.raises(ll.errors.ShapeError, match=r"must be a scalar, got f32\[2\]"):
        ll.optim.SGD(lambda done: ll.ones(2)).apply([ll.ones(2)], [ll.Variable([1.0, 2.0])])
    for rate in (-0.1, float("nan")):
        with pytest.raises(ll.errors.ArgumentError, match="the rate must be at least 0"):
            ll.optim.SGD(rate)


def test_the_rate_keeps_the_precision_of_python():
    assert ll.optim.SGD(0.1).learning_rate.read_value().item() == 0.1


def test_a_variable_that_is_an_argument_has_slots_of_its_own_and_a_trace_for_them():
    def run(stage):
        vs, momentum = [ll.Variable(1.0), ll.Variable(2.0)], ll.optim.Momentum(0.5)
        step = stage(lambda v, g: momentum.apply([g], [v]))
        for v in (vs[0], vs[1], vs[0], vs[1], vs[0]):
            step(v, ll.constant(1.0))
        return [v.numpy().item() for v in vs], len(momentum.slots), step

    values, slots, step = run(ll.function)
    assert (values, slots) == run(lambda f: f)[:2]
    assert step.trace_count == len(step.trace_cache) == slots == 2


def test_updates_without_slots_share_a_trace():
    descent, vs = ll.optim.SGD(0.5), [ll.Variable(1.0), ll.Variable(2.0)]
    step = ll.function(lambda v, g: descent.apply([g], [v]))
    for v in vs:
        step(v, ll.constant(1.0))
    assert [v.numpy().item() for v in vs] == [0.5, 1.5]
    assert step.trace_count == 1


def test_a_variable_given_and_closed_over_occurs_twice():
    descent, v = ll.optim.SGD(0.5), ll.Variable(1.0)
    step = ll.function(lambda w, g: descent.apply([g, g], [v, w]))
    with pytest.raises(ll.errors.ArgumentError, match="occurs twice"):
        step(v, ll.constant(1.0))


def test_an_optimiser_made_in_a_staged_function_is_state_like_any_other():
    class Trainer(ll.Module):
        def __init__(self):
            self.v, self.optimiser = ll.Variable(1.0), None

        def call(self, g):
            if self.optimiser is None:
                self.optimiser = ll.optim.Momentum(0.5, 0.5)
            self.optimiser.apply([g], [self.v])

    trainer = Trainer()
    step = ll.function(trainer)
    for _ in range(2):
        step(ll.constant(1.0))
    assert trainer.v.numpy() == 1.0 - 0.5 - 0.75


def test_a_copy_of_model_and_optimiser_goes_on_by_itself():
    v, optimiser = ll.Variable(1.0), ll.optim.Momentum(0.5, 0.5)
    optimiser.apply([ll.constant(1.0)], [v])
    v2, optimiser2 = copy.deepcopy((v, optimiser))
    optimiser2.apply([ll.constant(1.0)], [v2])
    assert (v.numpy(), v2.numpy()) == (0.5, -0.25)


def test_settings_out_of_range_name_the_optimiser():
    for make in (
        lambda: ll.optim.Adam(beta2=1.0),
        lambda: ll.optim.Momentum(momentum=-0.1),
        lambda: ll.optim.RMSProp(decay=float("nan")),
        lambda: ll.optim.AdamW(weight_decay=-1.0),
        lambda: ll.optim.Adam(beta1="0.9"),
    ):
        with pytest.raises(ll.errors.ArgumentError, match=r"(Adam|Momentum|RMSProp|AdamW): \w+ must be"):
            make()


def test_reprs_show_the_settings():
    assert repr(ll.optim.SGD(0.1)) == "SGD(0.1)"
    assert repr(ll.optim.Momentum(nesterov=True)) == "Momentum(0.01, momentum=0.9, nesterov=True)"
    schedule = ll.optim.schedules.Step(1.0, every=3)
    assert repr(ll.optim.SGD(schedule)) == "SGD(Step(rate=1.0, every=3, factor=0.1))"
