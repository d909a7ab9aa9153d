"""An LSTM that adds: it reads 20 pairs of a number and a mark, and says the sum of the two numbers that are marked."""

import numpy as np

import limelight as ll


def batch(draws: np.random.Generator, size: int, length: int = 20) -> tuple[np.ndarray, np.ndarray]:
    """The adding problem of Hochreiter and Schmidhuber (1997): float32 arrays [size, length, 2] and [size, 1]."""
    numbers = draws.uniform(0.0, 1.0, (size, length)).astype("float32")
    marks = np.zeros_like(numbers)
    rows = np.arange(size)
    marks[rows, draws.integers(0, length // 2, size)] = 1.0
    marks[rows, draws.integers(length // 2, length, size)] = 1.0
    return np.stack([numbers, marks], axis=-1), (numbers * marks).sum(axis=1, keepdims=True)


def main(steps: int = 600) -> float:
    """Returns the mean squared error on new data; saying 1 always has 1/6."""
    ll.random.seed(0)
    net = ll.nn.Sequential(ll.nn.LSTM(32), ll.nn.Dense(1))
    optimizer = ll.optim.Adam(1e-2)

    @ll.function
    def step(x, y):
        with ll.GradientTape() as tape:
            loss = ll.mean((net(x) - y) ** 2)
        grads = tape.gradient(loss, net)
        optimizer.apply(ll.optim.clip_by_global_norm(grads, 1.0), net)
        return loss, ll.optim.global_norm(grads)

    draws = np.random.default_rng(0)
    for i in range(steps):
        loss, norm = step(*batch(draws, 64))
        if i % 200 == 0:
            print(f"step {i}: loss {loss.item():.4f}, norm of the gradient {norm.item():.3f}")

    x, y = batch(draws, 1000)
    return ll.mean((net(x) - y) ** 2).item()


if __name__ == "__main__":
    print(f"mean squared error {main():.4f}")
