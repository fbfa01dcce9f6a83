"""What a conversion did to each layer of a network, as a table."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Self

import keras

from tfbbb.base.texts import aligned
from tfbbb.base.types import Config
from tfbbb.bayes.estimators import Auto, ClosedForm
from tfbbb.bayes.kl_schedules import KLSchedule
from tfbbb.layers import VariationalLayer
from tfbbb.model.converted_layers import parts


@dataclass(frozen=True)
class ConvertedLayer:
    """What became of one layer.

    Attributes:
        name: Its name.
        kind: The class that it has now.
        weights: Number of its weights.
        posterior: Whether they have a posterior.
        num_products: Number of products of inputs and kernel in a step of training, for
            each one of the network.
        note: The prior of its kernels, and whether its loss is in closed form; or why
            it stayed deterministic.
    """

    name: str
    kind: str
    weights: int
    posterior: bool
    num_products: int
    note: str


@dataclass(frozen=True)
class Conversion:
    """What `tfbbb.convert` did: `print(twin.conversion)` shows a table.

    Attributes:
        layers: The layers with weights, and the layers that lost their activation.
        kl_schedule: The schedule that `compile` takes by default; None where the
            model is no `BayesianModel`.
        removed: The activations that were removed from outputs.
        members: Number of posteriors of each layer with one.
    """

    layers: tuple[ConvertedLayer, ...]
    kl_schedule: KLSchedule | None = None
    removed: tuple[str, ...] = ()
    members: int = 1

    def get_config(self) -> Config:
        """Returns the fields, the schedule as Keras serialises it."""
        schedule = self.kl_schedule
        return {
            "layers": [asdict(layer) for layer in self.layers],
            "kl_schedule": schedule and keras.saving.serialize_keras_object(schedule),
            "removed": list(self.removed),
            "members": self.members,
        }

    @classmethod
    def from_config(cls, config: Config) -> Self:
        """Returns what `get_config` described."""
        schedule = config["kl_schedule"]
        if isinstance(schedule, dict):
            schedule = keras.saving.deserialize_keras_object(schedule)
        return cls(
            tuple(ConvertedLayer(**layer) for layer in config["layers"]),
            schedule,
            tuple(config["removed"]),
            config["members"],
        )

    @property
    def num_posterior(self) -> int:
        """Number of weights with a posterior."""
        return sum(layer.weights for layer in self.layers if layer.posterior)

    @property
    def num_weights(self) -> int:
        """Number of weights of the network."""
        return sum(layer.weights for layer in self.layers)

    def __str__(self) -> str:
        rows = [("layer", "now", "weights", "products", "prior, or why it stays")]
        for layer in self.layers:
            numbers = f"{layer.weights:,}", str(layer.num_products)
            rows.append((layer.name, layer.kind, *numbers, layer.note))
        lines = aligned(rows, right={2, 3})
        lines.insert(1, "-" * max(map(len, lines)))
        lines.append(
            f"{self.num_posterior:,} of {self.num_weights:,} weights have a posterior, "
            "which starts at the network's weights."
        )
        if self.members > 1:
            lines.append(
                f"Of {self.members} members the first starts there, the others as new "
                "layers do."
            )
        lines.append(
            "Time: `products` counts a training step's for each one of the network; a "
            "draw of a\nprediction is a pass from the first layer with a posterior on."
        )
        if self.kl_schedule is not None:
            lines.append(f"KL schedule, unless `compile` gets one: {self.kl_schedule}.")
        if self.removed:
            lines.append(
                f"Removed at the end: {', '.join(self.removed)}. Outputs are logits."
            )
        return "\n".join(lines)


def describe(
    model: keras.Model, twin: keras.Model, reasons: Mapping[int, str]
) -> Iterable[ConvertedLayer]:
    """Yields what became of each layer with weights, in their order."""
    seen: set[int] = set()
    for layer, new in zip(parts(model), parts(twin), strict=True):
        if id(layer) in seen or not layer.weights:
            continue
        seen.add(id(layer))
        note = reasons[id(layer)]
        weights = sum(math.prod(weight.shape) for weight in layer.weights)
        is_variational = isinstance(new, VariationalLayer)
        num_products = 1
        if is_variational:
            estimator = new.estimator
            if isinstance(estimator, Auto):
                # `local`, which it may choose too, takes as many as `flipout`.
                estimator = estimator.choose_of_weights(new)
            num_products = estimator.num_products
            note = repr(new.prior)
            weights = sum(weight.size for weight in new.variational_weights)
            if isinstance(new.estimator, ClosedForm):
                note += ", loss in closed form"
            if getattr(layer, "lora_enabled", False):
                note += ", LoRA merged into the kernel"
        yield ConvertedLayer(
            layer.name,
            type(new).__name__,
            weights,
            is_variational,
            num_products,
            note,
        )
