"""A Gaussian process: the scales of its kernel are learned from the likelihood of the data, by a Cholesky factor."""

import numpy as np

import limelight as ll


def kernel(a, b, scale, height):
    """The squared exponential: [n, 1] and [m, 1] to [n, m]."""
    return height**2 * ll.exp(-0.5 * (a - ll.matrix_transpose(b)) ** 2 / scale**2)


def main(steps: int = 200) -> float:
    """Returns the mean squared error of the prediction between the points that it has seen."""
    draws = np.random.default_rng(0)
    x = ll.constant(np.sort(draws.uniform(-3.0, 3.0, (30, 1)), axis=0))
    y = ll.sin(2.0 * x) + 0.1 * ll.constant(draws.normal(size=(30, 1)))
    logs = ll.Variable(np.log([2.0, 0.5, 0.5]), name="logarithms of scale, height and noise")  # float64, as x and y

    def factor():
        """The Cholesky factor of the covariance of the data (Rasmussen and Williams 2006, algorithm 2.1)."""
        scale, height, noise = ll.unstack(ll.exp(logs))
        return ll.linalg.cholesky(kernel(x, x, scale, height) + (noise**2 + 1e-8) * ll.eye(30, dtype="float64"))

    @ll.function
    def surprise():
        """The negative log likelihood of the data, without its constant."""
        root = factor()
        half = ll.linalg.triangular_solve(root, y)
        return 0.5 * ll.sum(half**2) + ll.sum(ll.log(ll.diagonal(root)))

    optimizer = ll.optim.Adam(0.05)
    for i in range(steps):
        with ll.GradientTape() as tape:
            loss = surprise()
        optimizer.apply([tape.gradient(loss, logs)], [logs])
        if i % 50 == 0:
            print(f"step {i}: {loss.item():8.3f}", *(f"{v:.3f}" for v in np.exp(logs.numpy())))

    between = ll.linspace(-2.8, 2.8, 100, dtype="float64")[:, None]
    scale, height, _ = ll.unstack(ll.exp(logs))
    told = kernel(between, x, scale, height) @ ll.linalg.cholesky_solve(factor(), y)
    return ll.mean((told - ll.sin(2.0 * between)) ** 2).item()


if __name__ == "__main__":
    print(f"mean squared error {main():.4f}")
