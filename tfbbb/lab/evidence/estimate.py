"""An estimate of a log evidence or of a bound of it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class EvidenceEstimate:
    """An estimate in nats, in the units of the targets.

    Attributes:
        value: The estimate of log p(y), or of a lower bound of it.
        standard_error: Its Monte Carlo standard error.
        diagnostics: Figures of the method by name.
    """

    value: float
    standard_error: float
    diagnostics: Mapping[str, float] = field(default_factory=dict)

    @property
    def bits(self) -> float:
        """The estimate in bits."""
        return self.value / math.log(2.0)
