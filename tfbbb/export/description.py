"""The parts of a manifest that describe a model."""

import math
import platform
from collections.abc import Sequence
from importlib import metadata

from tfbbb.base.texts import snake_case
from tfbbb.base.types import Config
from tfbbb.bayes import likelihoods
from tfbbb.export.manifest import FamiliarityInfo, LayerSummary, Targets
from tfbbb.layers import VariationalLayer
from tfbbb.prediction import recalibration
from tfbbb.prediction.familiarity import Familiarity
from tfbbb.prediction.recalibration import Recalibration
from tfbbb.version import __version__


def class_names(
    likelihood: likelihoods.Likelihood, given: Sequence[str] | None
) -> tuple[str, ...] | None:
    """Returns the names of the classes, their indices by default; None of numbers."""
    if likelihood.task != "classification":
        return None
    default = [str(index) for index in range(likelihood.num_classes)]
    classes = tuple(given or default)
    if len(classes) != likelihood.num_classes:
        raise ValueError(
            f"The likelihood has {likelihood.num_classes} classes. "
            f"Received: {len(classes)} class names"
        )
    return classes


def describe_likelihood(likelihood: likelihoods.Likelihood) -> Config:
    """Returns class and configuration of a likelihood."""
    serialized = likelihoods.serialize(likelihood)
    inherited = ("name", "trainable", "dtype")
    config = {k: v for k, v in serialized["config"].items() if k not in inherited}
    return {"class_name": serialized["class_name"], "config": config}


def describe_recalibration(given: Recalibration | None) -> Config | None:
    """Returns class and configuration of a recalibration; None for None."""
    if given is None:
        return None
    serialized = recalibration.serialize(given)
    return {"class_name": serialized["class_name"], "config": serialized["config"]}


def layer_summary(layer: VariationalLayer) -> LayerSummary:
    """Describes one layer."""
    return LayerSummary(
        name=layer.name,
        class_name=type(layer).__name__,
        posterior=repr(layer.posterior),
        prior=repr(layer.prior),
        estimator=snake_case(type(layer.estimator).__name__),
        num_parameters=sum(
            math.prod(variable.shape)
            for weight in layer.variational_weights
            for variable in weight.variables.values()
        ),
    )


def describe_targets(
    likelihood: likelihoods.Likelihood, mean_shape: Sequence[int | None]
) -> Targets:
    """Describes the targets of one row."""
    shape = tuple(mean_shape)
    if likelihood.task == "classification":
        shape = shape[:-1]
    elif likelihood.support is None:
        raise ValueError(
            "The likelihood of a regression must say which numbers its targets may be: "
            "set its attribute `support` to a `tfbbb.support.Support`. "
            f"Received: likelihood={type(likelihood).__name__}"
        )
    return Targets(
        shape,
        likelihood.support,
        likelihood.ordered,
        likelihood.discrete,
        likelihood.noise_size,
    )


def libraries() -> dict[str, str]:
    """Returns the versions of the libraries that write an export."""
    packages = ("tensorflow", "keras", "tensorflow_probability")
    versions = {name: metadata.version(name) for name in packages}
    return {"tfbbb": __version__, **versions, "python": platform.python_version()}


def describe_familiarity(familiarity: Familiarity | None) -> FamiliarityInfo | None:
    """Describes what the familiarity of a row compares."""
    if familiarity is None:
        return None
    return FamiliarityInfo(familiarity.num_rows, familiarity.columns)
