"""The Kullback-Leibler divergence of a weight's posterior from its prior."""

import itertools
from collections.abc import Callable

from tfbbb.base.types import Tensor
from tfbbb.bayes.priors import Prior
from tfbbb.bayes.variational_weight import VariationalWeight

Covers = Callable[[VariationalWeight], bool]
ClosedForm = Callable[[VariationalWeight], Tensor]
Estimate = Callable[[VariationalWeight, Tensor], Tensor]
Families = type | tuple[type, ...]

_CLOSED_FORMS: dict[tuple[type, type], tuple[ClosedForm, Covers]] = {}
_ESTIMATES: dict[tuple[type, type], Estimate] = {}


def register_kl(
    posterior: Families, prior: Families, covers: Covers = lambda weight: True
) -> Callable[[ClosedForm], ClosedForm]:
    """Registers a function of the weight as KL(q || p) of the families.

    The function applies to exactly these classes, not to their subclasses, and to the
    weights for which `covers` is true. With the prior class `tfbbb.priors.Prior` it
    applies to every prior without a function of its own.
    """

    def register(closed_form: ClosedForm) -> ClosedForm:
        for q, p in itertools.product(_as_tuple(posterior), _as_tuple(prior)):
            _CLOSED_FORMS[q, p] = closed_form, covers
        return closed_form

    return register


def register_estimate(
    posterior: Families, prior: Families
) -> Callable[[Estimate], Estimate]:
    """Registers a function of the weight and its draws as an estimate of KL(q || p).

    The estimate's gradient must be complete even if the draws carry no gradient.
    """

    def register(estimate: Estimate) -> Estimate:
        for pair in itertools.product(_as_tuple(posterior), _as_tuple(prior)):
            _ESTIMATES[pair] = estimate
        return estimate

    return register


def closed_form_of(weight: VariationalWeight) -> ClosedForm | None:
    """Returns KL(q || p) of the weight's two families in closed form, if it has one."""
    for prior in (type(weight.prior), Prior):
        entry = _CLOSED_FORMS.get((type(weight.posterior), prior))
        if entry is not None:
            closed_form, covers = entry
            return closed_form if covers(weight) else None
    return None


def is_log_ratio(weight: VariationalWeight) -> bool:
    """Whether the divergence is estimated as `log q(w) - log p(w)` of draws.

    The gradient of such an estimate needs draws with a gradient; closed forms and other
    estimates get their gradients from the parameters.
    """
    pair = (type(weight.posterior), type(weight.prior))
    return closed_form_of(weight) is None and pair not in _ESTIMATES


def kl_divergence(weight: VariationalWeight, draw: Callable[[], Tensor]) -> Tensor:
    """Returns KL(q(w) || p(w)) in nats, summed over the weights.

    Uses the closed form if one is registered, else the unbiased one-draw estimate

        log q(w) - log p(w),   w ~ q

    which is exactly 0 if q = p (Blundell et al. 2015, equation 2). For normal
    posteriors and `scale_mixture_normal` most of the divergence is in closed form and
    the draw estimates only the rest; for `gamma_normal` and `horseshoe` the result is
    the bound that these classes describe. For a point without a prior it is 0.

    Args:
        weight: The weight, with its posterior, its prior and its variables.
        draw: Returns draws of the weight from q, where there is no closed form.

    Returns:
        A scalar; with members [members], and from several draws [members * samples].
    """
    closed_form = closed_form_of(weight)
    if closed_form is not None:
        return closed_form(weight)
    pair = (type(weight.posterior), type(weight.prior))
    return _ESTIMATES.get(pair, _log_ratio)(weight, draw())


def _as_tuple(families: Families) -> tuple[type, ...]:
    return families if isinstance(families, tuple) else (families,)


def _log_ratio(weight: VariationalWeight, weights: Tensor) -> Tensor:
    return weight.log_prob(weights) - weight.prior_log_prob(weights)
