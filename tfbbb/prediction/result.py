"""The result of a prediction: a distribution for every row."""

import copy
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np

from tfbbb.base.extras import import_extra
from tfbbb.base.nested import map_leaves
from tfbbb.base.numbers import int32
from tfbbb.base.types import ArrayLike, Tensor
from tfbbb.prediction.answers import Answers, Summary
from tfbbb.prediction.levels import (
    checked_level,
    checked_levels,
    checked_times,
    explain_infinite,
)
from tfbbb.prediction.marginal import marginal
from tfbbb.prediction.questions import Question, question_named

if TYPE_CHECKING:
    import pandas

# Blocks of rows of the network's outputs, [rows, S, ..., P], in order.
OutputBlocks = Callable[[], Iterator[Tensor]]
# Takes n and a seed, and returns the means [rows, n, ..., k] under n draws of the
# weights, which all rows share.
Functions = Callable[[int, int], Tensor]
P = TypeVar("P", bound="Predictive")


class NotFiniteError(ValueError):
    """The moments of a row are not finite."""


class Predictive:
    """The posterior predictive distribution p(y | x, data) of each row.

    A mixture of the likelihoods under S draws of the weights, recalibrated where the
    model is (`tfbbb.recalibrate`). All draws have equal weights, but for an average of
    models (`tfbbb.average`) the weights of their models. Everything is in raw units,
    and shapes are those of the targets: [rows, k], or [rows, C] for classes, whose mean
    is that of the one-hot code. Make one with `BayesianModel.predictive`,
    `tfbbb.predictive`, or the `predictive` of what `tfbbb.load` returned.

    Example:

    >>> import keras, tfbbb
    >>> inputs = keras.Input((2,))
    >>> outputs = tfbbb.layers.DenseVariational(1)(inputs)
    >>> model = tfbbb.BayesianModel(inputs, outputs)
    >>> prediction = model.predictive([[1.0, 2.0]], num_samples=50)
    >>> prediction
    Predictive(rows=1, targets=1, num_samples=50)
    >>> lower, upper = prediction.interval(0.9)
    >>> bool((lower < prediction.mean).all() and (prediction.mean < upper).all())
    True

    Attributes:
        num_samples: Number S of draws from the posterior.
        seed: Seed of the draws.
        mask: Which places count by the Keras mask of the outputs, [rows, places...];
            None without one. The log density of other places is 0, and targets there
            may have any values. An exported model has no mask.
    """

    def __init__(
        self,
        answers: Answers,
        blocks: OutputBlocks,
        num_samples: int,
        seed: int,
        functions: Functions,
        summary: Summary | None = None,
        groups: Tensor | None = None,
        must_be_finite: bool = True,
    ):
        self.num_samples = num_samples
        self.answers = answers
        self._blocks = blocks
        self.seed = seed
        self.functions = functions
        # Before recalibration.
        self._mixture_summary = self._moments(summary)
        # Index of each row's group, for conformal answers by groups.
        self._groups = None if groups is None else np.asarray(groups)
        self.mask: np.ndarray | None = None
        self._find_familiarity: Callable[[], np.ndarray] | None = None
        if must_be_finite:
            self._check_finite()

    def leave_out_masked(self, mask: Tensor | None) -> None:
        """Sets `mask` from Keras' mask of the outputs, [rows, ...]."""
        if mask is not None:
            places = self._mixture_summary["mean"].shape[:-1]
            mask = np.asarray(mask)
            trailing = [1] * (len(places) - mask.ndim)
            wide = mask.reshape(*mask.shape, *trailing)
            self.mask = np.broadcast_to(wide, places)

    def compare_rows(self, find_familiarity: Callable[[], np.ndarray]) -> None:
        """Sets how the familiarity, [rows], is found when it is first read."""
        self._find_familiarity = find_familiarity

    @functools.cached_property
    def familiarity(self) -> np.ndarray | None:
        """The percentile of each row among rows like the training rows, [rows].

        From 0 to 1; None if the model has no `tfbbb.Familiarity`.
        """
        find = self._find_familiarity
        return None if find is None else find()

    def _moments(self, summary: Summary | None = None) -> dict[str, np.ndarray]:
        """Returns the summary of the mixture as arrays, computed if it is not given."""
        if summary is None:
            summary = self.of_outputs(self.answers.moments)
        return {name: np.asarray(x) for name, x in summary.items()}

    def take(self, rows: np.ndarray) -> Self:
        """Returns the predictions of some rows, by their indices in ascending order."""
        rows = np.asarray(rows)

        def blocks() -> Iterator[Tensor]:
            first = 0
            for outputs in self._blocks():
                start, stop = np.searchsorted(rows, [first, first + len(outputs)])
                if start < stop:
                    yield np.asarray(outputs)[rows[start:stop] - first]
                first += len(outputs)

        find = self._find_familiarity
        return changed(
            self,
            _blocks=blocks,
            functions=lambda n, seed: np.asarray(self.functions(n, seed))[rows],
            _mixture_summary={k: x[rows] for k, x in self._mixture_summary.items()},
            _groups=None if self._groups is None else self._groups[rows],
            mask=None if self.mask is None else self.mask[rows],
            _find_familiarity=None if find is None else lambda: find()[rows],
        )

    def of_target(self, target: int) -> Self:
        """Returns the predictive distribution of one of several targets, [rows, 1].

        Args:
            target: The place of the target, from 0.
        """
        answers, place = self.answers, slice(target, target + 1)
        return changed(
            self,
            answers=Answers(
                marginal(answers.likelihood, target),
                answers.recalibration.of_target(target),
                answers.members,
            ),
            functions=lambda n, seed: np.asarray(self.functions(n, seed))[..., place],
            _mixture_summary={
                name: x[..., place] for name, x in self._mixture_summary.items()
            },
        )

    def answered_by(
        self,
        answers: Answers,
        groups: Tensor | None = None,
        outputs: Callable[[Tensor], Tensor] | None = None,
    ) -> Self:
        """Returns the same draws with other answers.

        `outputs` changes the outputs of the network, [rows, S, ..., P].
        """
        groups = None if groups is None else np.asarray(groups)
        answered = changed(self, answers=answers, _groups=groups)
        if outputs is not None:
            answered._blocks = lambda: map(outputs, self._blocks())
            answered._mixture_summary = answered._moments()
        answered._check_finite()
        return answered

    @property
    def discrete(self) -> bool:
        """Whether the targets are integers, so that `cdf` has steps."""
        return self.answers.likelihood.discrete

    @property
    def censored(self) -> bool:
        """Whether targets are times and events, [rows, 2]."""
        return self.answers.likelihood.censored

    @property
    def masses(self) -> tuple[float, ...]:
        """The numbers that have a probability of their own beside a density."""
        return self.answers.likelihood.masses

    def probability(self, values: ArrayLike) -> np.ndarray:
        """Returns P(y = values), [rows, ..., k]: of counts, grades and `masses`.

        It is 0 of other numbers, which have a density.

        Args:
            values: A number, or one for each target, [rows, ..., k].
        """
        given = np.broadcast_to(np.asarray(values, np.float64), self.mean.shape)
        previous = given - 1.0
        for value in self.masses:
            below = np.nextafter(value, -np.inf) if value else -1e-30
            previous = np.where(given == value, below, previous)
        is_one = np.isin(given, self.masses) | self.discrete
        found = self.cdf(given) - self.cdf(np.where(is_one, previous, given))
        return np.asarray(found)

    @property
    def central_intervals(self) -> bool:
        """Whether `interval` lies between the quantiles of equal tails of its level."""
        return self.answers.central_intervals

    @property
    def mean(self) -> np.ndarray:
        """E[y], [rows, k]."""
        return self._summary["mean"]

    @property
    def variance(self) -> np.ndarray:
        """Var[y], [rows, k]: `epistemic + aleatoric`."""
        return self._summary["variance"]

    @property
    def stddev(self) -> np.ndarray:
        """Standard deviation of y, [rows, k]."""
        return np.sqrt(self.variance)

    @property
    def epistemic(self) -> np.ndarray:
        """Var_w[E[y | w]], [rows, k]: the variance that more data would lower."""
        return self._summary["epistemic"]

    @property
    def aleatoric(self) -> np.ndarray:
        """E_w[Var[y | w]], [rows, k]: the variance of the noise."""
        return self._summary["aleatoric"]

    @property
    def mean_standard_error(self) -> np.ndarray:
        """Monte Carlo standard error of `mean`, [rows, k]."""
        return self._summary["mean_standard_error"]

    @property
    def between_members(self) -> np.ndarray:
        """Var_k[E[y | member k]], [rows, k]: the part of `epistemic` between members.

        Zero for a single posterior.
        """
        return self._summary.get("between_members", np.zeros_like(self.mean))

    @property
    def probabilities(self) -> np.ndarray:
        """Probabilities of the classes, [rows, C]."""
        return self._class_summary("probabilities")

    @property
    def entropy(self) -> np.ndarray:
        """Entropy of the predicted class, [rows], in nats."""
        return self._class_summary("entropy")

    @property
    def mutual_information(self) -> np.ndarray:
        """Mutual information of class and weights, [rows], in nats: epistemic."""
        return self._class_summary("mutual_information")

    def quantile(self, p: float | Sequence[float]) -> np.ndarray:
        """Returns quantiles of y, by inverting the mixture's distribution function.

        Args:
            p: A probability strictly between 0 and 1, or Q of them.

        Returns:
            [rows, k] for one probability, [rows, Q, k] for Q of them.

        For counts and grades it is the least number whose probability of being
        reached is p or more.

        Raises:
            ValueError: For classes, or a probability of 0 or 1 or beyond.
        """
        found = self.ask("quantiles", p)
        return found[:, 0] if np.ndim(p) == 0 else found

    def interval(
        self, level: float | Sequence[float] = 0.9, *, joint: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """Returns the central interval that holds y with probability `level`.

        It lies between two quantiles, which leave out equal tails. For a model with
        `tfbbb.recalibration.ConformalIntervals`, it is the conformal interval.

        Of several targets, each interval holds its own target. With `joint=True` the
        intervals of a row are the sides of a box that holds all of them:

            P(|Phi^-1(F_j(y_j))| <= s for all j) = level,

        with the distribution function F_j of target j, and sides between the quantiles
        of `Phi(-s)` and `Phi(s)`. The factor s comes from 2000 draws of y, which know
        how targets vary together, and for conformal intervals from the held-out rows;
        then the box covers the level as exactly as those.

        Args:
            level: A probability strictly between 0 and 1, or Q of them.
            joint: Whether the intervals of all targets of a row hold together.

        Returns:
            Lower and upper bounds, [rows, k] each for one level, [rows, Q, k] for Q of
            them.

        Raises:
            ValueError: For classes, a level of 0 or 1 or beyond, or one that
                conformal intervals had too few rows for.
        """
        question = "joint_intervals" if joint else "intervals"
        if np.ndim(level) > 0:
            lower, upper = np.moveaxis(self.ask(question, level), 1, 0)
            return lower, upper
        lower, upper = np.moveaxis(self.ask(question, checked_level(level)), 1, 0)
        return lower[:, 0], upper[:, 0]

    def reach(self, levels: Sequence[float], *, joint: bool = False) -> np.ndarray:
        """Returns the greatest score in intervals, [rows, Q, k]; see `Answers`."""
        found = self.answers.reach(
            self.of_outputs, np.asarray(levels), self._groups, joint=joint
        )
        return np.broadcast_to(found, (len(self), *found.shape[1:]))

    def prediction_set(self, level: float = 0.9) -> np.ndarray:
        """Returns which classes belong to the set that holds y with this probability.

        The set has the most probable classes until their probabilities add up to the
        level. For a model with `tfbbb.recalibration.ConformalSets`, it is the
        conformal set.

        Returns:
            Whether each class is in the set, [rows, C].

        Raises:
            ValueError: For numbers, or a level of 0 or 1 or beyond.
        """
        return self.ask("prediction_sets", checked_level(level))[:, 0]

    def cdf(self, y: ArrayLike) -> np.ndarray:
        """Returns P(Y <= y | x, data), target by target, [rows, k].

        Args:
            y: Targets as for `log_prob`, or numbers [rows, k] that need be none (of
                one target also [rows]).

        Raises:
            ValueError: For classes.
        """
        return self.ask("cdf", y)

    def survival(self, times: float | Sequence[float]) -> np.ndarray:
        """Returns P(Y > t | x, data), target by target: what outlives a time.

        Args:
            times: A number t in the units of the targets, or T of them.

        Returns:
            [rows, k] for one time, [rows, T, k] for T of them.

        Raises:
            ValueError: For classes, or a time that is not finite.
        """
        found = self.ask("survival", times)
        return found[:, 0] if np.ndim(times) == 0 else found

    def log_prob(self, y: ArrayLike) -> np.ndarray:
        """Returns log p(y | x, data) of each row, [rows], in nats.

        It is the log of the likelihood of all targets of the row together, averaged
        over the draws.

        Args:
            y: Targets in raw units, [rows, k] (or [rows] for one target); for classes
                their indices or one-hot rows.
        """
        log_prob = self.ask("log_prob", y)
        return log_prob if self.mask is None else np.where(self.mask, log_prob, 0.0)

    def log_prob_of_draws(self, y: ArrayLike) -> np.ndarray:
        """Returns log p(y | x, w) of each row under each draw w, [rows, S], in nats.

        It is the log likelihood of all targets of the row together. `log_prob` is the
        log of an average over the draws; the evidence lower bound has the average of
        these values, if all weights are drawn (`method="weight"`). Other methods
        integrate a last layer that gives a normal mean. Of an average of M models, draw
        s is that of model `s mod M` and has its weight.

        Args:
            y: Targets in raw units, as for `log_prob`.

        Raises:
            ValueError: A place is masked.
        """
        if self.mask is not None and not self.mask.all():
            raise ValueError(
                "The log densities of draws are those of all places of a row, and know "
                "no mask. Predict rows without masked places. "
                f"Received: {np.sum(~self.mask)} masked places"
            )
        return self.ask("log_prob_of_draws", y)

    def sample(self, n: int, seed: int | None = None) -> np.ndarray:
        """Draws n values of y for each row, from the mixture.

        Rows are drawn independently of each other.

        Args:
            n: Number of draws.
            seed: Seed of the draws; None for that of the prediction.

        Returns:
            [n, rows, k]; for classes their indices, [n, rows].
        """
        n, seed = self._checked_draws(n, seed)
        # NumPy takes no negative seed.
        generator = np.random.default_rng(seed % 2**32)
        event_shape = (*self.mean.shape[1:-1], self.answers.likelihood.noise_size)
        shape = (len(self), n)
        most = np.full((len(self), 1), self.num_samples)
        weights = self.answers.likelihood.member_weights
        if weights is None:
            components = generator.integers(most, size=shape)
        else:
            members = len(weights)
            places = generator.integers(most // members, size=shape)
            chosen = generator.choice(members, size=shape, p=weights)
            components = places * members + chosen
        normals = generator.standard_normal((*shape, *event_shape), dtype=np.float32)
        drawn = self.ask("sample", components, normals)
        return np.moveaxis(drawn, 0, 1)

    def ask(self, question: str, *arguments: ArrayLike) -> np.ndarray:
        """Returns the answer to a question of `tfbbb.prediction.questions`, by name.

        Args:
            question: The name, such as `"log_prob"`.
            *arguments: The arguments of the question, in their order: `targets` as for
                `log_prob`, `values` as for `cdf`, `levels` as for `quantile`, `times`
                as for `survival`, and `draws` and `noise` as arrays.

        Returns:
            The answer, rows first, in the shape that the question states.

        Raises:
            ValueError: The question is unknown, has other arguments, an argument does
                not fit, or the question needs an order that the classes lack.
        """
        asked = question_named(question)
        if len(arguments) != len(asked.arguments):
            raise ValueError(
                f"`ask({question!r}, ...)` takes {len(asked.arguments)} arguments: "
                f"{', '.join(asked.arguments) or 'none'}. "
                f"Received: {len(arguments)} arguments"
            )
        if asked.needs_order:
            self._check_ordered(asked.text)
        if asked.needs_classes and not self.answers.is_classes:
            raise ValueError(
                f"Only classes have {asked.text}; ask for `interval`. "
                f"Received: {self!r}"
            )
        checks = {
            "targets": self._checked_targets,
            "values": self._checked_values,
            "levels": checked_levels,
            "times": checked_times,
        }
        arrays = [
            checks.get(name, np.asarray)(argument)
            for name, argument in zip(asked.arguments, arguments, strict=True)
        ]
        return self._answer(asked, *arrays)

    def _answer(self, question: Question, *arrays: np.ndarray) -> np.ndarray:
        """Returns the answer to a question with valid arguments."""
        if question.of_summary:
            # Intervals follow from quantiles alone.
            summary = self._summary if question.needs_classes else {}
            compute = getattr(self.answers, question.name)
            found = compute(summary, self.of_outputs, *arrays, self._groups)
            if not self.central_intervals and np.isinf(found).any():
                raise ValueError(explain_infinite(*arrays))
            return np.asarray(found)
        ask = functools.partial(self.answers.ask, question.name)
        if question.takes_levels:
            return self.of_outputs(lambda outputs: ask(outputs, *arrays))
        return self.of_outputs(ask, *arrays)

    def joint_sample(self, n: int, seed: int | None = None) -> np.ndarray:
        """Draws n functions `E[y | x, w]`, each with the same weights in all rows.

        The rows of one draw belong together, as Thompson sampling or an integral over
        rows needs them. The draws are independent of each other, and without noise.

        Args:
            n: Number of draws.
            seed: Seed of the draws; None for that of the prediction.

        Returns:
            [n, rows, k]; for classes their probabilities, [n, rows, C].
        """
        means = self.functions(*self._checked_draws(n, seed))
        means = np.moveaxis(np.asarray(means), 0, 1)
        if self._summary is self._mixture_summary:
            return means
        # Scale the distances from the mean to the recalibrated variance.
        scale = np.sqrt(self.variance / self._mixture_summary["variance"])
        return self.mean + scale * (means - self._mixture_summary["mean"])

    def to_numpy(self) -> dict[str, np.ndarray]:
        """Returns every summary by name: `mean`, `variance`, `epistemic`, ..."""
        found = dict(self._summary)
        if self.familiarity is not None:
            found["familiarity"] = self.familiarity
        return found

    def to_pandas(self) -> "pandas.DataFrame":
        """Returns every summary as a data frame with one line per row.

        Columns are named by summary, and by target or class where there are several:
        `mean`, or `mean_0`, `mean_1`; by the names of the classes where they are known.
        Needs `pip install 'tfbbb[pandas]'`.
        """
        (pandas,) = import_extra("pandas", "pandas")
        columns = {}
        names = self.answers.classes or ()
        for name, values in self.to_numpy().items():
            table = values.reshape(len(self), -1)
            # Several places per row are told apart by numbers.
            known = len(names) == table.shape[1]
            for place, column in enumerate(table.T):
                single = table.shape[1] == 1
                end = f"_{names[place] if known else place}"
                columns[name if single else f"{name}{end}"] = column
        return pandas.DataFrame(columns)

    def __len__(self) -> int:
        return len(self._mixture_summary["mean"])

    def __repr__(self) -> str:
        what = "classes" if self.answers.is_classes else "targets"
        names = self.answers.classes
        these = self.mean.shape[-1] if names is None else list(names)
        number = self.num_samples
        return f"Predictive(rows={len(self)}, {what}={these}, num_samples={number})"

    def _checked_targets(self, y: ArrayLike) -> np.ndarray:
        targets = self.answers.check_targets(y, self.mask)
        if len(targets) != len(self):
            raise ValueError(
                f"There is one predictive distribution per row, {len(self)} in "
                f"all. Received: {len(targets)} targets"
            )
        return targets

    def _checked_values(self, values: ArrayLike) -> np.ndarray:
        """Returns numbers [rows, ..., k], which need not be targets."""
        numbers = np.asarray(values, dtype=np.float64)
        # A recalibration may take long to compute its mean.
        *places, width = self._mixture_summary["mean"].shape
        if self.answers.is_classes:
            width = 1
        if width == 1 and numbers.shape == tuple(places):
            numbers = numbers[..., np.newaxis]
        if numbers.shape != (*places, width):
            # Of a time and its event, the time.
            numbers = self._checked_targets(values).reshape(*places, -1)[..., :width]
        return numbers

    def _checked_draws(self, n: int, seed: int | None) -> tuple[int, int]:
        seed = self.seed if seed is None else int32("seed", seed)
        return int32("n", n, least=1), seed

    def _check_ordered(self, what: str) -> None:
        if not self.answers.likelihood.ordered:
            raise ValueError(
                f"Classes have no order and hence no {what}; read `probabilities`, "
                f"or draw labels with `sample`. Received: {self!r}"
            )

    def _check_finite(self) -> None:
        finite = np.isfinite(self._mixture_summary["variance"])
        if not finite.all():
            row = int(np.argmin(finite.reshape(len(self), -1).all(axis=1)))
            raise NotFiniteError(
                "The model has no finite answer for every row: look for values in `x` "
                "that are not numbers or far too large, or for training that diverged. "
                f"Received: row {row} of {len(self)}"
            )

    @functools.cached_property
    def _summary(self) -> dict[str, np.ndarray]:
        quantiles = functools.partial(self._answer, question_named("quantiles"))
        found = self.answers.summary(self._mixture_summary, quantiles)
        if found is self._mixture_summary:
            return found
        return {name: np.asarray(value) for name, value in found.items()}

    def of_outputs(self, compute: Callable[..., Any], *arrays: np.ndarray) -> Any:
        """Applies `compute` to the network's outputs, block by block.

        It takes outputs of some rows, [rows, S, ..., P], as the likelihood takes them,
        and these rows of the arrays; and returns tensors with the same number of rows.
        """
        results, first = [], 0
        for outputs in self._blocks():
            rows = slice(first, first + len(outputs))
            first = rows.stop
            result = compute(outputs, *(array[rows] for array in arrays))
            results.append(map_leaves(np.asarray, result))
        return map_leaves(lambda *x: np.concatenate(x), *results)

    def _class_summary(self, name: str) -> np.ndarray:
        # A recalibration may take long to compute the summary.
        if name not in self._mixture_summary:
            raise AttributeError(
                f"`{name}` is defined for classes only. Read `mean`, `variance` or "
                "`quantile` of a regression."
            )
        return self._summary[name]


def changed(prediction: P, **attributes: Any) -> P:
    """Returns a copy with other attributes, which computes its answers anew."""
    found = copy.copy(prediction)
    for name in ("_summary", "familiarity"):
        vars(found).pop(name, None)
    vars(found).update(attributes)
    return found
