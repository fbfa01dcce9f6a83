"""Checks whether a spec can start from a parent version."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tfbbb.tables.column_names import list_names
from tfbbb.training.spec import JobSpec, ModelSpec, SpecError
from tfbbb.training.spec.layers import DenseLayer

if TYPE_CHECKING:
    from tfbbb.training.record import TrainingRecord


def check_continuation(
    spec: JobSpec, parent: "TrainingRecord", column_names: Sequence[str]
) -> None:
    """Raises `SpecError` if a spec cannot start from a parent version."""
    _check_temperature(spec)
    _check_parent_temperature(parent.spec)
    _check_layers(parent.spec.model)
    if spec.target != parent.spec.target:
        raise SpecError(
            f"The target must be that of the parent version, {parent.spec.target!r}. "
            f"Received: target={spec.target!r}",
            "target",
        )
    if spec.task not in (None, parent.schema.task):
        raise SpecError(
            f"The task must be that of the parent version, {parent.schema.task!r}. "
            f"Received: task={spec.task!r}",
            "task",
        )
    given = {
        name: value
        for name, value in spec.model
        if value not in (getattr(ModelSpec(), name), getattr(parent.spec.model, name))
    }
    if given:
        raise SpecError(
            "A training with a parent version uses the parent's network; leave `model` "
            f"out. Received: {spec.model.model_dump(include=set(given))}",
            "model",
        )
    _check_features(spec, parent, column_names)


def _check_temperature(spec: JobSpec) -> None:
    schedule = spec.training.kl_schedule
    if schedule is not None and not schedule.counts_rows_once:
        raise SpecError(
            "A training with a parent version must count its rows once, at temperature "
            "1, or the prior would weigh rows differently from the likelihood. "
            f"Received: kl_schedule={schedule.model_dump()}",
            "training.kl_schedule",
        )


def _check_parent_temperature(parent: JobSpec) -> None:
    """Raises `SpecError` for a temperature that `untemper` cannot take out."""
    schedule = parent.training.kl_schedule
    if schedule is None or schedule.counts_rows_once:
        return
    model = parent.model
    layers = (*model.hidden_layers(()), model.output_layer(1))
    others = [
        "none" if part is None else part.name
        for layer in layers
        if isinstance(layer, DenseLayer)
        for part, name in (
            (layer.posterior, "mean_field_normal"),
            (layer.bias_posterior, "mean_field_normal"),
            (layer.prior, "normal"),
            (layer.bias_prior, "normal"),
        )
        if part is None or part.name != name
    ]
    if schedule.name != "tempered" or others:
        received = f"kl_schedule={schedule.model_dump()}"
        if others:
            received += f", {', '.join(dict.fromkeys(others))}"
        raise SpecError(
            "The parent version counts its rows more than once, at a temperature other "
            "than 1, and only normal posteriors with normal priors can be taken to "
            "temperature 1. Train the parent with normal priors, as every network has "
            'whose `hidden_units` are named, or with "kl_schedule": "constant". '
            f"Received: {received}"
        )


def _check_layers(model: ModelSpec) -> None:
    for layer in (*model.hidden_layers(()), model.output_layer(1)):
        if layer.type in ("batch_normalization", "layer_normalization"):
            raise SpecError(
                "The parent version has a normalization layer, whose weights have "
                "no posterior that could become a prior. "
                f"Received: layer {layer.type!r}"
            )
        if not isinstance(layer, DenseLayer):
            continue
        for posterior in (layer.posterior, layer.bias_posterior):
            assert posterior is not None
            if not posterior.family.has_density:
                raise SpecError(
                    f"The posterior '{posterior.name}' of the parent version has no "
                    "density, so it cannot become a prior."
                )


def _check_features(
    spec: JobSpec, parent: "TrainingRecord", column_names: Sequence[str]
) -> None:
    known = [column.name for column in parent.schema.features]
    left_out = {name for name, _ in parent.schema.left_out} | {
        name for name, text in spec.columns.items() if text == "ignore"
    }
    requested = spec.features or [
        name for name in column_names if name not in {*spec.not_features, *left_out}
    ]
    for problem, names in (
        ("lacks the features", [name for name in requested if name not in known]),
        ("also has the features", [name for name in known if name not in requested]),
    ):
        if names:
            raise SpecError(
                f"The parent version {problem} {list_names(names)}; its features "
                f"are {list_names(known)}."
            )
