"""A character transformer: attention with a causal mask, a schedule, clipping, and text drawn from what it learned."""

import numpy as np

import limelight as ll

TEXT = """Tell me the tale of the two turtles that tried to teach the tide to turn.
They told it, then they taught it, and the tide, it turned to them and told the tale. """


class Block(ll.Module):
    """Attention to what came before, then a network for each place; both add to their input."""

    def __init__(self, width: int, heads: int) -> None:
        self.norm1, self.norm2 = ll.nn.LayerNorm(), ll.nn.LayerNorm()
        self.attention = ll.nn.MultiHeadAttention(heads)
        self.inner = ll.nn.Sequential(ll.nn.Dense(4 * width, activation="gelu"), ll.nn.Dense(width))

    def __call__(self, x):
        x = x + self.attention(self.norm1(x), causal=True)
        return x + self.inner(self.norm2(x))


class Transformer(ll.Module):
    """From characters, as numbers, to the scores of the next one at each place."""

    def __init__(self, characters: int, length: int, width: int = 32) -> None:
        self.characters, self.places = ll.nn.Embedding(characters, width), ll.nn.Embedding(length, width)
        self.blocks = [Block(width, heads=4) for _ in range(2)]
        self.out = ll.nn.Dense(characters)

    def __call__(self, numbers):
        x = self.characters(numbers) + self.places(ll.arange(numbers.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.out(x)


def main(steps: int = 300, length: int = 24) -> float:
    """Returns the loss, in nats a character, at the end."""
    ll.random.seed(0)
    letters = sorted(set(TEXT))
    numbers = np.array([letters.index(c) for c in TEXT])
    windows = np.lib.stride_tricks.sliding_window_view(numbers, length + 1)
    net = Transformer(len(letters), length)
    optimizer = ll.optim.AdamW(ll.optim.schedules.Cosine(3e-3, steps))

    @ll.function
    def step(window):
        with ll.GradientTape() as tape:
            loss = ll.mean(ll.nn.softmax_cross_entropy(net(window[:, :-1]), window[:, 1:]))
        grads = ll.optim.clip_by_global_norm(tape.gradient(loss, net), 1.0)
        optimizer.apply(grads, net)
        return loss

    draws = np.random.default_rng(0)
    for _ in range(steps):
        loss = step(windows[draws.integers(len(windows), size=16)])

    text = list(numbers[:length])
    for _ in range(60):
        text.append(ll.random.categorical(net(np.array([text[-length:]]))[0, -1]).item())
    print("".join(letters[i] for i in text))
    return loss.item()


if __name__ == "__main__":
    print(f"loss {main():.3f}")
