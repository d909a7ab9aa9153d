"""Ten programs as users write them, from data to a result, with what must come out of each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import limelight as ll


def digits() -> tuple[Any, Any]:
    """Pictures of 64 numbers and their classes, which a linear model can tell apart."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 4, 96)
    centres = rng.normal(size=(4, 64)).astype("float32")
    return centres[labels] + 0.3 * rng.normal(size=(96, 64)).astype("float32"), labels


def trainer(model: Any, optimiser: Any) -> Any:
    @ll.function
    def step(x: Any, y: Any) -> Any:
        with ll.GradientTape() as tape:
            loss = ll.mean(ll.nn.softmax_cross_entropy(model(x), y))
        optimiser.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
        return loss

    return step


def test_digits_are_learnt(capsys: Any) -> None:
    images, labels = digits()
    model, optimiser = ll.nn.Sequential(ll.nn.Dense(4)), ll.optim.Adam(0.05)
    model.build((None, 64))
    step = trainer(model, optimiser)
    data = ll.data.from_arrays((images, labels)).shuffle(seed=1).batch(32).prefetch(2)
    for _ in range(6):
        bar = ll.progress(data)
        for x, y in bar:
            bar.show(loss=step(x, y))
    accuracy = np.mean(np.argmax(model(ll.constant(images)).numpy(), axis=1) == labels)
    assert accuracy > 0.95
    assert step.trace_count == 1
    assert "loss=" in capsys.readouterr().err


def test_a_run_that_is_broken_off_goes_on_with_the_same_losses() -> None:
    images, labels = digits()

    def run(steps: int, saved: Any = None) -> tuple[list[float], Any]:
        ll.random.seed(5)
        model, optimiser = ll.nn.Sequential(ll.nn.Dense(4)), ll.optim.SGD(0.1)
        model.build((None, 64))
        iterator = iter(ll.data.from_arrays((images, labels)).shuffle(seed=1).batch(20).repeat().prefetch())
        if saved is not None:
            iterator.set_state(saved["data"])
            for v, value in zip(model.variables, saved["weights"], strict=True):
                v.assign(value)
        step = trainer(model, optimiser)
        losses = [step(*next(iterator)).item() for _ in range(steps)]
        return losses, {"data": iterator.get_state(), "weights": [v.numpy() for v in model.variables]}

    whole, _ = run(12)
    first, saved = run(7)
    second, _ = run(5, saved)
    assert first + second == whole


def test_images_and_labels_side_by_side() -> None:
    images = ll.data.from_arrays(np.arange(12.0).reshape(6, 2)).map(lambda x: x / 10.0)
    labels = ll.data.from_sequence(["cat", "dog"] * 3)
    names = ll.lookup.HashTable("string", "int32")
    names.insert(["cat", "dog"], [0, 1])
    rows = list(images.zip(labels.map(names.lookup)).batch(4))
    assert [(x.shape, y.tolist()) for x, y in rows] == [((4, 2), [0, 1, 0, 1]), ((2, 2), [0, 1])]


def test_windows_of_a_text() -> None:
    text = "the cat sat on the mat"

    def windows() -> Any:
        codes = [ord(c) for c in text]
        for i in range(len(codes) - 8):
            yield codes[i : i + 8], codes[i + 1 : i + 9]

    data = ll.data.from_generator(windows).shuffle(seed=2, window=5).batch(4, last="drop")
    batches = list(data)
    assert [x.shape for x, _ in batches] == [(4, 8)] * 3
    for x, y in batches:
        np.testing.assert_array_equal(x.numpy()[:, 1:], y.numpy()[:, :-1])


def test_windows_of_a_time_series() -> None:
    series = np.sin(np.arange(60) / 5).astype("float32")
    data = ll.data.from_sequence(range(40)).map(lambda i: (series[int(i) : int(i) + 8], series[int(i) + 8]))
    weights = ll.Variable(np.zeros(8, "float32"))
    optimiser = ll.optim.Adam(0.05)

    @ll.function
    def step(x: Any, y: Any) -> Any:
        with ll.GradientTape() as tape:
            loss = ll.mean((x @ weights - y) ** 2)
        optimiser.apply([tape.gradient(loss, weights)], [weights])
        return loss

    losses = [step(x, y).item() for x, y in data.cache().shuffle(seed=1).batch(10).repeat(25)]
    assert losses[-1] < 0.05 * losses[0]


