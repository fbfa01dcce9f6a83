"""What a conversion did to each layer of a network, as a table."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Self

import keras

from tfbbb.base.texts import aligned
from tfbbb.base.types import Config
from tfbbb.bayes.estimators import ClosedForm
from tfbbb.bayes.kl_schedules import KLSchedule
from tfbbb.layers import VariationalLayer
from tfbbb.model.converted_layers import parts


@dataclass(frozen=True)
class ConvertedLayer:
    """What became of one layer: its name, the class that it has now and its weights.

    `note` is the prior of its kernels, and whether its loss is in closed form; or why
    it stayed deterministic, without a `posterior`.
    """

    name: str
    kind: str
    weights: int
    posterior: bool
    note: str


@dataclass(frozen=True)
class Conversion:
    """What `tfbbb.convert` did: `print(twin.conversion)` shows a table.

    `layers` are those with weights and those that lost their activation; `kl_schedule`
    is the one that `compile` takes by default, None where the model is no
    `BayesianModel`; `removed` are activations that were removed from outputs.
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
        rows = [("layer", "now", "weights", "prior, or why it stays")]
        for layer in self.layers:
            rows.append((layer.name, layer.kind, f"{layer.weights:,}", layer.note))
        lines = aligned(rows, right={2})
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
        if is_variational:
            note = repr(new.prior)
            weights = sum(weight.size for weight in new.variational_weights)
            if isinstance(new.estimator, ClosedForm):
                note += ", loss in closed form"
            if getattr(layer, "lora_enabled", False):
                note += ", LoRA merged into the kernel"
        yield ConvertedLayer(
            layer.name, type(new).__name__, weights, is_variational, note
        )
