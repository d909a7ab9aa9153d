"""Programs as a newcomer writes them from the README and `help()`: small, seeded, judged by what they have learnt."""

from __future__ import annotations

import numpy as np
import pytest

import limelight as ll

pytestmark = pytest.mark.slow
nn, optim = ll.nn, ll.optim


@pytest.fixture(autouse=True)
def _seeded():
    ll.random.seed(0)


def trained(model, loss_fn, data, steps, optimizer):
    """The losses of `steps` staged steps on `data`."""

    @ll.function
    def step(*batch):
        with ll.GradientTape() as tape:
            loss = loss_fn(model, *batch)
        variables = model.trainable_variables
        optimizer.apply(optim.clip_by_global_norm(tape.gradient(loss, variables), 1.0), variables)
        return loss

    return [step(*data).item() for _ in range(steps)]


def test_regression_with_batches_and_early_stopping():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(64, 3)).astype("float32")
    y = x @ np.array([[1.0], [-2.0], [0.5]], "float32") + 0.3
    model, optimizer = nn.Dense(1), optim.Adam(0.05)
    best, waited, epochs = np.inf, 0, 0
    while waited < 3 and epochs < 60:
        epochs += 1
        order = rng.permutation(48)
        for i in range(0, 48, 16):
            rows = order[i : i + 16]
            with ll.GradientTape() as tape:
                loss = nn.mean_squared_error(model(x[rows]), y[rows])
            optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
        validation = nn.mean_squared_error(model(x[48:]), y[48:]).item()
        best, waited = (validation, 0) if validation < best - 1e-4 else (best, waited + 1)
    assert best < 1e-2
    np.testing.assert_allclose(model.kernel.numpy()[:, 0], [1.0, -2.0, 0.5], atol=0.1)


def test_images_are_classified_by_a_convolution():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 32)
    images = rng.normal(0.0, 0.1, (32, 8, 8, 1)).astype("float32")
    images[labels == 0, 3] += 1.0  # a row
    images[labels == 1, :, 3] += 1.0  # a column
    model = nn.Sequential(nn.Conv(4, 3, activation="relu"), nn.MaxPool(2), nn.BatchNorm(), nn.Flatten(), nn.Dense(2))

    def loss_fn(model, x, y):
        return ll.mean(nn.softmax_cross_entropy(model(x, training=True), y))

    losses = trained(model, loss_fn, (images, labels), 20, optim.Adam(0.02))
    assert losses[-1] < 0.2 < losses[0]
    assert ll.mean(ll.argmax(model(images), 1) == labels).item() > 0.9


def test_a_recurrent_network_follows_a_sine():
    t = np.arange(60, dtype="float32") * 0.3
    waves = np.sin(t[None] + np.arange(8, dtype="float32")[:, None])[..., None]
    model = nn.Sequential(nn.LSTM(8, return_sequences=True), nn.Dense(1))
    losses = trained(
        model, lambda m, x, y: nn.mean_squared_error(m(x), y), (waves[:, :20], waves[:, 1:21]), 60, optim.Adam(0.03)
    )
    assert losses[-1] < 0.2 * losses[0]


class VAE(ll.Module):
    def __init__(self):
        self.encoder = nn.Sequential(nn.Dense(16, "tanh"), nn.Dense(4))
        self.decoder = nn.Sequential(nn.Dense(16, "tanh"), nn.Dense(6))

    def call(self, x):
        mean, log_variance = ll.split(self.encoder(x), 2, axis=-1)
        z = mean + ll.exp(0.5 * log_variance) * ll.random.normal(ll.shape_of(mean))
        divergence = 0.5 * ll.sum(ll.exp(log_variance) + mean**2 - 1.0 - log_variance, axis=-1)
        return self.decoder(z), divergence


def test_a_variational_autoencoder():
    x = (np.random.default_rng(0).random((32, 1)) < 0.5) * np.ones((32, 6), "float32")

    def loss_fn(model, x):
        logits, divergence = model(x)
        return ll.mean(ll.sum(nn.sigmoid_cross_entropy(logits, x), axis=-1) + 0.1 * divergence)

    losses = trained(VAE(), loss_fn, (x,), 80, optim.Adam(0.02))
    assert losses[-1] < 0.4 * losses[0]


