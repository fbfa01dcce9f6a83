import numpy as np
import pytest
from scipy import optimize, special

from tests.prediction.recalibration.known_models import (
    DRAWS,
    DrawnModel,
    X,
    drawn,
    network,
)
from tfbbb.prediction.mixture import Mixture
from tfbbb.prediction.recalibration import Temperature

CLASSES = {
    "categorical": lambda: (4, "categorical"),
    "bernoulli": lambda: (1, "bernoulli"),
}


def labels_at(temperature, model, x, seed=0):
    model.recalibration = Temperature(temperature)
    labels = drawn(model, x, seed)
    model.recalibration = None
    return labels


# Classes of each kind in short, half of them of members.
@pytest.mark.parametrize(
    ("name", "members"),
    [("categorical", None), ("bernoulli", 2)],
)
def test_the_temperature_of_the_labels_is_recovered(name, members):
    units, likelihood = CLASSES[name]()
    model = DrawnModel(units, likelihood, spread=1.0, members=members)
    x = X[:500]
    labels = labels_at(0.4, model, x)

    prediction = model.predictive(x, num_samples=DRAWS)

    def log_prob(outputs, labels, temperature):
        tempered = model.likelihood.tempered(outputs, temperature[0])
        return Mixture(model.likelihood, tempered).log_prob(labels)

    def loss(temperature):
        of_rows = np.full(len(x), temperature)
        return -prediction.of_outputs(log_prob, labels, of_rows).mean()

    # The standard error by the curvature of the likelihood in log T.
    step = 0.1
    curvature = (
        loss(0.4 * np.exp(step)) + loss(0.4 * np.exp(-step)) - 2.0 * loss(0.4)
    ) / step**2
    found = model.recalibrate(x, labels, num_samples=DRAWS).temperature
    error = 1.0 / np.sqrt(curvature * len(x))
    assert np.log(found) == pytest.approx(np.log(0.4), abs=4.0 * error)
    # No other is better on the rows that it was fitted on.
    assert loss(found) <= min(loss(0.97 * found), loss(1.03 * found))


@pytest.mark.few(2)
@pytest.mark.parametrize("name", CLASSES)
def test_the_logits_of_every_draw_are_divided(name):
    units, likelihood = CLASSES[name]()
    model = DrawnModel(units, likelihood, spread=1e-6)
    # Of one draw, all of them being alike: log odds.
    raw = model.predictive(X[:5]).probabilities
    model.recalibration = Temperature(2.5)
    tempered = model.predictive(X[:5]).probabilities
    before, after = (np.log(p[:, 1:] / p[:, :1]) for p in (raw, tempered))
    np.testing.assert_allclose(after, before / 2.5, rtol=1e-3, atol=1e-4)


def test_coherent_functions_follow_the_temperature():
    model = network(4, "categorical", spread=1.0)
    model.recalibration = Temperature(0.5)
    functions = model.predictive(X[:5]).joint_sample(50)
    np.testing.assert_allclose(functions.sum(axis=-1), 1.0, atol=1e-6)
    model.recalibration = None
    powers = model.predictive(X[:5]).joint_sample(50) ** 2.0
    expected = powers / powers.sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(functions, expected, rtol=1e-3, atol=1e-5)


def test_numbers_are_refused():
    with pytest.raises(ValueError, match=r"which only classes have.*likelihood=Normal"):
        DrawnModel().recalibrate(X[:50], np.zeros(50), "temperature")


def test_rows_that_are_all_right_have_the_temperature_of_the_prior():
    """Their likelihood grows for ever with lower temperatures."""
    model = DrawnModel(4, "categorical", spread=1e-6)
    x = X[:100]
    probabilities = model.predictive(x).probabilities
    labels = probabilities.argmax(axis=1)
    logits = np.log(probabilities)

    def loss(log_temperature):
        log_p = special.log_softmax(logits / np.exp(log_temperature), axis=1)
        nll = -log_p[np.arange(len(labels)), labels].sum()
        return nll + 0.5 * log_temperature**2

    best = optimize.minimize_scalar(loss, bounds=(-5.0, 0.0), method="bounded")
    found = model.recalibrate(x, labels).temperature
    assert np.log(found) == pytest.approx(best.x, abs=1e-3)
