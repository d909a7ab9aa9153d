"""A variational autoencoder of digits: draws that gradients pass through, and pictures made from noise."""

from sklearn.datasets import load_digits

import limelight as ll


class Autoencoder(ll.Module):
    """A picture to a distribution over codes, and a code to a picture."""

    def __init__(self, pixels: int, codes: int) -> None:
        self.encode = ll.nn.Sequential(ll.nn.Dense(64, activation="relu"), ll.nn.Dense(2 * codes))
        self.decode = ll.nn.Sequential(ll.nn.Dense(64, activation="relu"), ll.nn.Dense(pixels))

    def loss(self, x):
        """The bound on the log likelihood (Kingma and Welling, 2014), negated; one number for each picture."""
        mean, log_var = ll.split(self.encode(x), 2, axis=-1)
        code = mean + ll.exp(log_var / 2) * ll.random.normal(mean.shape)
        missed = ll.sum(ll.nn.sigmoid_cross_entropy(self.decode(code), x), axis=-1)
        return missed + 0.5 * ll.sum(mean**2 + ll.exp(log_var) - log_var - 1.0, axis=-1)


def main(epochs: int = 30) -> float:
    """Returns the mean bound over the pictures, in nats, at the end."""
    ll.random.seed(0)
    pictures = (load_digits().data / 16.0).astype("float32")
    data = ll.data.from_arrays(pictures).shuffle(seed=0).batch(128, last="drop")
    net, optimizer = Autoencoder(64, 8), ll.optim.Adam(2e-3)

    @ll.function
    def step(x):
        with ll.GradientTape() as tape:
            loss = ll.mean(net.loss(x))
        optimizer.apply(tape.gradient(loss, net), net)
        return loss

    for _ in range(epochs):
        losses = [step(x) for x in data]

    picture = ll.sigmoid(net.decode(ll.random.normal((1, 8)))).numpy().reshape(8, 8)
    print("\n".join("".join(" .:-=+*#%@"[int(9.99 * v)] * 2 for v in row) for row in picture))
    return ll.mean(ll.stack(losses)).item()


if __name__ == "__main__":
    print(f"bound {main():.2f} nats")