def test_two_networks_that_play_against_each_other():
    maker, judge = nn.Sequential(nn.Dense(8, "relu"), nn.Dense(1)), nn.Sequential(nn.Dense(8, "relu"), nn.Dense(1))
    maker_optimizer, judge_optimizer = optim.Adam(0.01), optim.Adam(0.02)

    @ll.function
    def play(real):
        noise = ll.random.normal((32, 2))
        with ll.GradientTape(persistent=True) as tape:
            made = maker(noise)
            of_real, of_made = judge(real), judge(made)
            judged = ll.mean(nn.sigmoid_cross_entropy(of_real, ll.ones_like(of_real))) + ll.mean(
                nn.sigmoid_cross_entropy(of_made, ll.zeros_like(of_made))
            )
            fooled = ll.mean(nn.sigmoid_cross_entropy(of_made, ll.ones_like(of_made)))
        for loss, model, optimizer in ((judged, judge, judge_optimizer), (fooled, maker, maker_optimizer)):
            optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
        return ll.mean(made)

    means = [play(ll.random.normal((32, 1), 3.0, 0.2)).item() for _ in range(250)]
    assert abs(np.mean(means[-50:]) - 3.0) < 1.0
    assert play.trace_count <= 2  # the first makes the state


def test_a_gaussian_process_learns_its_length_scale():
    x = np.linspace(0.0, 4.0, 12)
    y = np.sin(x)
    log_scale, log_noise = ll.Variable(np.float64(1.5)), ll.Variable(np.float64(-1.0))

    @ll.function
    def loss_fn():
        squares = ll.cdist(x[:, None], x[:, None], "sqeuclidean")
        k = ll.exp(-0.5 * squares / ll.exp(2.0 * log_scale)) + (ll.exp(2.0 * log_noise) + 1e-6) * ll.eye(
            12, dtype="float64"
        )
        factor = ll.linalg.cholesky(k)
        white = ll.linalg.triangular_solve(factor, ll.constant(y)[:, None])
        return 0.5 * ll.sum(white**2) + ll.sum(ll.log(ll.diagonal(factor)))

    optimizer, variables, losses = optim.Adam(0.1), [log_scale, log_noise], []
    for _ in range(40):
        with ll.GradientTape() as tape:
            loss = loss_fn()
        optimizer.apply(tape.gradient(loss, variables), variables)
        losses.append(loss.item())
    assert losses[-1] < losses[0] - 5.0
    assert 0.5 < ll.exp(log_scale).item() < 4.0


def test_a_differential_equation_is_learnt_through_a_scan():
    truth = np.exp(-0.7 * np.arange(11) * 0.1)
    rate = ll.Variable(0.1, dtype="float64")

    @ll.function
    def loss_fn():
        def euler(y, _):
            y = y - 0.1 * rate * y
            return y, y

        _, path = ll.scan(euler, ll.constant(1.0, ll.float64), length=10)
        return ll.mean((path - truth[1:]) ** 2)

    optimizer = optim.Adam(0.05)
    for _ in range(120):
        with ll.GradientTape() as tape:
            loss = loss_fn()
        optimizer.apply([tape.gradient(loss, rate)], [rate])
    assert abs(rate.item() - 0.7) < 0.1


def test_hamiltonian_monte_carlo_finds_mean_and_spread():
    def potential(q):
        return ll.sum((q - 2.0) ** 2) / (2.0 * 0.25)

    slope = ll.grad(potential)

    @ll.function
    def sample(q):
        p = start = ll.random.normal((1,))
        position = q
        for _ in range(8):
            p = p - 0.05 * slope(position)
            position = position + 0.1 * p
            p = p - 0.05 * slope(position)
        energy = potential(q) + ll.sum(start**2) / 2.0 - potential(position) - ll.sum(p**2) / 2.0
        return ll.where(ll.log(ll.random.uniform(())) < energy, position, q)

    q, samples = ll.zeros((1,)), []
    for _ in range(400):
        q = sample(q)
        samples.append(q.item())
    assert abs(np.mean(samples[100:]) - 2.0) < 0.2
    assert abs(np.std(samples[100:]) - 0.5) < 0.15


