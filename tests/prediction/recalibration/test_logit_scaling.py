import numpy as np
import pytest

from tests.prediction.recalibration.known_models import (
    DRAWS,
    DrawnModel,
    X,
    drawn,
    network,
)
from tfbbb.bayes.likelihoods import Categorical
from tfbbb.prediction.recalibration import Platt, VectorScaling, choose
from tfbbb.prediction.recalibration.factors import scaled
from tfbbb.prediction.recalibration.from_outputs import apply, predictive_from_outputs


def labelled(
    method, units=3, likelihood="categorical", members=None, x=X[:600], make=DrawnModel
):
    """Returns a model, and labels that its predictions by a method are right for."""
    model = make(units, likelihood, spread=0.7, members=members)
    model.recalibration = method
    labels = drawn(model, x)
    model.recalibration = None
    return model, x, labels


def penalised(method, model, prediction, labels):
    """Returns what a fit minimises, by the answers of the recalibrated prediction."""
    log_prob = apply(method, model.likelihood, prediction).log_prob(labels)
    logs = np.log(method.slopes)
    penalty = (
        np.square(method.offsets).sum() + 4.0 * np.square(logs - logs.mean()).sum()
    )
    return -log_prob.mean() + 0.5 * penalty / len(labels)


@pytest.mark.parametrize(
    ("method", "units", "likelihood", "members"),
    [
        (Platt(), 1, "bernoulli", None),
        (Platt(), 3, "categorical", 2),
        (VectorScaling(), 3, "categorical", None),
    ],
)
def test_a_fit_minimises_the_penalised_loss(method, units, likelihood, members):
    model, x, labels = labelled(
        Platt(0.6, [0.7] + [0.0] * (units - 1)), units, likelihood, members
    )
    prediction = model.predictive(x, num_samples=DRAWS)
    fitted = method.fitted(model.likelihood, prediction, labels)
    least = penalised(fitted, model, prediction, labels)
    assert least < penalised(
        type(method)(1.0, [0.0] * units), model, prediction, labels
    )
    for name in ("slopes", "offsets"):
        for place in range(len(getattr(fitted, name))):
            for change in (-0.05, 0.05):
                config = fitted.get_config()
                config[name][place] += change
                other = type(method).from_config(config)
                assert penalised(other, model, prediction, labels) > least


def test_slope_and_offset_of_two_classes_are_recovered():
    model, x, labels = labelled(Platt(0.5, 0.8), 1, "bernoulli", x=X, make=network)
    found = Platt().fitted(
        model.likelihood, model.predictive(x, num_samples=DRAWS), labels
    )
    # Standard errors of 2000 labels are some 0.05.
    assert found.slopes[0] == pytest.approx(0.5, abs=0.15)
    assert found.offsets[0] == pytest.approx(0.8, abs=0.15)


def test_offsets_are_kept_where_they_help():
    model, x, labels = labelled(Platt(1.0, [1.5, 0.0, -1.0]))
    prediction = model.predictive(x, num_samples=DRAWS)
    choice = choose(model.likelihood, prediction, labels)
    assert choice.report["chosen"].startswith("platt")
    tried = {each["name"]: each["log_likelihood"] for each in choice.report["tried"]}
    assert tried["platt"] > tried["none"] + 0.1
    assert tried["platt"] > tried["temperature"] + 0.1


def test_slopes_of_classes_are_kept_where_they_help():
    generator = np.random.default_rng(0)
    likelihood = Categorical()
    likelihood.build((None, 3))
    logits = 2.0 * generator.normal(size=(2000, 1, 3))
    logits = logits + 0.1 * generator.normal(size=(2000, 4, 3))
    slopes = np.array([0.2, 1.0, 3.0])
    noise = generator.gumbel(size=(2000, 3))
    labels = np.argmax(slopes * logits[:, 0] + noise, axis=1)
    prediction = predictive_from_outputs(likelihood, logits)
    choice = choose(likelihood, prediction, labels)
    assert choice.report["chosen"].startswith("vector_scaling")
    found = choice.recalibration.density.slopes
    # Standard errors are some tenth of each.
    np.testing.assert_allclose(np.log(found), np.log(slopes), atol=0.4)


def test_few_rows_hardly_move_a_class():
    model, x, labels = labelled(None, x=X[:25])
    found = VectorScaling().fitted(
        model.likelihood, model.predictive(x, num_samples=DRAWS), labels
    )
    assert np.ptp(np.log(found.slopes)) < 1.0
    assert np.abs(found.offsets).max() < 1.5


def test_a_factor_divides_all_logits():
    found = scaled(
        Platt(0.5, [0.2, 0.4]), DrawnModel(2, "categorical").likelihood, 2.0, 1.0
    )
    assert found == Platt(0.25, [0.1, 0.2])


def test_logits_of_classes_are_needed():
    model = DrawnModel(1, "normal")
    with pytest.raises(ValueError, match=r"Only classes have logits.*Received"):
        model.recalibrate(X[:50], np.zeros(50, int), "platt")
