"""The Keras model that knows its likelihood and counts its training rows."""

import contextlib
import dataclasses
import functools
import inspect
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import tree

# They register classes that a saved model may hold.
import tfbbb.model.losses
import tfbbb.tables.features  # noqa: F401
from tfbbb.base.batch_layout import dimensions, with_gradient_times
from tfbbb.base.call_context import call_with, current_call
from tfbbb.base.clones import arguments_for_config, given_arguments
from tfbbb.base.diverged_training import FiniteLoss
from tfbbb.base.private_apis import (
    average_loss_in,
    current_graph,
    gradients_freed_with_graphs,
    graph_of,
    is_validation_of_fit,
    mask_of,
    update_compiled_metrics_by,
)
from tfbbb.base.types import (
    ArrayLike,
    Config,
    DType,
    Identifier,
    Options,
    Structure,
    Tensor,
)
from tfbbb.bayes import kl_schedules, likelihoods
from tfbbb.bayes.estimators.score_function import score_function_term, scores_of
from tfbbb.bayes.kl_schedules import KLSchedule
from tfbbb.bayes.kl_schedules.schedule_callback import ScheduleCallback
from tfbbb.bayes.likelihoods import Likelihood
from tfbbb.bayes.priors import FromPosterior
from tfbbb.bayes.probability_outputs import check_logits
from tfbbb.layers import VariationalLayer
from tfbbb.layers.exposure import exposure_reader
from tfbbb.model.class_weights import relative_class_weights, with_weights_of_places
from tfbbb.model.closed_form import closed_form_layer
from tfbbb.model.inference_result import InferenceResult
from tfbbb.model.input_rows import InputRows
from tfbbb.model.members import Members, check_shared_layers
from tfbbb.model.optimizers import Adam
from tfbbb.model.place_weights import repeated, split_weights
from tfbbb.model.predictive_model import PredictiveModel
from tfbbb.model.training_rows import (
    TrainingRows,
    checked_weights,
    rows_of_generator,
    target_weights,
    training_rows,
)
from tfbbb.prediction.output_mask import OutputMask
from tfbbb.prediction.recalibration import Recalibration
from tfbbb.prediction.structure import num_members
from tfbbb.scores.metrics.compiled import Comparison, update_compiled_metrics
from tfbbb.scores.metrics.step_prediction import StepPrediction