def test_a_policy_is_learnt_from_rewards_of_python():
    logits, optimizer = ll.Variable(ll.zeros(3)), optim.SGD(0.2)
    pays = np.array([0.0, 1.0, 0.2], "float32")

    @ll.function
    def step():
        actions = ll.random.categorical(logits, (32,))
        reward = ll.py_func(lambda a: pays[a.numpy()], [actions], ll.TensorSpec((32,), "float32"))
        with ll.GradientTape() as tape:
            chosen = ll.take(nn.log_softmax(logits), actions, 0)
            loss = -ll.mean(chosen * (reward - ll.mean(reward)))
        optimizer.apply([tape.gradient(loss, logits)], [logits])
        return ll.mean(reward)

    for _ in range(120):
        last = step()
    assert last.item() > 0.8
    assert ll.argmax(logits).item() == 1


def test_a_start_is_learnt_from_which_one_step_suffices():
    model, optimizer = nn.Dense(1), optim.Adam(0.05)
    x = np.linspace(-1.0, 1.0, 8, dtype="float32")[:, None]
    model(x)

    def after_one_step(slope):
        values = {path: v.read_value() for path, v in model.named_variables()}

        def loss_of(values):
            return nn.mean_squared_error(ll.functional_call(model, values, x), slope * x)

        gradients = ll.grad(loss_of)(values)
        return loss_of(ll.tree.map(lambda v, g: v - 0.5 * g, values, gradients))

    losses = []
    for _ in range(40):
        with ll.GradientTape() as tape:
            loss = sum(after_one_step(slope) for slope in (1.0, 2.0)) / 2.0
        optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
        losses.append(loss.item())
    assert losses[-1] < 0.2 * losses[0]


class Characters(ll.Module):
    def __init__(self, count, units):
        self.table, self.places = nn.Embedding(count, units), nn.Embedding(16, units)
        self.attention, self.norms = nn.MultiHeadAttention(2), [nn.LayerNorm(), nn.LayerNorm()]
        self.inner = nn.Sequential(nn.Dense(2 * units, "gelu"), nn.Dense(units))
        self.out = nn.Dense(count)

    def call(self, tokens):
        n = tokens.shape[1]
        x = self.table(tokens) + self.places(ll.arange(n))
        x = x + self.attention(self.norms[0](x), causal=True)
        x = x + self.inner(self.norms[1](x))
        return self.out(x)


def test_a_transformer_learns_a_text():
    text = "the cat sat on the mat. " * 4
    letters = sorted(set(text))
    tokens = np.array([letters.index(c) for c in text])
    rows = np.stack([tokens[i : i + 13] for i in range(0, 72, 6)])

    def loss_fn(model, x, y):
        return nn.softmax_cross_entropy(model(x), y, reduction="mean")

    losses = trained(Characters(len(letters), 16), loss_fn, (rows[:, :-1], rows[:, 1:]), 60, optim.Adam(0.01))
    assert losses[-1] < 0.5 * losses[0]


def test_mixed_dtypes_and_batches_that_numpy_loads(tmp_path):
    np.savez(tmp_path / "data.npz", x=np.random.default_rng(0).normal(size=(16, 4)), n=np.arange(16))
    data = np.load(tmp_path / "data.npz")
    model = nn.Dense(2)
    y = model(data["x"])  # float64, of NumPy
    assert y.dtype == ll.float32
    counts = ll.constant(data["n"])
    assert ll.mean(counts).dtype == ll.float32
    with pytest.raises(ll.errors.DTypeError, match=r"write ll\.astype"):
        _ = y[:, 0] * counts
    assert (y[:, 0] * counts.astype(y.dtype)).dtype == ll.float32
    half = ll.astype(y, ll.float16)
    assert (half + y).dtype == ll.float32
