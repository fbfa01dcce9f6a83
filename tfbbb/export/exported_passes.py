"""The passes and answers of a SavedModel, without Keras."""

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from tfbbb.export.manifest import Manifest, Targets
from tfbbb.export.targets import checked_targets
from tfbbb.prediction.answers import Answers
from tfbbb.prediction.compiled import Compiled
from tfbbb.prediction.conformal_reach import conformal_reach
from tfbbb.prediction.kept_draws import KeptDraws
from tfbbb.prediction.operation import Operation
from tfbbb.prediction.passes import Passes, Sizes
from tfbbb.prediction.rounds import rounds_of


class ExportedAnswers(Answers):
    """Answers by the functions that a SavedModel keeps.

    Args:
        functions: What was saved of `tfbbb.export.traced_answers.TracedAnswers`.
        targets: What the targets are.
        manifest: The model's.
    """

    def __init__(self, functions: Any, targets: Targets, manifest: Manifest):
        self._targets = targets
        self.task = manifest.task
        self.classes = manifest.classes
        self.ordered = targets.ordered
        self.discrete = targets.discrete
        self.noise_size = targets.noise_size
        self._mean = Compiled(functions.mean)
        self._log_prob = Compiled(functions.log_prob)
        self._log_prob_of_draws = Compiled(functions.log_prob_of_draws)
        self._sample = Compiled(functions.sample)
        if targets.ordered:
            self._quantiles = Compiled(functions.quantiles)
            self._cdf = Compiled(functions.cdf)
        self._summary = self._scores = None
        if hasattr(functions, "summary"):
            self._summary = Compiled(functions.summary)
            self._levels = Compiled(functions.levels)().numpy()
            recalibration = manifest.recalibration or {"config": {}}
            self._scores = recalibration["config"].get("scores")
            self.central_intervals = self._scores is None

    def check_targets(self, targets: Any) -> np.ndarray:
        return checked_targets(targets, self._targets, self.classes)

    def mean(self, outputs: Any) -> Any:
        return self._mean(outputs)

    def summary(
        self, summary: dict[str, Any], quantiles: Callable[[np.ndarray], Any]
    ) -> dict[str, Any]:
        if self._summary is None:
            return summary
        if len(self._levels):
            found = quantiles(self._levels)
        else:
            found = at_no_level(summary["mean"])
        return self._summary(
            tf.nest.map_structure(tf.constant, summary), tf.constant(found)
        )

    def reach(self, level: float) -> Any:
        return None if self._scores is None else conformal_reach(self._scores, level)

    def quantiles(self, outputs: Any, levels: Any) -> Any:
        return self._quantiles(outputs, tf.constant(levels, tf.float64))

    def cdf(self, outputs: Any, values: Any) -> Any:
        return self._cdf(outputs, tf.constant(values, tf.float64))

    def log_prob(self, outputs: Any, targets: Any) -> Any:
        return self._log_prob(outputs, tf.constant(targets))

    def log_prob_of_draws(self, outputs: Any, targets: Any) -> Any:
        return self._log_prob_of_draws(outputs, tf.constant(targets))

    def sample(self, outputs: Any, draws: Any, noise: Any) -> Any:
        draws = tf.constant(draws, tf.int64)
        return self._sample(outputs, draws, tf.constant(noise))


def at_no_level(mean: Any) -> tf.Tensor:
    """Returns quantiles of no level, in the shape that `mean` gives them."""
    return tf.zeros([tf.shape(mean)[0], 0, *mean.shape[1:]], tf.float64)


class ExportedPasses(Passes):
    """Passes by one method, with the functions that a SavedModel keeps.

    Args:
        saved_model: What `tf.saved_model.load` returned.
        manifest: Its manifest, of schema version 2 or 3.
        method: One of its methods.
    """

    def __init__(self, saved_model: Any, manifest: Manifest, method: str):
        assert manifest.passes is not None
        assert manifest.targets is not None
        held = manifest.passes[method]
        functions = saved_model.methods[method]
        self._saved_model = saved_model
        self._manifest = manifest
        self._rounds = held.rounds
        self._draw = Compiled(functions.draw)
        self._add_up = Compiled(functions.add_up)
        self._merge = Compiled(functions.merge)
        self._summarize = Compiled(functions.summarize)
        self._answer = Compiled(functions.answer)
        self._kept = KeptDraws()
        self.sizes = Sizes(held.members, held.widest, held.outputs, held.drawn)
        answers = saved_model.answers[method]
        self.answers = [ExportedAnswers(answers, manifest.targets, manifest)]
        self.operations: tuple[Operation, ...] = ()
        if method == "moments" and manifest.operations is not None:
            self.operations = manifest.operations
        self._is_compiled = False

    @property
    def is_compiled(self) -> bool:
        return self._is_compiled

    def rounds(self, num_samples: int) -> int:
        if self._rounds is not None:
            return self._rounds
        return rounds_of(num_samples, self.sizes.members)

    def draws(self, key: tuple[int, int], first: int, count: int, keep: bool) -> Any:
        return self._kept.draws(self._draw, key, first, count, keep)

    def summaries(self, inputs: Any, draws: Any) -> tuple[list[Any], list[Any]]:
        found = self._answer(inputs, draws)
        self._is_compiled = True
        return [found["summary"]], [found["outputs"]]

    def sums(self, inputs: Any, draws: Any) -> tuple[list[Any], list[Any]]:
        found = self._add_up(inputs, draws)
        self._is_compiled = True
        return [found["sums"]], [found["outputs"]]

    def merged(self, one: Any, other: Any) -> Any:
        return self._merge(one, other)

    def summary(self, found: Any) -> Any:
        return self._summarize(found)

    def outputs(self, inputs: Any, draws: Any) -> list[Any]:
        return self.sums(inputs, draws)[1]

    def of_functions(self) -> "ExportedPasses":
        return ExportedPasses(self._saved_model, self._manifest, "weight")