@keras.saving.register_keras_serializable(package="tfbbb")
class BayesianModel(PredictiveModel):
    """A functional Keras model with a likelihood, trained on the evidence lower bound.

    For a minibatch of B rows out of N,

        loss = (1/B) sum_i -log p(y_i | f(x_i, w)) + (1/N) sum_layers KL(q(w) || p(w))

    `fit` sets `kl_weight=1/N` in every layer that was made without one, counts N
    exactly (after `validation_split`; the sum of the sample weights where there are
    any), fixes the targets' shift and scale at the first call, and reports `loss`,
    `nll`, `kl` (in nats) and the `temperature`, so that
    `loss = nll + temperature / N * kl`.

    With `members=K` the model is a uniform mixture of K posteriors, each of which
    trains exactly as it would alone: every variational variable has a leading axis
    [K, ...], a batch flows through the network as [K * rows, ...], member by member,
    and so do the outputs of a call, the loss is the mean over the members, and the
    variance between members is epistemic. `model.members[k]` is a copy of one of them.

    Example:

    >>> import keras, numpy as np, tfbbb
    >>> x = np.random.normal(size=(80, 3)).astype("float32")
    >>> y = 50.0 + 10.0 * x[:, :1]
    >>> inputs = keras.Input((3,))
    >>> hidden = tfbbb.layers.DenseVariational(16, activation="relu")(inputs)
    >>> outputs = tfbbb.layers.DenseVariational(1)(hidden)
    >>> model = tfbbb.BayesianModel(inputs, outputs, likelihood="normal")
    >>> model.compile("adam")
    >>> history = model.fit(x, y, epochs=2, verbose=0)
    >>> sorted(history.history)
    ['kl', 'loss', 'nll', 'temperature']
    >>> prediction = model.predictive(x[:4])
    >>> prediction.mean.shape, prediction.interval(0.9)[0].shape
    ((4, 1), (4, 1))

    Args:
        inputs: Keras inputs, as for `keras.Model`; or a functional or sequential model
            in place of `inputs` and `outputs`, whose layers the model then shares.
        outputs: One Keras tensor, the parameters of the likelihood: e.g. one unit per
            target for `Normal()`, two for `Normal(heteroscedastic=True)`, one per class
            for `Categorical()`.
        name: Name of the model.
        likelihood: `"normal"`, `"categorical"` or a `tfbbb.likelihoods.Likelihood`. The
            likelihood of another model is copied with its shift, scale and learned
            parameters.
        members: Number K of posteriors; by default the number that the layers were
            made with. Layers that were made with one member get K.
        recalibration: A recalibration of the predictions, as `recalibrate` returns it,
            or None.
        inference: How the posterior was found; None for a model that is not the result
            of `tfbbb.inference`. `fit` removes it.
        kl_schedule: The schedule that `compile` takes where it gets none, as `compile`
            takes it.
        **kwargs: `trainable` and `dtype`, as for `keras.Model`.

    Raises:
        ValueError: There are several outputs, the outputs do not fit the likelihood
            (probabilities instead of logits), or the layers have different numbers of
            members, or different numbers of samples above one; a layer with the
            estimator `closed_form` is not the last one, or has no closed form; or
            `inputs` is a model without a graph of Keras tensors.
        TypeError: An argument is unknown.
    """

    def __init__(
        self,
        inputs: Structure | keras.Model,
        outputs: Tensor | None = None,
        name: str | None = None,
        *,
        likelihood: Identifier | Likelihood | None = "normal",
        members: int | None = None,
        recalibration: Recalibration | None = None,
        inference: InferenceResult | None = None,
        kl_schedule: Identifier | KLSchedule = "constant",
        **kwargs: Any,
    ):
        unknown = kwargs.keys() - {"trainable", "dtype"}
        if unknown:
            # Keras would ignore them.
            raise TypeError(
                f"`{type(self).__name__}` has no such argument. "
                f"Received: {', '.join(sorted(unknown))}"
            )
        if isinstance(inputs, keras.Model) and outputs is None:
            inputs, outputs = _graph_of_network(inputs)
        super().__init__(inputs, outputs, name=name, **kwargs)
        if kwargs.get("dtype") is not None:
            # Keras forgets the policy of a functional model, which scales the loss.
            self.dtype_policy = keras.dtype_policies.get(kwargs["dtype"])
        self.check_format_of_config()
        if len(self.outputs) != 1:
            raise ValueError(
                "A BayesianModel has one output tensor, which its likelihood takes. "
                "Concatenate outputs of one likelihood, or keep a `keras.Model` with "
                "`kl_weight=1/N` in its layers and a "
                "`tfbbb.losses.NegativeLogLikelihood` for each output. "
                f"Received: {len(self.outputs)} outputs"
            )
        if members is not None:
            for layer in self.variational_layers:
                layer.set_members(members)
        self._num_members = num_members(self)
        if self._num_members > 1:
            check_shared_layers(self)
        self._num_samples = _num_samples(self.variational_layers)
        found = likelihoods.get(likelihood)
        if isinstance(likelihood, Likelihood) and likelihood.built:
            # That of another model, whose variables stay its own.
            found = likelihood.copy_for(self._num_members, self.outputs[0].shape)
        self.likelihood = found
        if self.likelihood.task == "classification":
            check_logits(self.outputs[0])
        if self.likelihood.exposure:
            exposure_reader(self)
        if not self.likelihood.built:
            self.likelihood.members = self._num_members
            self.likelihood.build(self.outputs[0].shape)
        # Past Keras' tracking of attributes: it is a layer of the model already.
        self.__dict__["_closed_form"] = closed_form_layer(
            self, self.variational_layers, self.likelihood
        )
        self.recalibration = recalibration
        self.inference = inference
        self._default_kl_schedule = kl_schedules.get(kl_schedule)
        self.kl_schedule = self._default_kl_schedule
        self._mean_weights: np.ndarray | None = None
        self._num_rows = self.add_weight(
            name="num_rows", shape=(), initializer="zeros", trainable=False
        )
        # Sums over many rows exceed half precision.
        dtype = keras.backend.result_type(keras.config.floatx(), "float32")
        self._nll_tracker = _PartOfLoss(name="nll", dtype=dtype)
        self._kl_tracker = _PartOfLoss(name="kl", dtype=dtype)

    @property
    def log_evidence(self) -> float | None:
        """The log evidence in nats, if a method of `tfbbb.inference` gave it."""
        return None if self.inference is None else self.inference.log_evidence

    @property
    def diagnostics(self) -> Options:
        """The figures of the method of `tfbbb.inference` by name; empty without one."""
        return {} if self.inference is None else dict(self.inference.diagnostics)

    @property
    def num_rows(self) -> float | None:
        """Number N, or total weight, of the rows of the latest `fit`; None before."""
        return float(self._num_rows.numpy()) or None

    @num_rows.setter
    def num_rows(self, number: float) -> None:
        self._num_rows.assign(number)

    @property
    def members(self) -> "Members[BayesianModel]":
        """The posteriors of the mixture; each item is a new model with one of them."""
        return Members(self, self._num_members)

    def compile(
        self,
        optimizer: str | keras.optimizers.Optimizer = "adam",
        *args: Any,
        kl_schedule: Identifier | KLSchedule | None = None,
        **kwargs: Any,
    ) -> None:
        """Configures training, as `keras.Model.compile`, without a loss.

        Keras' metrics compare the targets with what `predict` returns, the mean of
        numbers in raw units or the probabilities of classes, in the form that each
        metric takes; those of `tfbbb.metrics` score the mixture of the likelihoods
        under the draws of each step.

        Args:
            optimizer: A Keras optimizer, or the name of one; `"adam"` is
                `tfbbb.optimizers.Adam`, a faster form of Keras' Adam.
            *args: As for `keras.Model.compile`.
            kl_schedule: How the temperature `T = kl_weight * N` changes while `fit`
                runs: `"constant"` (1), `"linear_warmup"`, `"blundell"`, or a
                `tfbbb.kl_schedules.KLSchedule`. It sets the weight of the layers that
                were made without a `kl_weight`. None for the schedule that the model
                was made with: `"constant"`, or that of `tfbbb.convert`.
            **kwargs: As for `keras.Model.compile`.

        Raises:
            ValueError: A `loss` is given, or `loss_weights`: the likelihood is the
                loss.
        """
        schedule = self._default_kl_schedule
        if kl_schedule is not None:
            schedule = kl_schedules.get(kl_schedule)
        bound = inspect.signature(super().compile).bind(optimizer, *args, **kwargs)
        if bound.arguments.get("loss") is not None:
            raise ValueError(
                "A BayesianModel's loss is the negative log likelihood of its "
                "`likelihood`; leave `loss` out, or use `keras.Model` with "
                "`kl_weight=1/N` in every layer. "
                f"Received: loss={bound.arguments['loss']!r}"
            )
        if bound.arguments.get("loss_weights") is not None:
            raise ValueError(
                "A BayesianModel's only loss is the negative log likelihood, which has "
                "the weight 1. Leave `loss_weights` out; `sample_weight` of `fit` "
                "weighs rows and places, and `kl_schedule` the prior. "
                f"Received: loss_weights={bound.arguments['loss_weights']!r}"
            )
        if optimizer == "adam":
            optimizer = Adam()
        super().compile(optimizer, *args, **kwargs)
        if self._nll_tracker.dtype != keras.config.floatx():
            average_loss_in(self, self._nll_tracker.dtype)
        update_compiled_metrics_by(self, self._update_metrics)
        # `keras.wrappers` refuses a compiled model without a loss.
        self.loss = self.likelihood.negative_log_likelihood
        self.kl_schedule = schedule

    def get_compile_config(self) -> Config:
        """Returns the arguments of `compile`, for `compile_from_config`."""
        config = super().get_compile_config()
        if config:
            config["kl_schedule"] = kl_schedules.serialize(self.kl_schedule)
        return config

    def compile_from_config(self, config: Config) -> None:
        """Compiles a loaded model with the arguments that it was saved with."""
        self.compile(**keras.saving.deserialize_keras_object(config))
        self.optimizer.build(self.trainable_variables)

    def fit(
        self,
        x: ArrayLike = None,
        y: ArrayLike = None,
        *args: Any,
        dataset_size: float | None = None,
        **kwargs: Any,
    ) -> keras.callbacks.History:
        """Trains the model, as `keras.Model.fit`.

        A **sample weight** is the number of times that a row counts: with weights N is
        their sum. The weight of a place of a row, such as the step of a sequence,
        [rows, places...], is the factor of its log likelihood; N stays the number of
        rows. **Class weights** are relative: they are divided by their mean over the
        training targets, and N stays the number of rows. Steps that a Keras mask of the
        outputs leaves out do not count.

        N is counted for each call: rows that a dataset repeats count once. The data are
        not read before training where `dataset_size` is given, or every layer has its
        `kl_weight`, and the likelihood is adapted.

        Args:
            x: Inputs, or a dataset of (inputs, targets) or (inputs, targets, weights).
            y: Targets in raw units.
            *args: As for `keras.Model.fit`.
            dataset_size: The number N of training rows, where it cannot be counted or
                the sum of the sample weights is not meant: for a generator, or a
                dataset of unknown length. Without it, `steps_per_epoch` steps of such
                data are taken for one pass over the rows.
            **kwargs: As for `keras.Model.fit`.

        From a generator neither N nor the targets can be read: pass `dataset_size` or
        `steps_per_epoch`, and call `model.likelihood.adapt(y)` with the training
        targets first.

        Discards any recalibration, with a warning: it was fitted to the old weights.

        Raises:
            ValueError: N cannot be counted and `dataset_size` is not given, the targets
                do not fit the likelihood, a sample weight is not finite, an input is
                NaN or infinite and the network has no finite output for it, or the
                data gave no batch. `fit` checks arrays, and datasets of known length
                that it reads, before the first step.
            TrainingDivergedError: After an epoch whose loss and weights are not
                finite; `model.history` has the epochs until then.
        """
        bound = inspect.signature(super().fit).bind(x, y, *args, **kwargs)
        arguments = bound.arguments
        class_weight = arguments.pop("class_weight", None)
        starts_noise = self._starts_noise
        rows, inputs = self._read_rows(arguments, dataset_size)
        validation = arguments.get("validation_data")
        if isinstance(validation, list | tuple) and len(validation) > 1:
            self._check_arrays(*validation)
        if rows.targets is None and not self.likelihood.adapted:
            raise ValueError(
                "The shift and scale of the targets cannot be read off a generator or "
                "endless data. Call `model.likelihood.adapt(y)` with the training "
                f"targets before `fit`. Received: x of type {type(x).__name__}"
            )
        if class_weight is not None:
            rows = self._weigh_classes(class_weight, rows, arguments)
        return self._fit(rows, bound, inputs if starts_noise else None)

    def _read_rows(
        self, arguments: Options, dataset_size: float | None
    ) -> tuple[TrainingRows, InputRows]:
        """Reads the data in the arguments of `fit` once, and checks the inputs."""
        x, steps_per_epoch = arguments["x"], arguments.get("steps_per_epoch")
        needs_size = any(
            layer.kl_weight_is_automatic for layer in self.variational_layers
        )
        is_first = self.num_rows is None and needs_size and dataset_size is None
        if inspect.isgenerator(x) and needs_size and dataset_size is None:
            arguments["x"], dataset_size = rows_of_generator(x, steps_per_epoch)
        split = arguments.get("validation_split") or 0.0
        if arguments.get("validation_data") is not None:
            split = 0.0  # As in Keras.
        inputs = InputRows(self, self._num_members, keeps_first=self._starts_noise)
        rows = training_rows(
            x,
            arguments["y"],
            dataset_size=dataset_size,
            steps_per_epoch=steps_per_epoch,
            sample_weight=arguments.get("sample_weight"),
            validation_split=split,
            num_places=self._num_places,
            needs_size=needs_size,
            needs_targets=is_first or not self.likelihood.adapted,
            mask=self._output_mask.of_arrays,
            observe=inputs.add,
        )
        inputs.check()
        return inputs.with_exposures(rows), inputs

    def fit_rows(self, rows: TrainingRows, *args: Any, **kwargs: Any) -> Any:
        """Trains as `fit` on rows that are known: reads no data before it trains.

        Args:
            rows: Number of the rows, their targets, and how members share them.
            *args: As for `keras.Model.fit`.
            **kwargs: As for `keras.Model.fit`.
        """
        return self._fit(rows, inspect.signature(super().fit).bind(*args, **kwargs))

    def _fit(
        self,
        rows: TrainingRows,
        bound: inspect.BoundArguments,
        first_rows: InputRows | None = None,
    ) -> keras.callbacks.History:
        """Calls Keras' `fit` with bound arguments, prepared for these rows."""
        finite_loss = FiniteLoss()
        first = [finite_loss, ScheduleCallback(self.kl_schedule)]
        with (
            self.training_on(rows),
            _first_callbacks(self, bound.arguments, first),
            gradients_freed_with_graphs(),
        ):
            if first_rows is not None:
                self._start_at_residuals(first_rows, rows)
            if self.compiled and not self.optimizer.built:
                # A step that creates the optimizer's variables is traced twice.
                with self.distribute_strategy.scope():
                    self.optimizer.build(self.trainable_variables)
            history = super().fit(*bound.args, **bound.kwargs)
        finite_loss.check()
        return history

    @property
    def _starts_noise(self) -> bool:
        """Whether a learned noise starts at the residuals of the first rows."""
        return not self.likelihood.adapted and self.likelihood.starts_at_residuals

    def _start_at_residuals(self, first: InputRows, rows: TrainingRows) -> None:
        """Starts a learned noise at the residuals of the network on the first rows."""
        if rows.targets is None:
            return
        inputs = first.first(len(rows.targets))
        if inputs is None:
            return
        targets = rows.targets[: len(tree.flatten(inputs)[0])]
        # The seeds of the layers stay as they are.
        with keras.StatelessScope():
            outputs = self(inputs, training=False)
        means = self.likelihood.point_prediction(self.with_learned_parameters(outputs))
        # [rows, members, places..., k]
        means = self._by_row(means, len(targets)).numpy()
        residuals = np.reshape(targets, means[:, :1].shape) - means
        if rows.target_weights is not None:
            # [rows] or [rows, places...]
            counted = np.expand_dims(rows.target_weights[: len(targets)] != 0, 1)
            trailing = (1,) * (residuals.ndim - counted.ndim)
            counted = counted.reshape(*counted.shape, *trailing)
            residuals = np.where(counted, residuals, np.nan)
        by_member = np.moveaxis(residuals, 1, 0)
        shape = (self._num_members, -1, residuals.shape[-1])
        self.likelihood.start_noise(by_member.reshape(shape))

    def train_step(self, data: Structure) -> Any:
        """Trains on one batch, as `keras.Model.train_step`."""
        # Without this order, TensorFlow counts a step for the end of the data too.
        batch = [leaf for leaf in tree.flatten(data) if isinstance(leaf, tf.Tensor)]
        whole = self._num_members > 1 and self._trains_members_alone
        with call_with(loss_of_members=whole), tf.control_dependencies(batch[:1]):
            return super().train_step(data)

    @property
    def _trains_members_alone(self) -> bool:
        """Whether every trainable variable belongs to one member."""
        weights = [v for w in self.variational_weights for v in w.all_variables]
        own = {id(variable) for variable in (*weights, *self.likelihood.variables)}
        return all(id(variable) in own for variable in self.trainable_variables)

    def _weigh_classes(
        self, class_weight: Mapping[int, float], rows: TrainingRows, arguments: Options
    ) -> TrainingRows:
        """Puts the weights of classes into the arguments of `keras.Model.fit`."""
        weights = relative_class_weights(class_weight, self.likelihood, rows)
        if self._num_places:
            arguments["x"], arguments["sample_weight"] = with_weights_of_places(
                arguments["x"],
                arguments.get("y"),
                arguments.get("sample_weight"),
                weights,
                self.likelihood,
            )
            return rows
        arguments["class_weight"] = weights
        if rows.targets is None:
            return rows
        return dataclasses.replace(rows, mean_weights=np.ones(1))

    @property
    def _num_places(self) -> int:
        """Number of axes between the rows and the parameters of an output."""
        return len(self.outputs[0].shape) - 2

    @functools.cached_property
    def _output_mask(self) -> OutputMask:
        return OutputMask(self)

    @contextlib.contextmanager
    def training_on(self, rows: TrainingRows) -> Iterator[None]:
        """Prepares the model for training steps on these rows, within a `with` block.

        Sets N, `kl_weight=1/N` in the layers without a `kl_weight` of their own, and,
        the first time, shift and scale of the targets. Discards any recalibration: it
        was fitted to the old weights. If the block raises before the first step, the
        model is restored.

        Args:
            rows: Number of the rows, and their targets.

        Raises:
            ValueError: The targets do not fit the likelihood.
        """
        steps, state = self._steps_taken, self._state()
        recalibration, inference = self._recalibration, self.inference
        layers = self.variational_layers
        try:
            self._discard_recalibration("Training discards", stacklevel=7)
            self.inference = None
            self._prepare_for(rows)
            for layer in layers:
                layer.kl_factors = rows.kl_factors
            self._mean_weights = rows.mean_weights
            yield
        except BaseException:
            if self._steps_taken == steps:
                for variable, value in state:
                    variable.assign(value)
                self._recalibration, self.inference = recalibration, inference
            raise
        finally:
            self._mean_weights = None
            for layer in layers:
                layer.kl_factors = None

    def _prepare_for(self, rows: TrainingRows) -> None:
        """Sets N, the weight of the divergence, and shift and scale of the targets."""
        for weight in self.variational_weights:
            if isinstance(weight.prior, FromPosterior):
                weight.prior.check_values(weight)
        if rows.targets is not None:
            self._warn_about_other_units()
            self.likelihood.check_targets(rows.targets, rows.counted)
            self.likelihood.adapt(rows.targets, rows.counted, exposures=rows.exposures)
        # Every layer has its own weight where N is not known.
        known = not math.isnan(rows.size)
        self._num_rows.assign(rows.size if known else 0.0)
        if known:
            self.assign_temperature(1.0)

    def assign_temperature(self, temperature: float) -> None:
        """Sets `kl_weight = T/N` in the layers without a `kl_weight` of their own."""
        num_rows = float(self._num_rows.numpy())
        for layer in self.variational_layers:
            if layer.kl_weight_is_automatic:
                layer.kl_weight.assign(temperature / num_rows)

    def _warn_about_other_units(self) -> None:
        priors = [weight.prior for weight in self.variational_weights]
        standardizes = getattr(self.likelihood, "standardize", False)
        if (
            standardizes
            and not self.likelihood.adapted
            and any(isinstance(prior, FromPosterior) for prior in priors)
        ):
            warnings.warn(
                "The prior is the posterior of another model, whose targets were "
                "standardised by their own mean and standard deviation; the targets "
                "of this model would be standardised by others. Give this model the "
                "likelihood of the other one, `likelihood=yesterday.likelihood`, or "
                "use the units of the targets, `Normal(standardize=False)`.",
                stacklevel=6,
            )

    @property
    def _steps_taken(self) -> int:
        optimizer = getattr(self, "optimizer", None)
        return 0 if optimizer is None else int(optimizer.iterations.numpy())

    def _state(self) -> list[tuple[keras.Variable, np.ndarray]]:
        return [(v, v.numpy()) for v in self.non_trainable_variables]

    def _check_arrays(
        self, x: ArrayLike, y: ArrayLike, sample_weight: ArrayLike = None
    ) -> None:
        """Raises ValueError for arrays that make no finite loss."""
        inputs = InputRows(self, self._num_members)
        inputs.add(x)
        inputs.check()
        places = np.shape(y)[: 1 + self._num_places]
        weights = target_weights(
            checked_weights(sample_weight, places),
            self._output_mask.of_arrays(x),
            places,
        )
        self.likelihood.check_targets(y, None if weights is None else weights != 0)

    def evaluate(self, *args: Any, **kwargs: Any) -> Any:
        """Returns loss, nll, kl and metrics, as `keras.Model.evaluate`.

        Each batch is evaluated with new draws of the weights, so two calls differ; for
        a reproducible figure, see `predictive` and its `log_prob`. Warns if the loss is
        not finite.

        Raises:
            ValueError: The weight of a layer's KL divergence is not set, or the arrays
                are not finite or do not fit the model, as for `fit`.
        """
        for layer in self.variational_layers:
            if not layer.kl_weight_is_set:
                raise ValueError(
                    "The loss needs the weight 1/N of the KL divergence, which `fit` "
                    f"sets. Call `fit` first, or pass `kl_weight=1/N` to '{layer.name}'"
                    ". Received: kl_weight=None"
                )
        arguments = inspect.signature(super().evaluate).bind(*args, **kwargs).arguments
        # Validation within `fit` has checked its arrays already.
        if arguments.get("y") is not None and not is_validation_of_fit(arguments):
            self._check_arrays(
                arguments["x"], arguments["y"], arguments.get("sample_weight")
            )
        figures = super().evaluate(*args, **kwargs)
        if not math.isfinite(self._nll_tracker.result()):
            warnings.warn(
                "The loss is not finite: look for inputs, targets or sample weights "
                "that are not finite or far too large, or for training that diverged. "
                f"Received: x of type {type(arguments.get('x')).__name__}",
                stacklevel=2,
            )
        return figures

    def call(
        self, inputs: Tensor, training: bool | None = None, mask: Structure = None
    ) -> Tensor:
        if current_call().samples_in_batch is not None:
            # This model is part of another, which has repeated the rows already.
            return super().call(inputs, training=training, mask=mask)
        form = self.input
        if (
            isinstance(inputs, dict)
            and isinstance(form, dict)
            and set(form) <= set(inputs)
        ):
            # Keras would take values of other names for those of the model.
            inputs = {name: inputs[name] for name in form}
        samples = self._num_samples if training else 1
        copies = self._num_members * samples
        if copies > 1:
            inputs, mask = tree.map_structure(
                lambda x: None if x is None else repeated(x, copies), (inputs, mask)
            )
        with call_with(
            samples_in_batch=samples, copies_in_batch=copies, graph=current_graph()
        ):
            return super().call(inputs, training=training, mask=mask)

    def compute_loss(
        self,
        x: ArrayLike = None,
        y: ArrayLike = None,
        y_pred: Tensor = None,
        sample_weight: ArrayLike = None,
        training: bool = True,
    ) -> Tensor:
        # First read the state that the layers keep of this step: afterwards the
        # replicas of a strategy wait for each other.
        kl = sum(layer.step_kl for layer in self.variational_layers)
        losses = list(self.losses)
        mask = mask_of(y_pred)
        outputs, variance = tf.convert_to_tensor(y_pred), None
        if self._closed_form is not None:
            outputs, variance = self._closed_form.step_moments
        num_rows = tf.shape(tree.flatten(y)[0])[0]
        copies = self._num_members * (self._num_samples if training else 1)
        sample_weight, of_places = split_weights(
            sample_weight, mask, self._num_places, copies
        )
        per_row = self.likelihood.negative_log_likelihood(
            repeated(y, copies),
            self.with_learned_parameters(outputs),
            of_places,
            variance,
        )
        # [1, rows], or [copies, rows] if each member has its own weights.
        weights = self._weights_by_draw(sample_weight, num_rows, copies, per_row.dtype)
        by_draw = tf.reshape(per_row, [copies, num_rows])
        weighted = by_draw * weights
        summed = tf.reduce_sum(weighted, axis=1)
        mean_weights = tf.reduce_mean(weights, axis=0)
        self._nll_tracker.include(
            tf.math.divide_no_nan(tf.reduce_mean(weighted, axis=0), mean_weights),
            sample_weight=mean_weights,
        )
        # Rows are the weights of `loss` too, so that the three add up.
        self._kl_tracker.include(kl, sample_weight=num_rows)
        scores = None
        if training and self._num_samples > 1:
            scores = scores_of(self.variational_layers)
        # The divergence is in single precision, the likelihood may be in double.
        penalty = sum(tf.reduce_sum(tf.cast(loss, per_row.dtype)) for loss in losses)
        of_batch = tf.reduce_sum(weights, axis=1)
        if training and sample_weight is not None and self._mean_weights is not None:
            expected = self._weights_by_draw(
                self._mean_weights[None], 1, copies, weights.dtype
            )
            of_batch = expected[:, 0] * tf.cast(num_rows, weights.dtype)
        total_weight, replicas = _over_replicas(of_batch)
        nll_by_draw = tf.math.divide_no_nan(summed, total_weight)
        loss = tf.reduce_mean(nll_by_draw) + penalty / replicas
        if scores is not None:
            log_prob, depending = (tf.cast(score, per_row.dtype) for score in scores)
            loss += score_function_term(
                nll_by_draw + depending / replicas, log_prob, self._num_samples
            )
        if replicas > 1:
            # The gradient is this replica's part, which the optimizer adds to those of
            # the others; the value, which Keras reports, is an equal part of the whole.
            whole, _ = _over_replicas(tf.stop_gradient(loss))
            loss += whole / replicas - tf.stop_gradient(loss)
        if current_call().loss_of_members:
            return with_gradient_times(loss, self._num_members)
        return loss

    def _weights_by_draw(
        self,
        sample_weight: ArrayLike,
        num_rows: int | Tensor,
        copies: int,
        dtype: DType,
    ) -> tf.Tensor:
        """Returns weights of rows, [rows] or [rows, members], as [1 | copies, rows]."""
        if sample_weight is None:
            return tf.ones([1, num_rows], dtype)
        weights = tf.cast(sample_weight, dtype)
        if self._num_members == 1 or weights.shape.rank != 2 or weights.shape[1] == 1:
            return tf.reshape(weights, [1, num_rows])
        return tf.repeat(tf.transpose(weights), copies // self._num_members, axis=0)

    def with_learned_parameters(self, outputs: Tensor) -> Tensor:
        """Returns outputs of a call in the form that the likelihood takes.

        They then include the parameters that the likelihood has learned for the member
        of each output.
        """
        if self._num_members == 1:
            return outputs
        per_member = tf.shape(outputs)[0] // self._num_members
        member = tf.range(tf.shape(outputs)[0]) // per_member
        ones = [1] * (len(outputs.shape) - 2)
        return self.likelihood.of_members(outputs, tf.reshape(member, [-1, *ones]))

    def compute_metrics(
        self,
        x: ArrayLike,
        y: ArrayLike,
        y_pred: Tensor,
        sample_weight: ArrayLike = None,
    ) -> Options:
        self._update_metrics(y, y_pred, sample_weight)
        return self.get_metrics_result()

    def _update_metrics(
        self, y: ArrayLike, y_pred: Tensor, sample_weight: ArrayLike = None
    ) -> None:
        targets = tree.flatten(y)[0]
        num_rows = tf.shape(targets)[0]
        # Each draw has a copy of the mask.
        mask = mask_of(y_pred)
        mask = None if mask is None else mask[:num_rows]
        weights = _metric_weights(sample_weight, 1 + self._num_places)
        outputs = self._by_row(self.with_learned_parameters(y_pred), num_rows)
        comparison = Comparison(self.likelihood, targets, outputs, mask, weights)
        step = StepPrediction(self.likelihood, outputs, comparison.mask)
        with call_with(prediction=step):
            update_compiled_metrics(self, comparison, weights)

    def predict_step(self, data: Structure) -> Tensor:
        """Returns the likelihood's point prediction for one draw of the weights.

        That is the mean of numbers in raw units, or the probabilities of classes: see
        `tfbbb.likelihoods.Likelihood.point_prediction`. With members, returns the mean
        over one draw of each member.
        """
        x, _, _ = keras.utils.unpack_x_y_sample_weight(data)
        outputs = self(x, training=False)
        return self._mean_over_draws(outputs, tf.shape(tree.flatten(x)[0])[0])

    def _mean_over_draws(self, outputs: Tensor, num_rows: int | Tensor) -> Tensor:
        outputs = self.with_learned_parameters(outputs)
        means = self.likelihood.point_prediction(outputs)
        if self._num_members * self._num_samples == 1:
            return means
        return tf.reduce_mean(self._by_row(means, num_rows), axis=1)

    def _by_row(self, of_batch: Tensor, num_rows: int | Tensor) -> tf.Tensor:
        """Returns [draws * rows, ...], draw by draw, as [rows, draws, ...]."""
        of_batch = tf.convert_to_tensor(of_batch)
        if self._num_members * self._num_samples == 1:
            return of_batch[:, tf.newaxis]
        # A replica of a strategy may have no rows.
        copies = tf.shape(of_batch)[0] // tf.maximum(num_rows, 1)
        by_draw = tf.reshape(of_batch, [copies, num_rows, *dimensions(of_batch, 1)])
        return tf.transpose(by_draw, [1, 0, *range(2, len(by_draw.shape))])

    def get_config(self) -> Config:
        self.check_format_of_config()
        config = super().get_config()
        own = {
            "dtype": keras.saving.serialize_keras_object(self.dtype_policy),
            "likelihood": likelihoods.serialize(self.likelihood),
            "members": self._num_members,
        }
        if not isinstance(self._default_kl_schedule, kl_schedules.Constant):
            own["kl_schedule"] = kl_schedules.serialize(self._default_kl_schedule)
        if "output_layers" not in config:
            # The constructor of a subclass makes the layers, and knows the others.
            own = {k: v for k, v in own.items() if k in given_arguments(self)}
        config.update(own)
        if type(self).get_config is BayesianModel.get_config:
            known = {*config, "recalibration", "inference", "kl_schedule"}
            config.update(arguments_for_config(self, known))
        return config


class _PartOfLoss(keras.metrics.Mean):
    """The mean over rows of a part of the loss, which `compute_loss` counts.

    A `train_step` that passes targets and outputs to all of `self.metrics`, as that of
    Keras' guide does, changes nothing here.
    """

    def update_state(self, *args: Any, **kwargs: Any) -> None:
        pass

    def include(self, values: Tensor, sample_weight: Tensor) -> None:
        super().update_state(values, sample_weight=sample_weight)


def _graph_of_network(network: keras.Model) -> tuple[Structure, Tensor]:
    """Returns inputs and outputs of a model that is passed as a network."""
    if isinstance(network, PredictiveModel):
        raise ValueError(
            "The model has a likelihood already. Copy it by "
            "`keras.models.clone_model(model)`, or pass `model.inputs, model.outputs` "
            "to use its layers with another likelihood. "
            f"Received: inputs={network.name!r} of type {type(network).__name__}"
        )
    graph = graph_of(network)
    if graph is None:
        raise ValueError(
            "A network needs a graph of Keras tensors. Begin a `Sequential` model with "
            "`keras.Input`, and pass `inputs, network(inputs)` for a subclassed model. "
            f"Received: inputs={network.name!r} of type {type(network).__name__}"
        )
    return graph.input, graph.output


def _num_samples(layers: list[VariationalLayer]) -> int:
    """Returns the number of draws in a training step, on which the layers agree."""
    numbers = {layer.estimator.num_samples for layer in layers} - {1}
    if len(numbers) > 1:
        raise ValueError(
            "Layers that draw several samples in a training step must draw the same "
            f"number. Received: num_samples={sorted(numbers)}"
        )
    return numbers.pop() if numbers else 1


def _metric_weights(sample_weight: ArrayLike, rank: int) -> tf.Tensor | None:
    """Returns weights of a step as [rows] or [rows, places...], of `rank` axes."""
    if sample_weight is None:
        return None
    weights = tf.convert_to_tensor(sample_weight)
    if rank == 1 and len(weights.shape) == 2:
        return tf.reduce_mean(weights, axis=1)
    has_last_axis = len(weights.shape) == rank + 1 or weights.shape[1:] == [1]
    return tf.squeeze(weights, -1) if has_last_axis else weights


def _over_replicas(value: Tensor) -> tuple[Tensor, int]:
    """Returns the sum of a value over the replicas of a strategy, and their number."""
    context = tf.distribute.get_replica_context()
    if context is None or context.num_replicas_in_sync == 1:
        return value, 1
    return context.all_reduce("SUM", value), context.num_replicas_in_sync


@contextlib.contextmanager
def _first_callbacks(
    model: keras.Model,
    arguments: Options,
    callbacks: Sequence[keras.callbacks.Callback],
) -> Iterator[None]:
    """Runs callbacks before the others in one `fit`."""
    given = arguments.get("callbacks")
    if not isinstance(given, keras.callbacks.CallbackList):
        others = tree.flatten(given) if given is not None else []
        arguments["callbacks"] = [*callbacks, *others]
        yield
        return
    # Keras sets model and parameters only of the callbacks that it adds itself.
    for callback in callbacks:
        callback.set_model(model)
        callback.set_params(given.params)
    given.callbacks[:0] = callbacks
    try:
        yield
    finally:
        for callback in callbacks:
            given.callbacks.remove(callback)
