"""What an inference method reports beside the posterior that it returns."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from tfbbb.base.types import Config


@dataclass(frozen=True)
class InferenceResult:
    """How a `BayesianModel` got its posterior; saved with the model.

    `log_evidence` is log p(y) or an approximation of it, in nats and the units of the
    targets, and `diagnostics` are figures by name, as JSON has them. `linearised` says
    that the posterior is that of the network that is linear in its weights around their
    means: predictions then take this network.
    """

    method: str
    log_evidence: float | None = None
    diagnostics: Mapping[str, Any] = field(default_factory=dict)
    linearised: bool = False

    def get_config(self) -> Config:
        """Returns the arguments that make an equal result, as JSON has them."""
        return asdict(self)

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """Makes the result that `config` (from `get_config`) describes."""
        return cls(**config)
