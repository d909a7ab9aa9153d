"""A neural ordinary differential equation: a network is the velocity, and learns a spiral from where it leads."""

import numpy as np

import limelight as ll


def integrate(velocity, start, times):
    """The classical Runge-Kutta method from `start` [n, d] at `times` [t]: the places [t - 1, n, d] after each step."""

    def step(x, span):
        h = span[1] - span[0]
        k1 = velocity(x)
        k2 = velocity(x + h / 2 * k1)
        k3 = velocity(x + h / 2 * k2)
        k4 = velocity(x + h * k3)
        x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return x, x

    return ll.scan(step, start, ll.stack([times[:-1], times[1:]], axis=1))[1]


def main(steps: int = 300) -> float:
    """Returns the mean squared distance between the learned paths and the true ones."""
    ll.random.seed(0)
    times = ll.linspace(0.0, 3.0, 31)
    turn = ll.constant([[-0.1, 2.0], [-2.0, -0.1]])
    start = ll.random.normal((16, 2))
    true = integrate(lambda x: x @ turn, start, times)

    net = ll.nn.Sequential(ll.nn.Dense(32, activation="tanh"), ll.nn.Dense(2))
    optimizer = ll.optim.Adam(1e-2)

    @ll.function
    def step():
        with ll.GradientTape() as tape:
            loss = ll.mean((integrate(net, start, times) - true) ** 2)
        optimizer.apply(tape.gradient(loss, net), net)
        return loss

    for i in range(steps):
        loss = step()
        if i % 100 == 0:
            print(f"step {i}: loss {loss.item():.4f}")
    away = np.abs(integrate(net, start, times)[-1].numpy() - true[-1].numpy()).max()
    print(f"at the end of the spiral the paths are at most {away:.2f} apart")
    return loss.item()


if __name__ == "__main__":
    print(f"loss {main():.5f}")
