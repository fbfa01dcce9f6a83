"""Thompson sampling on mushrooms: regret beside that of greedy agents."""

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from comparisons import Comparison
from program import (
    DataError,
    argument_parser,
    mean_and_error,
    names_among,
    panels,
    published,
    run,
    with_error,
)
from records import RecordFile
from timing import markdown_table

if TYPE_CHECKING:
    from tfbbb import BayesianModel

# Blundell et al. 2015, section 5.3: two hidden layers of 100 ReLUs, two draws averaged,
# a buffer of 4096 rows, minibatches of 64.
HIDDEN, DRAWS, CAPACITY, BATCH_SIZE = (100, 100), 2, 4096, 64
# The probabilities of a random action; the Bayesian agent needs none.
AGENTS = {"thompson": 0.0, "greedy": 0.0, "greedy 1 %": 0.01, "greedy 5 %": 0.05}
EDIBLE, POISONED = 5.0, -35.0
# Adam's rate falls from the first to the second over the first training steps.
LEARNING_RATES, STEPS_OF_DECAY = (3e-3, 3e-4), 5000
# Of the Bayesian agent: standard deviation of the noise of a reward, and of the
# posterior at the start, in units of that of the prior, 1 / sqrt(fan_in).
NOISE, INITIAL_SCALE = 1.0, 0.5
# Points of the recorded curves of regret.
POINTS = 100
# Rounds of one execution of the compiled loop.
ROUNDS_AT_ONCE = 1000


def main(arguments: Sequence[str] | None = None) -> None:
    """Lets the agents play, and compares their regret."""
    parser = argument_parser(__doc__)
    parser.add_argument("--runs", type=int, default=5, help="runs of each agent")
    parser.add_argument("--rounds", type=int, default=50_000, help="choices in a run")
    parser.add_argument(
        "--steps",
        type=int,
        default=2,
        help="training steps after each choice (Blundell et al.: 64)",
    )
    parser.add_argument(
        "--agents",
        type=names_among(list(AGENTS)),
        default=list(AGENTS),
        help="agents separated by commas (default: thompson,greedy,greedy 1 %%,"
        "greedy 5 %%)",
    )
    options = parser.parse_args(arguments)
    run(__file__, options, functools.partial(measure, options=options), report, draw)


def measure(measured: RecordFile, options: Any) -> None:
    """Adds a record for each run of each agent."""
    rounds, runs = (300, 1) if options.smoke else (options.rounds, options.runs)
    onehot, poisonous = mushrooms(options.data)
    settings = {
        "rounds": rounds,
        "steps": options.steps,
        "learning_rates": list(LEARNING_RATES),
        "steps_of_decay": STEPS_OF_DECAY,
        "noise": NOISE,
        "initial_scale": INITIAL_SCALE,
        "draws": DRAWS,
        "capacity": CAPACITY,
        "batch_size": BATCH_SIZE,
    }
    for seed in range(runs):
        for agent in options.agents:
            play = functools.partial(
                regret, agent, onehot, poisonous, rounds, options.steps, seed
            )
            measured.measure(
                {"agent": agent, "run": seed}, play, settings=settings, seed=seed
            )


def mushrooms(data: Path) -> tuple[np.ndarray, np.ndarray]:
    """Returns the one-hot codes of the mushrooms, and whether each is poisonous."""
    path = data / "mushroom.npz"
    if not path.is_file():
        raise DataError(
            "`bandit` needs `mushroom.npz` with the arrays `onehot` [rows, codes] and "
            f"`poisonous` [rows]. Received: --data {data}"
        )
    table = np.load(path, allow_pickle=False)
    return table["onehot"].astype("float32"), table["poisonous"].astype(bool)


def network(num_inputs: int, *, bayesian: bool) -> "BayesianModel":
    """Returns the model of the reward of a mushroom and an action."""
    import keras

    import tfbbb

    posterior: Any = tfbbb.posteriors.MeanFieldNormal(INITIAL_SCALE)
    options: dict[str, Any] = {"posterior": posterior, "bias_posterior": posterior}
    if not bayesian:
        options = {"posterior": "point", "bias_posterior": "point"}
        options |= {"prior": None, "bias_prior": None}
    inputs = outputs = keras.Input((num_inputs,))
    for units in HIDDEN:
        outputs = tfbbb.layers.DenseVariational(units, "relu", **options)(outputs)
    outputs = tfbbb.layers.DenseVariational(1, **options)(outputs)
    likelihood = tfbbb.likelihoods.Normal(scale=NOISE)
    model = tfbbb.BayesianModel(inputs, outputs, likelihood=likelihood)
    first, last = LEARNING_RATES
    rate = keras.optimizers.schedules.PolynomialDecay(first, STEPS_OF_DECAY, last)
    model.compile(tfbbb.optimizers.Adam(rate))
    model.likelihood.adapt([0.0, EDIBLE, POISONED])
    return model


