"""A posterior predictive distribution that was loaded from a SavedModel."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tfbbb.base.numbers import int32, positive_number
from tfbbb.base.types import ArrayLike, Structure, Tensor
from tfbbb.bayes import likelihoods
from tfbbb.export.engine import Engine
from tfbbb.export.inputs import (
    Inputs,
    Tensors,
    in_row_shape,
    listed,
    to_tensors,
)
from tfbbb.export.manifest import Manifest
from tfbbb.export.unlike_rows import describe_unlike_rows, is_unlike
from tfbbb.prediction.answers import Answers, summary_outputs
from tfbbb.prediction.blocks import MAX_FLOATS
from tfbbb.prediction.compiled import ROWS_AT_A_TIME, in_parts
from tfbbb.prediction.gathered import gathered
from tfbbb.prediction.passes import Passes
from tfbbb.prediction.questions import question_named
from tfbbb.prediction.recalibration.recalibration import IDENTITY
from tfbbb.prediction.result import Predictive

# The passes of a method, the number of draws, and their seed.
Draws = tuple[Passes, int, int]


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
            self._widens = len(functions.of_rows.structured_outputs) > 1
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
            max_memory_mb: Memory for what is drawn and for what flows through the
                network at a time, in MB (2^20 bytes); NumPy takes it in each thread.

        Returns:
            A `tfbbb.Predictive`, in raw units.

        Raises:
            InputError: If the inputs do not fit the model.
            ValueError: For a method that the file does not have, or numbers that are
                not as described.
        """
        draws = self._draws(num_samples, seed, method)
        positive_number("max_memory_mb", max_memory_mb)
        max_floats = max(1, int(max_memory_mb * 2**18))
        return self._predictive(x, draws, max_floats, must_be_finite=True)

    def _predictive(
        self, x: Inputs, draws: Draws, max_floats: int, must_be_finite: bool
    ) -> Predictive:
        passes, num_samples, seed = draws
        inputs, compare = self._compared(self._arrange(x))
        (prediction,) = passes.predict(
            inputs, num_samples, seed, max_floats, must_be_finite
        )
        if compare is not None:
            prediction.compare_rows(compare)
        return prediction

    def _compared(
        self, inputs: list[Tensor]
    ) -> tuple[list[Tensor], Callable[[], np.ndarray] | None]:
        """Returns the inputs of the passes, and how the familiarity is found."""
        compare = self._familiarity
        if compare is None:
            return inputs, None
        engine = self._engine
        most = min(engine.rows_at_a_time, ROWS_AT_A_TIME)

        def find() -> Any:
            return in_parts(compare, inputs, most, engine.map)

        if not self._widens:
            return inputs, lambda: np.asarray(find()[0])
        familiarity, deviations = find()
        return [*inputs, deviations], lambda: np.asarray(familiarity)

    def familiarity(self, x: Inputs) -> np.ndarray | None:
        """Returns the familiarity of each row, [n]; None if the file has none."""
        _, find = self._compared(self._arrange(x))
        return None if find is None else find()

    def describe_unlike(self, x: Inputs, familiarity: np.ndarray) -> list[list[str]]:
        """Returns sentences about rows that differ from the training rows."""
        assert self.manifest.familiarity is not None
        assert self._differences is not None
        unlike = is_unlike(familiarity, self.manifest.familiarity.num_rows)
        if not unlike.any():
            return [[] for _ in unlike]
        inputs = self._arrange(x)
        return describe_unlike_rows(inputs, unlike, self.manifest, self._differences)

    def _arrange(self, inputs: Inputs) -> list[Tensor]:
        """Returns inputs as the tensors of the signatures, in their shapes."""
        manifest = self.manifest
        tensors = to_tensors(gathered(inputs)[0], manifest)
        arrays = [tensors[name] for name in self._tensors]
        if manifest.row_shape is not None:
            arrays = [in_row_shape(arrays[0], manifest)]
        return [self._engine.tensor(array) for array in arrays]

    def _draws(
        self, num_samples: int | None, seed: int | None, method: str | None
    ) -> Draws:
        """Returns the passes of a method, and valid numbers of draws and seed."""
        name = self.manifest.method if method in (None, "auto") else str(method)
        if name not in self._passes:
            names = ", ".join(f"'{name}'" for name in ("auto", *self._passes))
            reason = ""
            if method in ("local", "linearised"):
                reason = f" Export the model again with `method={method!r}`."
            raise ValueError(
                f"The file has no such method, but {names}.{reason} "
                f"Received: method={method!r}"
            )
        return self._passes[name], *self._checked_draws(num_samples, seed)

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
        names = {*summary_outputs(found), "mean_standard_error"}
        chosen = sorted(names | ({"familiarity"} & found.keys()))
        with np.errstate(over="ignore"):
            return {name: np.asarray(found[name], self._dtype) for name in chosen}

    def _distribution(
        self, x: Inputs, num_samples: int | None, seed: int | None, method: str | None
    ) -> Predictive:
        """Returns p(y | x), also for rows that have no finite answer.

        `Tensors` keep it, so that several questions about them take one pass through
        the network.
        """
        draws = self._draws(num_samples, seed, method)
        kept = x.distribution if isinstance(x, Tensors) else None
        if kept is not None and kept[0] == draws:
            found: Predictive = kept[1]
            return found
        prediction = self._predictive(x, draws, MAX_FLOATS, must_be_finite=False)
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
            levels: Probabilities between 0 and 1, if the question takes levels, or
                numbers if it takes times.
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
        given = {"levels": levels, "times": levels, "targets": targets}
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
    compute_answer, compute_outputs = call(functions.answer), call(functions.outputs)

    def answer(inputs: Tensor, draws: Structure) -> Any:
        of_rows = _some_rows_at_a_time(lambda x: compute_answer(x, draws), engine)
        found = of_rows(inputs)
        return [found["summary"]], [found["outputs"]]

    def outputs(inputs: Tensor, draws: Structure) -> list[Tensor]:
        of_rows = _some_rows_at_a_time(lambda x: compute_outputs(x, draws), engine)
        return [of_rows(inputs)]

    answers = _load_answers(manifest, manifest.passes[method].members)
    matrix = manifest.inputs == "matrix"
    names = [feature.name for feature in manifest.features]

    def groups(inputs: Any) -> Any:
        # The deviations of an extrapolation follow the columns.
        columns = inputs if matrix else dict(zip(names, inputs, strict=False))
        return answers.recalibration.groups(columns)

    # A linearised network draws weights already.
    coherent = "linearised" if method == "linearised" else "weight"
    return Passes(
        draw=call(functions.draw),
        answer=answer,
        outputs=outputs,
        coherent=lambda: _load_passes(saved_model, manifest, coherent, engine),
        sizes=manifest.passes[method],
        answers=[answers],
        rows_at_a_time=engine.rows_at_a_time,
        groups=groups,
    )


def _load_answers(manifest: Manifest, members: int) -> Answers:
    """Returns the answers that the manifest describes."""
    described_likelihood = dict(manifest.likelihood)
    name = described_likelihood.pop("class_name")
    known = {cls.__name__: cls for cls in likelihoods.registry.classes.values()}
    if name not in known:
        raise ValueError(
            "The model has a likelihood that is no part of tfbbb: import the module "
            f"that registers it first. Received: likelihood={name}"
        )
    likelihood = known[name].of_values(**described_likelihood)
    likelihood.member_weights = manifest.member_weights
    recalibration = manifest.read_recalibration() or IDENTITY
    return Answers(likelihood, recalibration, members, manifest.classes)


def _some_rows_at_a_time(
    function: Callable[[Structure], Structure], engine: Engine
) -> Callable[[Structure], Any]:
    """Returns a function of rows that takes as many at a time as the engine does."""
    return lambda rows: in_parts(function, rows, engine.rows_at_a_time, engine.map)
