"""The Kullback-Leibler divergence of a weight's posterior from its prior."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from keras import ops

from tfbbb.posteriors import MeanFieldNormal
from tfbbb.priors import Normal

if TYPE_CHECKING:
    from tfbbb.layers.variational_weight import VariationalWeight

ClosedForm = Callable[["VariationalWeight"], Any]

_CLOSED_FORMS: dict[tuple[type, type], ClosedForm] = {}


def register_kl(posterior: type, prior: type) -> Callable[[ClosedForm], ClosedForm]:
    """Registers a function of the weight as KL(q || p) of the two families."""

    def register(closed_form: ClosedForm) -> ClosedForm:
        _CLOSED_FORMS[posterior, prior] = closed_form
        return closed_form

    return register


def closed_form_of(weight: "VariationalWeight") -> ClosedForm | None:
    """Returns the registered closed form for the weight's two families, if any."""
    return _CLOSED_FORMS.get((type(weight.posterior), type(weight.prior)))


def kl_divergence(weight: "VariationalWeight", draw: Any) -> Any:
    """Returns KL(q(w) || p(w)) in nats, summed over the weights.

    In closed form where one is registered, else the unbiased one-draw estimate

        log q(w) - log p(w),   w ~ q

    which is exactly 0 where q = p (Blundell et al. 2015, equation 2). A point without
    a prior has none: 0.

    Args:
        weight: The weight, with its posterior, its prior and its variables.
        draw: A function of no arguments that returns draws of the weight from q; it
            is called only where there is no closed form.

    Returns:
        A scalar; with members [members], and from several draws [members * samples].
    """
    closed_form = closed_form_of(weight)
    if closed_form is not None:
        return closed_form(weight)
    weights = draw()
    return weight.log_prob(weights) - weight.prior_log_prob(weights)


@register_kl(MeanFieldNormal, Normal)
def _mean_field_normal_from_normal(weight: "VariationalWeight") -> Any:
    # sum_i [log(s / sigma_i) + (sigma_i^2 + mu_i^2) / (2 s^2) - 1/2]
    scale = cast(Normal, weight.prior).scale_for(weight.fan_in)
    second_moment = weight.sum(weight.variance) + weight.sum(ops.square(weight.mean))
    entropy_part = weight.sum(weight.parameters["log_scale"])
    return (
        second_moment / (2.0 * scale**2)
        - entropy_part
        + weight.size * (math.log(scale) - 0.5)
    )