def regret(
    name: str,
    onehot: np.ndarray,
    poisonous: np.ndarray,
    rounds: int,
    steps: int,
    seed: int,
) -> dict[str, Any]:
    """Plays one run; returns the cumulative regret at `POINTS` rounds.

    Regret is the reward of an oracle, which eats the edible mushrooms alone, less that
    of the agent.
    """
    import keras
    import tensorflow as tf

    from tfbbb.lab.bandits import ThompsonSampling

    keras.utils.set_random_seed(seed)
    random = np.random.default_rng(seed)
    order = random.integers(len(onehot), size=rounds)
    is_poisonous = poisonous[order]
    # A poisonous mushroom harms in one of two cases.
    harms = is_poisonous & (random.random(rounds) < 0.5)
    eaten = tf.constant(np.where(harms, POISONED, EDIBLE), tf.float32)
    rows, places = tf.constant(onehot), tf.constant(order)

    def inputs(index: Any) -> Any:
        both = tf.tile(rows[places[index]][tf.newaxis], [2, 1])
        return tf.concat([both, tf.eye(2)], axis=1)

    def reward(index: Any, action: Any) -> Any:
        return tf.where(action == 1, eaten[index], 0.0)

    agent = ThompsonSampling(
        network(onehot.shape[1] + 2, bayesian=name == "thompson"),
        draws=DRAWS if name == "thompson" else 1,
        capacity=CAPACITY,
        batch_size=BATCH_SIZE,
        epsilon=AGENTS[name],
        seed=seed,
    )
    actions, rewards = [], []
    for first in range(0, rounds, ROUNDS_AT_ONCE):
        count = min(ROUNDS_AT_ONCE, rounds - first)
        played = agent.play(inputs, reward, count, steps, first)
        actions.append(played[0])
        rewards.append(played[1])
    ate = np.concatenate(actions) == 1
    lost = np.where(is_poisonous, 0.0, EDIBLE) - np.concatenate(rewards)
    at = np.unique(np.linspace(rounds / POINTS, rounds, POINTS).astype(int))
    return {
        "regret": float(lost.sum()),
        "ate_poisonous": int((ate & is_poisonous).sum()),
        "left_edible": int((~ate & ~is_poisonous).sum()),
        "rounds_of_curve": at,
        "curve": np.cumsum(lost)[at - 1],
    }


def report(measured: RecordFile) -> str:
    """Returns the table of regrets beside the published ones."""
    rounds = max((r["rounds_of_curve"][-1] for r in measured.records), default=0)
    steps = [step for step in (1_000, 10_000, 50_000, rounds) if step <= rounds]
    steps = sorted(set(steps))
    lines = []
    for name in AGENTS:
        records = measured.select(agent=name)
        if records:
            cells = [
                with_error([_at(record, step) for record in records], 0)
                for step in steps
            ]
            mistakes = [with_error([r[x] for r in records], 0) for x in _MISTAKES]
            lines.append([name, str(len(records)), *cells, *mistakes])
    for name, figures in published("bandit")["agents"].items():
        cells = [str(figures.get(str(step), "")) for step in steps]
        lines.append([f"{name}, Blundell et al. 2015", "5", *cells, "", ""])
    header = ["agent", "runs", *(f"regret after {step}" for step in steps)]
    table = markdown_table([*header, "poisonous eaten", "edible left"], lines)
    each = sorted({record["settings"]["steps"] for record in measured.records})
    return (
        f"{table}\n\nTraining steps of 64 rows after each choice: "
        f"{', '.join(map(str, each))} (Blundell et al.: 64). Means over runs and their "
        "standard errors; each run has its own order of mushrooms, the same for all "
        "agents."
    )


_MISTAKES = ("ate_poisonous", "left_edible")


def _at(record: dict[str, Any], step: int) -> float:
    """Returns the regret of a run after a number of rounds."""
    return float(np.interp(step, record["rounds_of_curve"], record["curve"]))


def compare(measured: RecordFile) -> list[Comparison]:
    """Returns our regret beside the published one, where the rounds are as many."""
    records = [
        record
        for record in measured.select(agent="thompson")
        if record["settings"]["rounds"] == 50_000
    ]
    if not records:
        return []
    theirs = published("bandit")["agents"]["Bayes by Backprop"]["50000"]
    ours, _ = mean_and_error([record["regret"] for record in records])
    return [
        Comparison(
            "regret",
            "50000 rounds",
            ours=ours,
            theirs=theirs,
            rival="Bayes by Backprop, Blundell et al. 2015",
            larger_is_better=False,
        )
    ]


def draw(measured: RecordFile) -> Any:
    """Returns the curves of cumulative regret."""
    from tfbbb.scores.plots.style import CYCLE, DARK

    figure, ((axes,),) = panels(1, 1, (7.0, 4.5))
    for name, colour in zip(AGENTS, CYCLE, strict=False):
        records = measured.select(agent=name)
        for number, record in enumerate(records):
            axes.plot(
                record["rounds_of_curve"],
                record["curve"],
                color=colour,
                linewidth=1.2,
                label=name if number == 0 else None,
            )
    figures = published("bandit")["agents"]["Bayes by Backprop"]
    axes.plot(
        [int(step) for step in figures if step.isdigit()],
        [value for step, value in figures.items() if step.isdigit()],
        "o--",
        color=DARK,
        label="Bayes by Backprop, Blundell et al. 2015",
    )
    axes.set_xlabel("mushrooms")
    axes.set_ylabel("cumulative regret")
    axes.set_yscale("log")
    axes.legend(frameon=False)
    return figure


if __name__ == "__main__":
    main()
