"""Two networks that train each other: a generator learns a ring of points from a critic that tells them apart."""

import numpy as np

import limelight as ll


def network(out: int) -> ll.nn.Sequential:
    """Three layers."""
    hidden = [ll.nn.Dense(64, activation="leaky_relu") for _ in range(2)]
    return ll.nn.Sequential(*hidden, ll.nn.Dense(out))


def main(steps: int = 1500) -> float:
    """Returns how far the generator's points lie from the ring, on average."""
    ll.random.seed(0)
    generator, critic = network(2), network(1)
    generator.build((None, 8))
    critic.build((None, 2))
    makers, judges = ll.optim.Adam(1e-3, beta1=0.5), ll.optim.Adam(1e-3, beta1=0.5)

    @ll.function
    def step(real):
        noise = ll.random.normal((real.shape[0], 8))
        with ll.GradientTape(persistent=True) as tape:
            made = generator(noise)
            on_real, on_made = critic(real), critic(made)
            told_real = ll.nn.sigmoid_cross_entropy(on_real, ll.ones_like(on_real))
            told_made = ll.nn.sigmoid_cross_entropy(on_made, ll.zeros_like(on_made))
            critics = ll.mean(told_real) + ll.mean(told_made)
            generators = ll.mean(ll.nn.sigmoid_cross_entropy(on_made, ll.ones_like(on_made)))
        judges.apply(tape.gradient(critics, critic), critic)
        makers.apply(tape.gradient(generators, generator), generator)
        return critics, generators

    draws = np.random.default_rng(0)
    for i in range(steps):
        angle = draws.uniform(0.0, 2.0 * np.pi, size=128)
        critics, generators = step(np.stack([np.cos(angle), np.sin(angle)], axis=-1).astype("float32"))
        if i % 500 == 0:
            print(f"step {i}: critic {critics.item():.3f}, generator {generators.item():.3f}")

    radius = ll.linalg.vector_norm(generator(ll.random.normal((500, 8))), axis=-1)
    return ll.mean(ll.abs(radius - 1.0)).item()


if __name__ == "__main__":
    print(f"the points lie {main():.3f} from the ring")
