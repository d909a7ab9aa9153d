"""Reinforcement learning: a policy learns to balance a pole, in an environment of plain Python, called by py_func."""

import math

import numpy as np

import limelight as ll


class Pole:
    """A pole on a cart (Barto, Sutton and Anderson 1983): four numbers are its state, 0 and 1 push left and right."""

    def __init__(self, seed: int) -> None:
        self.draws = np.random.default_rng(seed)
        self.state = self.draws.uniform(-0.05, 0.05, 4)

    def step(self, action: ll.Tensor) -> tuple[np.ndarray, np.float32]:
        """Pushes for 20 ms: the state, and 1 where the pole stands, 0 where it has fallen and is put up again."""
        _, v, angle, turn = self.state
        push = ((10.0 if action.item() else -10.0) + 0.05 * turn**2 * math.sin(angle)) / 1.1
        bend = (9.8 * math.sin(angle) - math.cos(angle) * push) / (2 / 3 - 0.05 * math.cos(angle) ** 2 / 1.1)
        move = push - 0.05 * bend * math.cos(angle) / 1.1
        self.state = self.state + 0.02 * np.array([v, move, turn, bend])
        stands = abs(self.state[0]) < 2.4 and abs(self.state[2]) < 0.21
        if not stands:
            self.state = self.draws.uniform(-0.05, 0.05, 4)
        return self.state.astype("float32"), np.float32(stands)


def main(rounds: int = 60, length: int = 400) -> float:
    """Returns for how many steps the pole stands between two falls, at the end."""
    ll.random.seed(0)
    pole, optimizer = Pole(seed=0), ll.optim.Adam(1e-2)
    policy = ll.nn.Sequential(ll.nn.Dense(32, activation="tanh"), ll.nn.Dense(2))
    policy.build((None, 4))
    specs = [ll.TensorSpec((4,), "float32"), ll.TensorSpec((), "float32")]

    @ll.function
    def play(state):
        def step(state, _):
            action = ll.random.categorical(policy(state[None]))[0]
            after, stands = ll.py_func(pole.step, [action], specs)
            return after, (state, action, stands)

        return ll.scan(step, state, length=length)[1]

    @ll.function
    def learn(states, actions, returns):
        advantage = (returns - ll.mean(returns)) / (ll.std(returns) + 1e-6)
        with ll.GradientTape() as tape:
            loss = ll.mean(ll.nn.softmax_cross_entropy(policy(states), actions) * advantage)
        optimizer.apply(tape.gradient(loss, policy), policy)

    def counted(later, now):
        """What an action is worth in REINFORCE (Williams 1992): what comes up to the fall, less the later it comes."""
        worth = now * (1.0 + 0.98 * later)
        return worth, worth

    for i in range(rounds):
        states, actions, stands = play(pole.state.astype("float32"))
        _, returns = ll.scan(counted, ll.constant(0.0), stands, reverse=True)
        learn(states, actions, returns)
        lasted = length / (1.0 + ll.sum(1.0 - stands).item())
        if i % 10 == 0:
            print(f"round {i}: the pole stands for {lasted:.0f} steps")
    return lasted


if __name__ == "__main__":
    print(f"at the end it stands for {main():.0f} steps")
