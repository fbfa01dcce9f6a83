"""Which layer of a model has its loss in closed form."""

from collections.abc import Sequence

import keras

from tfbbb.base.texts import snake_case
from tfbbb.bayes.estimators import ClosedForm
from tfbbb.bayes.likelihoods import Likelihood
from tfbbb.layers import VariationalLayer
from tfbbb.layers.sharing import calls_per_pass
from tfbbb.prediction.structure import output_layers


def closed_form_layer(
    model: keras.Model, layers: Sequence[VariationalLayer], likelihood: Likelihood
) -> VariationalLayer | None:
    """Returns the layer with the estimator `closed_form`, None if there is none."""
    for layer in layers:
        if not isinstance(layer.estimator, ClosedForm):
            continue
        if reason := _reason_against(model, layer, likelihood):
            raise ValueError(
                f"The estimator 'closed_form' does not suit the layer '{layer.name}': "
                f"{reason}. Use `estimator='auto'`, which draws. Received: "
                f"estimator='closed_form' with likelihood={type(likelihood).__name__}"
            )
        return layer
    return None


def choose_closed_form(
    model: keras.Model, layers: Sequence[VariationalLayer], likelihood: Likelihood
) -> None:
    """Gives the last layer the estimator `closed_form` where the loss is then exact.

    The arguments are those of `closed_form_layer`.
    """
    for layer in layers:
        posteriors = [weight.posterior for weight in layer.variational_weights]
        serves = ClosedForm().serves(layer, posteriors)
        if serves and not _reason_against(model, layer, likelihood):
            layer.estimator = ClosedForm()


def _reason_against(
    model: keras.Model, layer: VariationalLayer, likelihood: Likelihood
) -> str:
    """Returns why a layer of a model has no loss in closed form, or ""."""
    if output_layers(model) != (layer,):
        return "its outputs must be those of the model, as they are"
    if getattr(layer, "activation", None) is not keras.activations.linear:
        return "it must have no activation"
    if calls_per_pass(model, layer) != 1:
        return "the model must call it once"
    if not likelihood.has_expected_log_prob:
        return (
            f"the likelihood '{snake_case(type(likelihood).__name__)}' with these "
            "arguments has no expectation over normal outputs in closed form; "
            "'normal' with one noise for all rows has"
        )
    return ""
