"""Hamiltonian Monte Carlo: whole chains as one graph, each proposal a path along the gradient of the density."""

import numpy as np

import limelight as ll

COVARIANCE = np.array([[1.0, 0.9], [0.9, 1.5]], "float32")
PRECISION = np.linalg.inv(COVARIANCE)


def energy(x):
    """The negative log density of a correlated normal distribution: [chains, 2] to [chains]."""
    return 0.5 * ll.sum((x @ PRECISION) * x, axis=-1)


force = ll.grad(lambda x: ll.sum(energy(x)))


@ll.function
def sample(start, draws: int, steps: int = 10, size: float = 0.25):
    """Neal (2011), from `start` [chains, 2]: the places [draws, chains, 2], and the share of proposals accepted."""

    def propose(x, _):
        speed = ll.random.normal(x.shape)
        there, v = x, speed - size / 2 * force(x)
        for _ in range(steps):  # Python's own loop: unrolled in the trace
            there = there + size * v
            v = v - size * force(there)
        v = v + size / 2 * force(there)
        gained = energy(x) + ll.sum(speed**2, axis=-1) / 2 - energy(there) - ll.sum(v**2, axis=-1) / 2
        accepted = ll.log(ll.random.uniform(gained.shape)) < gained
        x = ll.where(accepted[:, None], there, x)
        return x, (x, accepted)

    _, (places, accepted) = ll.scan(propose, start, length=draws)
    return places, ll.mean(accepted)


def main(draws: int = 500) -> float:
    """Returns how far the covariance of the draws is from the true one, at most."""
    ll.random.seed(0)
    places, accepted = sample(ll.zeros((20, 2)), draws)
    found = np.cov(places.numpy()[draws // 10 :].reshape(-1, 2).T)
    print(f"{accepted.item():.0%} of the proposals are accepted; covariance {found.round(2).tolist()}")
    return float(np.abs(found - COVARIANCE).max())


if __name__ == "__main__":
    print(f"the covariance is off by {main():.3f}")
