"""Networks of one step of a time series, and the paths that they walk."""

from dataclasses import dataclass
from typing import Any

import numpy as np

LAGS = 13
SEASONS = 8
# Weights of the same step one season ago, two seasons ago, ...
SEASONAL = 0.7 ** np.arange(SEASONS)
LEVELS_OF_SEASONS = (1, 3, 8)
# Prior standard deviations: of lag j LAG / sqrt(j), of levels, of the drift.
LAG, LEVEL, DRIFT = 0.15, 0.3, 0.015
DF = 8.0
LEARNING_RATE, STEPS, EPOCH = 0.02, 1500, 50
# Of the network with an LSTM.
MEMBERS, UNITS, RECURRENT_STEPS, TEMPERATURE = 2, 8, 800, 1.0
# A forecast has NOISES paths of noise for each of FUNCTIONS draws of the weights.
NOISES, FUNCTIONS = 200, 20


@dataclass(frozen=True)
class Table:
    """The columns of lags of a series, each a linear function of a window of values.

    A value is expected to change as in the seasons before, `SEASONAL` their weights.
    The columns say what happened since: by how much each of the last changes differed
    from the expected one, how far the value is from those of the same season, and how
    much farther than in the year before it. With the constant last, they have the
    scale that makes N(0, 1) the prior of their weights.

    Attributes:
        season: Steps of a season.
        columns: [window, columns].
        expected: The expected change [window].
        scales: What the columns have been multiplied with, [columns].
    """

    season: int
    columns: np.ndarray
    expected: np.ndarray
    scales: np.ndarray

    @classmethod
    def of(cls, season: int) -> "Table":
        """Returns the table of a season before it knows the scale of the columns."""
        size = (SEASONS + 2) * season + LAGS + 2
        values = np.eye(size)
        changes = np.diff(values, axis=0)

        def expect(place: int) -> np.ndarray:
            count = min(SEASONS, place // season)
            weights = SEASONAL[:count] / SEASONAL[:count].sum()
            return weights @ changes[place - season * np.arange(1, count + 1)]

        def above(place: int, seasons: int) -> np.ndarray:
            before = values[place - season * np.arange(1, seasons + 1)]
            return values[place] - before.mean(axis=0)

        last = size - 1
        lags = [changes[last - j] - expect(last - j) for j in range(1, LAGS + 1)]
        year = np.mean([above(last - j, SEASONS) for j in range(season)], axis=0)
        levels = [above(last, seasons) for seasons in LEVELS_OF_SEASONS]
        columns = np.stack([*lags, above(last, SEASONS) - year, *levels], axis=1)
        return cls(season, columns, expect(last), np.ones(columns.shape[1]))

    @property
    def window(self) -> int:
        """How many values a row is made of."""
        return len(self.columns)

    def windows(self, series: np.ndarray) -> np.ndarray:
        """Returns the values up to each one [points, window], the newest one last.

        Those before the first one continue the trend of the first seasons backwards.
        """
        season = self.season
        seasons = min(3, len(series) // season - 1)
        later = series[seasons * season : (seasons + 1) * season]
        trend = np.mean(later - series[:season]) / seasons
        place = np.arange(-self.window + 1, 0)
        before = series[place % season] + trend * (place // season)
        values = np.concatenate([before, series])
        return np.lib.stride_tricks.sliding_window_view(values, self.window)

    def scaled(self, windows: np.ndarray) -> "Table":
        """Returns the table whose columns have the scale of the prior there."""
        spread = np.sqrt(np.mean((windows @ self.columns) ** 2, axis=0))
        prior = np.full(len(spread), LEVEL)
        prior[:LAGS] = LAG / np.sqrt(np.arange(1, LAGS + 1))
        scales = prior / np.maximum(spread, 1e-9)
        return Table(self.season, self.columns * scales, self.expected, scales)


class Forecaster:
    """A network of one step, which walks as many steps as asked for.

    Args:
        season: Steps of a season.
        horizon: Steps of a path.
        recurrent: Whether an LSTM reads the lags, beside their linear function.
        seed: The seed.
        steps: Training steps of a fit.
    """

    def __init__(
        self, season: int, horizon: int, *, recurrent: bool, seed: int, steps: int
    ) -> None:
        self.table = Table.of(season)
        self.horizon, self.recurrent = horizon, recurrent
        self.seed, self.steps = seed, steps
        self.unit = 0.0

    def fit(self, series: np.ndarray) -> None:
        """Learns one step of a series; goes on from the fit before, if there is one."""
        import tensorflow as tf

        season = self.table.season
        windows = self.table.windows(series)[season:-1]
        change = np.diff(series)[season:] - windows @ self.table.expected
        if not self.unit:
            self._build(windows, change)
        rows, y = self._rows(windows / self.unit), change / self.unit
        data = tf.data.Dataset.from_tensors((rows, y[:, np.newaxis])).repeat(EPOCH)
        self.model.fit(
            data,
            epochs=self.steps // EPOCH,
            dataset_size=len(y),
            shuffle=False,
            verbose=0,
        )

    def _build(self, windows: np.ndarray, change: np.ndarray) -> None:
        """Makes the networks, in the units of the first fit."""
        import keras

        import tfbbb

        keras.utils.set_random_seed(self.seed)
        self.unit = change.std()
        self.table = self.table.scaled(windows / self.unit)
        inputs = keras.Input((self.table.columns.shape[1] + 1,))
        outputs = recurrent(inputs) if self.recurrent else linear(inputs)
        self.model = tfbbb.BayesianModel(
            inputs,
            outputs,
            likelihood=tfbbb.likelihoods.StudentT(df=DF, standardize=False),
            members=MEMBERS if self.recurrent else 1,
        )
        # Each fit begins at the whole learning rate, and ends at none.
        schedule = keras.optimizers.schedules.CosineDecayRestarts(
            LEARNING_RATE, self.steps, t_mul=1.0
        )
        temperature = TEMPERATURE if self.recurrent else 1.0
        self.model.compile(
            keras.optimizers.Adam(schedule),
            steps_per_execution=EPOCH,
            kl_schedule=tfbbb.kl_schedules.Tempered(temperature),
        )
        self.walker = self._walker()

    def _rows(self, windows: np.ndarray) -> np.ndarray:
        columns = windows @ self.table.columns
        constant = np.full((len(columns), 1), DRIFT)
        return np.concatenate([columns, constant], axis=1).astype("float32")

    def paths(self, series: np.ndarray, origins: np.ndarray) -> np.ndarray:
        """Returns paths [draws, origins, horizon] after first points of a series."""
        windows = self.table.windows(series)[np.asarray(origins) - 1]
        last = windows[:, -1:]
        start = ((windows - last) / self.unit).astype("float32")
        # The same for all rows; of several members the mean.
        variance = self.model.predictive(self._rows(start[:1]), 2).aleatoric.item()
        scale = np.sqrt(variance * (DF - 2.0) / DF)
        random = np.random.default_rng(self.seed)
        noise = scale * random.standard_t(DF, size=(NOISES, self.horizon))
        inputs = {
            "window": np.repeat(start, NOISES, axis=0),
            "noise": np.tile(noise, (len(origins), 1)).astype("float32"),
        }
        walks = self.walker.predictive(inputs, 2, method="weight")
        found = walks.joint_sample(FUNCTIONS, seed=self.seed)
        found = found.reshape(FUNCTIONS, len(origins), NOISES, self.horizon)
        found = np.moveaxis(found, 2, 1).reshape(-1, len(origins), self.horizon)
        return last + self.unit * found

    def _walker(self) -> Any:
        """Returns the model that applies the network step by step.

        A draw of the weights serves all steps of a path, and each step of a path sees
        the ones before it, with their noise.
        """
        import keras
        from keras import ops

        import tfbbb

        window = keras.Input((self.table.window,), name="window")
        noise = keras.Input((self.horizon,), name="noise")
        columns = ops.convert_to_tensor(self.table.columns.astype("float32"))
        expected = ops.convert_to_tensor(self.table.expected[:, None].astype("float32"))
        network = keras.Model(self.model.inputs[0], self.model.outputs[0])
        values, steps = window, []
        for step in range(self.horizon):
            rows = ops.matmul(values, columns)
            constant = DRIFT * ops.ones_like(rows[:, :1])
            change = network(ops.concatenate([rows, constant], axis=1))
            change = change + ops.matmul(values, expected) + noise[:, step : step + 1]
            steps.append(values[:, -1:] + change)
            values = ops.concatenate([values[:, 1:], steps[-1]], axis=1)
        outputs = ops.concatenate(steps, axis=1)
        likelihood = tfbbb.likelihoods.Normal(scale=1.0, standardize=False)
        return tfbbb.BayesianModel(
            {"window": window, "noise": noise}, outputs, likelihood=likelihood
        )


def linear(inputs: Any) -> Any:
    """Returns a linear function of the lags, whose weights depend on each other."""
    import tfbbb

    return tfbbb.layers.DenseVariational(
        1,
        use_bias=False,
        kernel_initializer="zeros",
        prior=tfbbb.priors.Normal(1.0),
        posterior=tfbbb.posteriors.FullCovarianceNormal(initial_scale=0.3),
    )(inputs)


def recurrent(inputs: Any) -> Any:
    """Returns the linear function of the lags and what an LSTM reads in them."""
    import tfbbb

    oldest_first = inputs[:, LAGS - 1 :: -1, None]
    sequence = oldest_first / LAG
    state = tfbbb.layers.LSTMVariational(UNITS, unroll=True)(sequence)
    more = tfbbb.layers.DenseVariational(1, prior=tfbbb.priors.Normal(0.1))(state)
    return linear(inputs) + more
