"""Models of counts with an exposure, and of times that are cut off, in other forms."""

import keras
import numpy as np
import onnxruntime
import pytest

import tfbbb
from tests.bayes.likelihoods import test_censored, test_exposure
from tfbbb.bayes.likelihoods import LogNormal, NegativeBinomial, Weibull


def counts():
    model = test_exposure.network(NegativeBinomial(exposure=True))
    model.likelihood.adapt(test_exposure.COUNTS, exposures=test_exposure.EXPOSURES)
    return model, np.array([[3.0], [20.0]])


def times(family):
    model = test_censored.network(family(heteroscedastic=True, censored=True))
    model.likelihood.adapt(test_censored.TARGETS)
    return model, np.array([[3.0, 1.0], [20.0, 0.0]])


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "case", [counts, lambda: times(LogNormal), lambda: times(Weibull)]
)
def test_every_copy_answers_as_the_live_model(case, tmp_path):
    model, targets = case()
    rows = {"x": [0.3, -1.2], "days": [20.0, 700.0]}
    rows = {x.name: np.array(rows[x.name], "float32") for x in model.inputs}
    live = model.predictive(rows, 20, "weight")
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    model.export_predictive(tmp_path / "model", method="weight", num_samples=20)
    answers = [again.predictive(rows, 20, "weight")]
    for engine in ("numpy", "tensorflow"):
        loaded = tfbbb.load(tmp_path / "model", engine=engine)
        answers.append(loaded.predictive(rows, 20, method="weight"))
    for found in answers:
        for name in ("mean", "variance", "epistemic"):
            np.testing.assert_allclose(
                getattr(found, name), getattr(live, name), rtol=1e-4, err_msg=name
            )
        for question, given in (("log_prob", targets), ("quantiles", [0.1, 0.9])):
            np.testing.assert_allclose(
                found.ask(question, given), live.ask(question, given), rtol=1e-4
            )
    path = tmp_path / "model.onnx"
    model.export_predictive(path, format="onnx", num_samples=20)
    (mean,) = onnxruntime.InferenceSession(path).run(["mean"], rows)
    np.testing.assert_allclose(mean, live.mean, rtol=1e-4)