def test_an_endless_stream() -> None:
    def stream() -> Any:
        rng = np.random.default_rng(1)
        while True:
            x = rng.normal(size=2).astype("float32")
            yield x, np.float32(x[0] * 2 - x[1])

    w = ll.Variable([0.0, 0.0])

    @ll.function
    def step(x: Any, y: Any) -> None:
        with ll.GradientTape() as tape:
            loss = ll.mean((x @ w - y) ** 2)
        w.assign_sub(0.2 * tape.gradient(loss, w))

    for x, y in ll.data.from_generator(stream).batch(16).take(60).prefetch():
        step(x, y)
    np.testing.assert_allclose(w.numpy(), [2.0, -1.0], atol=1e-3)


def test_dictionaries_as_batches_of_a_staged_step() -> None:
    data = ll.data.from_arrays({"x": np.ones((10, 3), "float32"), "id": np.arange(10), "name": list("abcdefghij")})

    @ll.function
    def step(batch: Any) -> Any:
        return ll.sum(batch["x"]) + ll.astype(ll.sum(batch["id"]), ll.float32)

    numbers = data.map(lambda row: {"x": row["x"], "id": row["id"]})
    assert [step(batch).item() for batch in numbers.batch(5)] == [25.0, 50.0]
    assert step.trace_count == 1
    assert next(iter(data.batch(2)))["name"].tolist() == ["a", "b"]


@pytest.mark.parametrize(("last", "traces", "rows"), [("keep", 2, 10), ("drop", 1, 8), ("pad", 1, 10)])
def test_a_last_batch_that_is_padded_keeps_one_trace(last: str, traces: int, rows: int) -> None:
    x, y = np.ones((10, 3), "float32"), np.full(10, 2.0, "float32")
    data = ll.data.from_arrays((x, y, np.ones(10, "float32"))).batch(4, last=last)

    @ll.function
    def loss(x: Any, y: Any, weights: Any) -> Any:
        return ll.sum(weights * (ll.sum(x, axis=1) - y) ** 2), ll.sum(weights)

    sums = [[value.item() for value in loss(*batch)] for batch in data]
    assert [sum(column) for column in zip(*sums, strict=True)] == [rows, rows]
    assert loss.trace_count == traces


def test_a_table_counts_tokens() -> None:
    texts = ["the cat sat", "the mat", "a cat"]
    ids = ll.lookup.HashTable("string", "int32", default_value=-1)
    counts = ll.lookup.HashTable("int64", "int32", default_value=0)
    for word in " ".join(texts).split():
        if word not in ids:
            ids.insert(word, len(ids))

    @ll.function(reduce_retracing=True)
    def count(tokens: Any) -> None:
        for i in range(3):
            here = tokens[i : i + 1]
            counts.insert(here, counts.lookup(here) + 1)

    padded = ll.data.from_sequence(texts).map(lambda text: ids.lookup((text.split() + ["?"] * 3)[:3]))
    for tokens in padded:
        count(tokens)
    assert counts.lookup(ids.lookup(["the", "cat", "sat", "mat", "a"])).tolist() == [2, 2, 1, 1, 1]
    assert count.trace_count == 1


def test_augmented_pictures_are_drawn_reproducibly() -> None:
    pictures = np.arange(32.0).reshape(8, 2, 2).astype("float32")

    def flip(x: Any, draws: Any) -> Any:
        return ll.where(draws.uniform(()) < 0.5, ll.flip(x, 1), x)

    def noise(x: Any, draws: Any) -> Any:
        return x + 0.1 * draws.normal((2, 2))

    def build() -> Any:
        rows = ll.data.from_arrays(pictures).shuffle(seed=4).map(flip, seed=1).map(noise, seed=2)
        return rows.batch(3).prefetch().repeat(2)

    first = [x.numpy() for x in build()]
    iterator = iter(build())
    for _ in range(4):
        next(iterator)
    resumed = iter(build())
    resumed.set_state(iterator.get_state())
    np.testing.assert_equal([x.numpy() for x in resumed], first[4:])
    assert not np.array_equal(first[0], first[3])  # another pass: another order, and other draws
