"""The specs that a search may try."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from tfbbb.base.types import Config
from tfbbb.tables import Schema
from tfbbb.training.plan import TrainingPlan, cross_fitting_repeats
from tfbbb.training.spec import JobSpec

if TYPE_CHECKING:
    import optuna

# Suggests fields of a spec, by the methods `suggest_...` of an Optuna trial.
Space: TypeAlias = Callable[["optuna.Trial"], Config]


@dataclass(frozen=True)
class SearchSpace:
    """What is tried around the choices that the recipe makes for a table.

    A field that the spec sets is not tried. Temperatures, members and, unless the spec
    sets it, the likelihood are chosen within each trial, as in every training.

    Attributes:
        default: The recipe's own choices, by the names of the parameters.
    """

    default: Config

    @classmethod
    def around(
        cls, spec: JobSpec, schema: Schema, targets: np.ndarray
    ) -> "SearchSpace":
        """Returns the space around a spec for a table."""
        repeats = cross_fitting_repeats(spec, len(targets))
        plan = TrainingPlan.from_spec(spec, schema, targets, repeats)
        network = next(iter(plan.networks.values()))
        model, training = spec.model, spec.training
        default: Config = {}
        if model.hidden_units is None and model.layers is None:
            assert network.hidden_units is not None
            default["layers"] = len(network.hidden_units)
            default["units"] = network.hidden_units[0]
        if "activation" not in model.model_fields_set and model.layers is None:
            default["activation"] = network.activation
        if "numeric_encoding" not in model.model_fields_set and any(
            column.kind == "numeric" for column in schema.features
        ):
            default["numeric_encoding"] = network.numeric_encoding
        if training.learning_rate.initial is None:
            default["learning_rate"] = plan.learning_rate.initial
        if training.batch_size is None:
            default["batch_size"] = plan.batch_size
        if training.epochs is None and training.steps is None:
            default["steps"] = plan.steps
        return cls(default)

    def __call__(self, trial: "optuna.Trial") -> Config:
        """Returns fields of a spec, which an Optuna trial suggests."""
        default = self.default
        model: Config = {}
        training: Config = {}
        if "layers" in default:
            depth = trial.suggest_int("layers", 1, 3)
            units = trial.suggest_categorical("units", _around(default["units"]))
            model["hidden_units"] = [units] * depth
        for name, choices in {
            "activation": ["relu", "silu", "tanh"],
            "numeric_encoding": ["standardized", "piecewise_linear"],
        }.items():
            if name in default:
                model[name] = trial.suggest_categorical(name, choices)
        if "learning_rate" in default:
            rate = default["learning_rate"]
            training["learning_rate"] = trial.suggest_float(
                "learning_rate", rate / 5, rate * 3, log=True
            )
        for name in ("batch_size", "steps"):
            if name in default:
                training[name] = trial.suggest_categorical(name, _around(default[name]))
        return {"model": model, "training": training}


def with_fields(spec: JobSpec, fields: Config) -> JobSpec:
    """Returns a spec with other fields; parts such as `model` keep theirs."""
    given: Config = spec.model_dump(mode="json", exclude_unset=True)
    return JobSpec.model_validate(_merged(given, fields))


def _merged(given: Config, fields: Config) -> Config:
    merged = dict(given)
    for name, value in fields.items():
        inner = merged.get(name)
        if isinstance(inner, Mapping) and isinstance(value, Mapping):
            value = _merged(dict(inner), dict(value))
        merged[name] = value
    return merged


def _around(number: int) -> list[int]:
    """Returns half of a number, the number, and twice it."""
    return [max(1, number // 2), number, 2 * number]
