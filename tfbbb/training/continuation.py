"""Whether a spec can go on from a version: yesterday's posterior as today's prior."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tfbbb.data.column_names import list_names
from tfbbb.training.spec import JobSpec, ModelSpec, SpecError
from tfbbb.training.spec.layers import DenseLayer

if TYPE_CHECKING:
    from tfbbb.training.record import TrainingRecord


def check_continuation(
    spec: JobSpec, parent: "TrainingRecord", column_names: Sequence[str]
) -> None:
    """Raises `SpecError` where a spec and a version don't go together.

    Args:
        spec: What is to be trained today.
        parent: What the version to go on from says of its training.
        column_names: The columns of today's table.
    """
    _check_temperature(parent.spec, "The version to go on from")
    _check_temperature(spec, "A training that goes on from a version")
    _check_layers(parent.spec.model)
    if spec.target != parent.spec.target:
        raise SpecError(
            f"The version to go on from predicts {parent.spec.target!r}. "
            f"Received: target={spec.target!r}"
        )
    if spec.task not in (None, parent.schema.task):
        raise SpecError(
            f"The version to go on from is a {parent.schema.task}. "
            f"Received: task={spec.task!r}"
        )
    units = parent.spec.model.hidden_units
    if with_units(spec.model, units) not in (
        with_units(ModelSpec(), units),
        parent.spec.model,
    ):
        raise SpecError(
            "A training that goes on from a version has that version's network; leave "
            f"`model` out. Received: {spec.model.model_dump(exclude_defaults=True)}"
        )
    _check_features(spec, parent, column_names)


def with_units(model: ModelSpec, units: tuple[int, ...] | None) -> ModelSpec:
    """Returns a model with these hidden layers where it says nothing of them."""
    if model.hidden_units is not None or model.layers is not None:
        return model
    return model.model_copy(update={"hidden_units": units})


def _check_temperature(spec: JobSpec, whose: str) -> None:
    schedule = spec.training.kl_schedule
    if not schedule.counts_rows_once:
        raise SpecError(
            f"{whose} must count its rows once, at temperature 1, or the next prior "
            "would weigh them otherwise than its own rows. "
            f"Received: kl_schedule={schedule.model_dump()}"
        )


def _check_layers(model: ModelSpec) -> None:
    for layer in (*model.hidden_layers(()), model.output_layer(1)):
        if layer.type in ("batch_normalization", "layer_normalization"):
            raise SpecError(
                "The version to go on from has a normalization layer, whose weights "
                "have no posterior that could be a prior. "
                f"Received: layer {layer.type!r}"
            )
        if not isinstance(layer, DenseLayer):
            continue
        for posterior in (layer.posterior, layer.bias_posterior):
            assert posterior is not None
            if not posterior.has_density:
                raise SpecError(
                    f"The posterior '{posterior.name}' of the version to go on from "
                    "has no density, so that it can't be a prior."
                )


def _check_features(
    spec: JobSpec, parent: "TrainingRecord", column_names: Sequence[str]
) -> None:
    known = [column.name for column in parent.schema.features]
    aside = (spec.target, spec.training.validation.column)
    asked = spec.features or [name for name in column_names if name not in aside]
    for problem, names in (
        ("not", [name for name in asked if name not in known]),
        ("also", [name for name in known if name not in asked]),
    ):
        if names:
            raise SpecError(
                f"The version to start from predicts {problem} from "
                f"{list_names(names)}; its features are {list_names(known)}."
            )
