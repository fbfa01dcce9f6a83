"""A posterior predictive distribution that was loaded from a SavedModel."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tfbbb.base.numbers import int32
from tfbbb.base.types import ArrayLike, Structure, Tensor
from tfbbb.export.engine import Engine
from tfbbb.export.inputs import (
    Inputs,
    Tensors,
    checked_targets,
    in_row_shape,
    listed,
    to_tensors,
)
from tfbbb.export.manifest import Manifest
from tfbbb.export.unlike_rows import describe_unlike_rows, is_unlike
from tfbbb.prediction import questions
from tfbbb.prediction.adaptive import check_bounds, predict_adaptively
from tfbbb.prediction.answers import Answers, Quantiles, Summary, summary_outputs
from tfbbb.prediction.blocks import MAX_FLOATS
from tfbbb.prediction.compiled import ROWS_AT_A_TIME, in_parts
from tfbbb.prediction.conformal_reach import conformal_reach
from tfbbb.prediction.gathered import gathered
from tfbbb.prediction.passes import Passes
from tfbbb.prediction.questions import Question, question_named
from tfbbb.prediction.result import Predictive

# The summaries or sums of each output, and the outputs.
Pair = tuple[list[dict[str, Tensor]], list[Tensor]]


class ExportedModel:
    """A posterior predictive distribution that was exported.

    It computes with NumPy, or with TensorFlow: see `tfbbb.load`.

    Every method is a pure function of its arguments, the seed among them, so that
    threads may share one model. Inputs and answers are in the units of the training
    table.

    Args:
        saved_model: The root of the SavedModel, or of its functions for NumPy.
        manifest: What the file says of its answers.
        engine: What computes them.
    """

    def __init__(self, saved_model: Any, manifest: Manifest, engine: Engine) -> None:
        self.manifest = manifest
        # The variables live as long as this object.
        self._saved_model = saved_model
        self._engine = engine
        self._passes = {
            method: _load_passes(saved_model, manifest, method, engine)
            for method in manifest.passes
        }
        self._familiarity = self._differences = None
        self._widens = False
        if hasattr(saved_model, "familiarity"):
            functions = saved_model.familiarity
            self._familiarity = engine.call(functions.of_rows)
            self._differences = engine.call(functions.differences)
            # With an extrapolation there are deviations beside it.
            outputs = functions.of_rows.structured_outputs
            self._widens = isinstance(outputs, list | tuple)
        self._dtype = np.dtype(manifest.target_dtype or "float32")
        matrix = manifest.inputs == "matrix"
        tensors = [feature.tensor for feature in manifest.features]
        self._tensors = tensors[:1] if matrix else tensors

    def __repr__(self) -> str:
        manifest = self.manifest
        num_rows = manifest.num_rows
        return (
            f"<ExportedModel target={manifest.target!r}, "
            f"features=[{listed(manifest.features)}], method={manifest.method!r}, "
            f"num_rows={num_rows if num_rows is None else format(num_rows, '.15g')}>"
        )

    def predictive(
        self,
        x: Inputs,
        num_samples: int | None = None,
        method: str | None = None,
        seed: int | None = None,
        *,
        max_standard_error: float | None = None,
        relative_error: bool = False,
        max_memory_mb: float = 512,
    ) -> Predictive:
        """Computes the posterior predictive distribution p(y | x, data).

        The same draws as `BayesianModel.predictive` of the model that was exported,
        with the same method, number and seed, and as fast.

        Args:
            x: Inputs of the rows, as for `predict`, or a dataset of them, which is
                read once.
            num_samples: Number of draws from the posterior; the manifest's by default.
            method: One of the manifest's `passes`: how the signatures draw (by
                default, also `"auto"`), or `"weight"`. Signatures draw by the `method`
                that the model was exported with, such as `"linearised"`.
            seed: Seed of the draws; the manifest's by default.
            max_standard_error: The standard error that the mean may have, in the units
                of the targets: see `tfbbb.predictive`.
            relative_error: Whether that is a share of the predictive standard
                deviation.
            max_memory_mb: Memory for what is drawn and for what flows through the
                network at a time, in MB (2^20 bytes); NumPy takes it in each thread.

        Returns:
            A `tfbbb.Predictive`, in raw units.

        Raises:
            InputError: If the inputs do not fit the model.
            ValueError: For a method that the file does not have, or numbers that are
                not as described.
        """
        passes = self._choose_passes(method)
        num_samples, seed = self._checked_draws(num_samples, seed)
        check_bounds(max_standard_error, relative_error, max_memory_mb)
        tensors = self._arrange(x)
        inputs, compare = self._compared([tensors[name] for name in self._tensors])
        max_floats = max(1, int(max_memory_mb * 2**18))
        (prediction,) = predict_adaptively(
            lambda rows, samples: passes,
            inputs,
            num_samples=num_samples,
            seed=seed,
            max_floats=max_floats,
            max_standard_error=max_standard_error,
            relative_error=relative_error,
        )
        if compare is not None:
            prediction.compare_rows(compare)
        return prediction

    def _compared(
        self, tensors: Sequence[np.ndarray]
    ) -> tuple[list[Tensor], Callable[[], np.ndarray] | None]:
        """Returns the inputs of the passes, and how the familiarity is found."""
        inputs = [self._engine.tensor(tensor) for tensor in tensors]
        if self._widens:
            familiarity, deviations = self._compare(inputs)
            return [*inputs, deviations], lambda: np.asarray(familiarity)
        if self._familiarity is not None:
            return inputs, lambda: self._familiarity_of(inputs)
        return inputs, None

    def familiarity(self, x: Inputs) -> np.ndarray | None:
        """Returns the familiarity of each row, [n]; None if the file has none."""
        if self._familiarity is None:
            return None
        tensors = self._arrange(x)
        tensor = self._engine.tensor
        return self._familiarity_of([tensor(tensors[x]) for x in self._tensors])

    def describe_unlike(self, x: Inputs, familiarity: np.ndarray) -> list[list[str]]:
        """Returns sentences about rows that differ from the training rows."""
        assert self.manifest.familiarity is not None
        assert self._differences is not None
        unlike = is_unlike(familiarity, self.manifest.familiarity.num_rows)
        if not unlike.any():
            return [[] for _ in unlike]
        tensors = self._arrange(x)
        inputs = [self._engine.tensor(tensors[name]) for name in self._tensors]
        return describe_unlike_rows(inputs, unlike, self.manifest, self._differences)

    def _familiarity_of(self, inputs: Sequence[Tensor]) -> np.ndarray:
        found = self._compare(inputs)
        return np.asarray(found[0] if self._widens else found)

    def _compare(self, inputs: Sequence[Tensor]) -> Any:
        """Returns the familiarity, [n], or this and the deviations, [n, k]."""
        assert self._familiarity is not None
        engine = self._engine
        most = min(engine.rows_at_a_time, ROWS_AT_A_TIME)
        return in_parts(self._familiarity, inputs, most, engine.map)

    def _arrange(self, inputs: Inputs) -> Tensors:
        """Returns inputs as the tensors of the signatures, in their shapes."""
        tensors = to_tensors(gathered(inputs)[0], self.manifest)
        if self.manifest.row_shape is None:
            return tensors
        return Tensors(inputs=in_row_shape(tensors["inputs"], self.manifest))

    def _choose_passes(self, method: str | None) -> Passes:
        found = self._passes.get(
            self.manifest.method if self._is_own(method) else str(method)
        )
        if found is None:
            names = ", ".join(f"'{name}'" for name in ("auto", *self._passes))
            reason = ""
            if method in ("local", "linearised"):
                reason = f" Export the model again with `method={method!r}`."
            raise ValueError(
                f"The file has no such method, but {names}.{reason} "
                f"Received: method={method!r}"
            )
        return found

    def predict(
        self,
        inputs: Inputs,
        num_samples: int | None = None,
        seed: int | None = None,
        method: str | None = None,
    ) -> dict[str, np.ndarray]:
        """Computes the moments of p(y | x) from S draws of the weights.

        As the signature `predict`, but keeps the draws, up to 128 MB, for the next
        prediction with the same number and seed.

        Args:
            inputs: Array of shape `[n, d]`, or mapping from column names to arrays
                of shape `[n]`, or data frame; see `tfbbb.export.inputs.to_tensors`.
            num_samples: S, at least 2; the manifest's by default.
            seed: Seed of the draws; the manifest's by default.
            method: As for `predictive`.

        Returns:
            `mean`, `variance`, `epistemic`, `aleatoric` and `mean_standard_error`,
            each of shape `[n, k]`; for classes `probabilities` and
            `mean_standard_error` of shape `[n, c]`, `entropy` and
            `mutual_information` (both in nats) of shape `[n]`. Of several members
            also `between_members`, of the shape of the mean.

        Raises:
            InputError: If the inputs do not fit the model.
            ValueError: If `num_samples` or `seed` is not such a number, or the file
                lacks the method.
        """
        prediction = self._distribution(inputs, num_samples, seed, method)
        found = prediction.to_numpy()
        names = {*summary_outputs(prediction.answers, found), "mean_standard_error"}
        return {
            name: self._in_own_precision(found[name])
            for name in sorted(names | ({"familiarity"} & found.keys()))
        }

    def _is_own(self, method: str | None) -> bool:
        """Whether the signatures draw by a method."""
        return method in (None, "auto", self.manifest.method)

    def _distribution(
        self, x: Inputs, num_samples: int | None, seed: int | None, method: str | None
    ) -> Predictive:
        """Returns p(y | x), also for rows that have no finite answer.

        `Tensors` keep it, so that several questions about them take one pass through
        the network.
        """
        passes = self._choose_passes(method)
        num_samples, seed = self._checked_draws(num_samples, seed)
        draws = passes, num_samples, seed
        kept = x.distribution if isinstance(x, Tensors) else None
        if kept is not None and kept[0] == draws:
            found: Predictive = kept[1]
            return found
        tensors = self._arrange(x)
        inputs, compare = self._compared([tensors[name] for name in self._tensors])
        (prediction,) = passes.predict(
            inputs, num_samples, seed, MAX_FLOATS, must_be_finite=False
        )
        if compare is not None:
            prediction.compare_rows(compare)
        if isinstance(x, Tensors):
            x.distribution = draws, prediction
        return prediction

    def ask(
        self,
        question: str,
        inputs: Inputs,
        levels: Sequence[float] | None = None,
        num_samples: int | None = None,
        seed: int | None = None,
        targets: ArrayLike = None,
        method: str | None = None,
    ) -> np.ndarray:
        """Returns the answer to a question of `tfbbb.prediction.questions`, by name.

        Keeps the draws as `predict` does, and the distribution of `Tensors`.

        Args:
            question: The name of a question that takes levels, targets or nothing, or
                `"sample"`: one value for each of S draws, as `Predictive.sample`.
            inputs: As for `predict`.
            levels: Probabilities between 0 and 1, if the question takes levels.
            num_samples: As for `predict`.
            seed: As for `predict`.
            targets: Targets in raw units, [n, k] (or [n] for one target), if the
                question takes targets; for classes their indices [n].
            method: As for `predictive`.

        Returns:
            The answer in the shape that the question states; draws before rows.

        Raises:
            InputError: If the inputs do not fit the model.
            ValueError: If the model does not answer the question, or another argument
                is not as described; or if the held-out rows were too few for the level
                of a conformal interval.
        """
        asked = question_named(question)
        prediction = self._distribution(inputs, num_samples, seed, method)
        if question == "sample":
            drawn = prediction.sample(*self._checked_draws(num_samples, seed))
            return drawn if drawn.dtype.kind in "bi" else self._in_own_precision(drawn)
        given = {"levels": levels, "targets": targets}
        found = prediction.ask(question, *(given[name] for name in asked.arguments))
        return found if found.dtype.kind in "bi" else self._in_own_precision(found)

    def _in_own_precision(self, values: ArrayLike) -> np.ndarray:
        """Returns numbers in the precision of the signatures, too large ones infinite.

        As those of the signatures: a row has no finite answer then.
        """
        with np.errstate(over="ignore"):
            return np.asarray(values, self._dtype)

    def _checked_draws(
        self, num_samples: int | None, seed: int | None
    ) -> tuple[int, int]:
        if num_samples is None:
            num_samples = self.manifest.default_num_samples
        if seed is None:
            seed = self.manifest.default_seed
        return int32("num_samples", num_samples, least=2), int32("seed", seed)


def _load_passes(
    saved_model: Any, manifest: Manifest, method: str, engine: Engine
) -> Passes:
    """Returns passes by one method, with the functions of a SavedModel."""
    functions, call = saved_model.methods[method], engine.call
    answer, add_up = call(functions.answer), call(functions.add_up)

    def summaries(inputs: Tensor, draws: Structure) -> Pair:
        found = _some_rows_at_a_time(lambda rows: answer(rows, draws), engine)(inputs)
        return [found["summary"]], [found["outputs"]]

    def sums(inputs: Tensor, draws: Structure) -> Pair:
        found = _some_rows_at_a_time(lambda rows: add_up(rows, draws), engine)(inputs)
        return [found["sums"]], [found["outputs"]]

    by_groups = hasattr(saved_model, "groups")
    # A linearised network draws weights already.
    coherent = "linearised" if method == "linearised" else "weight"
    return Passes(
        draw=call(functions.draw),
        summaries=summaries,
        sums=sums,
        outputs=lambda inputs, draws: sums(inputs, draws)[1],
        merge=call(functions.merge),
        summarize=call(functions.summarize),
        coherent=lambda: _load_passes(saved_model, manifest, coherent, engine),
        sizes=manifest.passes[method],
        answers=[_load_answers(saved_model.answers[method], manifest, engine)],
        rows_at_a_time=engine.rows_at_a_time,
        groups=call(saved_model.groups) if by_groups else lambda inputs: None,
    )


def _load_answers(functions: Any, manifest: Manifest, engine: Engine) -> Answers:
    """Returns the answers by the functions of a loaded model."""
    targets = manifest.targets
    recalibration = manifest.recalibration or {"config": {}}
    config = recalibration["config"]
    scores = config.get("scores")
    return Answers(
        functions={
            question.name: _load_answer(
                question, getattr(functions, question.name), engine
            )
            for question in questions.QUESTIONS
            if hasattr(functions, question.name)
        },
        summary=_load_summary(functions, engine)
        if hasattr(functions, "summary")
        else None,
        task=manifest.task,
        ordered=targets.ordered,
        discrete=targets.discrete,
        noise_size=targets.noise_size,
        check_targets=functools.partial(
            checked_targets, wanted=targets, classes=manifest.classes
        ),
        classes=manifest.classes,
        member_weights=manifest.member_weights,
        limits=manifest.limits,
        reach=None
        if scores is None
        else functools.partial(
            conformal_reach, scores, group_scores=config.get("group_scores", ())
        ),
    )


def _load_answer(
    question: Question, function: Any, engine: Engine
) -> Callable[..., Tensor]:
    """Returns the function of a question, computed for some rows at a time."""
    call = engine.call(function)
    # The first input is the outputs of the network.
    dtypes = [given.dtype for given in function.inputs[1:]]

    def answer(outputs: Tensor, *arguments: ArrayLike) -> Tensor:
        given = list(map(engine.tensor, arguments, dtypes))
        # All rows share the levels, and each has other arguments of its own.
        if question.takes_levels:
            at_levels = _some_rows_at_a_time(lambda x: call(x, *given), engine)
            return at_levels(outputs)
        of_rows = _some_rows_at_a_time(lambda x: call(*x), engine)
        return of_rows([outputs, *given])

    return answer


def _load_summary(
    functions: Any, engine: Engine
) -> Callable[[Summary, Quantiles], Summary]:
    """Returns how a recalibration changes the summary of the mixture."""
    change = engine.call(functions.summary)
    levels = np.asarray(functions.levels())

    def summary(mixture_summary: Summary, quantiles: Quantiles) -> Summary:
        if len(levels):
            found = quantiles(levels)
        else:
            # Quantiles at no level, in the shape that the mean gives them.
            found = mixture_summary["mean"][:, np.newaxis][:, :0]
        return change(mixture_summary, found)

    return summary


def _some_rows_at_a_time(
    function: Callable[[Structure], Structure], engine: Engine
) -> Callable[[Structure], Any]:
    """Returns a function of rows that takes as many at a time as the engine does."""
    return lambda rows: in_parts(function, rows, engine.rows_at_a_time, engine.map)
