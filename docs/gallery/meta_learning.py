"""Meta-learning: weights from which one gradient step learns a new sine wave, by a gradient of a gradient."""

import numpy as np

import limelight as ll


def network(weights, x):
    """Three layers, as a function of its weights: [n, 1] to [n, 1]."""
    for kernel, bias in weights[:-1]:
        x = ll.tanh(x @ kernel + bias)
    kernel, bias = weights[-1]
    return x @ kernel + bias


def error(weights, x, y):
    """The mean squared error of the network."""
    return ll.mean((network(weights, x) - y) ** 2)


def adapted(weights, x, y, rate=0.05):
    """The weights after one step of gradient descent."""
    return ll.tree.map(lambda w, g: w - rate * g, weights, ll.grad(error)(weights, x, y))


def waves(draws: np.random.Generator, tasks: int, points: int = 20) -> list[np.ndarray]:
    """Sine waves of random height and phase: two sets of points of each, as float32 arrays [tasks, points, 1]."""
    height, phase = draws.uniform(1.0, 2.0, (tasks, 1, 1)), draws.uniform(0.0, np.pi, (tasks, 1, 1))
    xs = draws.uniform(-3.0, 3.0, (2, tasks, points, 1))
    return [a.astype("float32") for x in xs for a in (x, height * np.sin(x - phase))]


def main(steps: int = 600) -> float:
    """Returns the error on waves never seen, after one step on 20 points of each."""
    ll.random.seed(0)
    sizes = [(1, 40), (40, 40), (40, 1)]
    weights = [[ll.Variable(ll.random.normal(s) / s[0] ** 0.5), ll.Variable(ll.zeros(s[1]))] for s in sizes]
    optimizer = ll.optim.Adam(3e-3)

    def after_a_step(weights, x, y, new_x, new_y):
        return error(adapted(weights, x, y), new_x, new_y)

    over_tasks = ll.vectorize(after_a_step, in_axes=(None, 0, 0, 0, 0))  # MAML (Finn, Abbeel and Levine 2017)

    @ll.function
    def step(*task):
        with ll.GradientTape() as tape:
            values = ll.tree.map(lambda v: v.read_value(), weights)
            loss = ll.mean(over_tasks(values, *task))
        flat = ll.tree.leaves(weights)
        optimizer.apply(tape.gradient(loss, flat), flat)
        return loss

    draws = np.random.default_rng(0)
    for i in range(steps):
        loss = step(*waves(draws, 10))
        if i % 200 == 0:
            print(f"step {i}: error after one step {loss.item():.3f}")
    values = ll.tree.map(lambda v: v.read_value(), weights)
    return ll.mean(over_tasks(values, *waves(draws, 100))).item()


if __name__ == "__main__":
    print(f"error {main():.3f}")
