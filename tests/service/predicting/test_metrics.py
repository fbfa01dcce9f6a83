import numpy as np
import pytest
from prometheus_client import CollectorRegistry

from service.predicting.answer import VersionName
from service.predicting.metrics import UncertaintyMetrics

VERSION = VersionName("m", 3)


@pytest.fixture
def registry():
    return CollectorRegistry()


@pytest.fixture
def uncertainty(registry):
    return UncertaintyMetrics(registry)


def value_of(registry, name, **labels):
    return registry.get_sample_value(name, {"model": "m", "version": "3"} | labels)


def test_each_prediction_is_counted_once_at_or_below_its_bound(uncertainty, registry):
    variance = np.array([[0.01], [1.0], [100.0], [1e20]])
    epistemic = variance * np.array([[0.0], [0.1], [0.25], [1.0]])
    for _ in range(2):
        uncertainty.observe(VERSION, [{"variance": variance, "epistemic": epistemic}])
    name = "tfbbb_predictive_standard_deviation"
    assert value_of(registry, f"{name}_bucket", le="0.03") == 0
    assert value_of(registry, f"{name}_bucket", le="0.1") == 2
    assert value_of(registry, f"{name}_bucket", le="1.0") == 4
    assert value_of(registry, f"{name}_bucket", le="+Inf") == 8
    assert value_of(registry, f"{name}_count") == 8
    assert value_of(registry, f"{name}_sum") == pytest.approx(2 * (11.1 + 1e10))
    name = "tfbbb_epistemic_share"
    assert value_of(registry, f"{name}_bucket", le="0.1") == 4
    assert value_of(registry, f"{name}_bucket", le="0.3") == 6
    assert value_of(registry, f"{name}_bucket", le="1.0") == 8


def test_classes_are_counted_by_their_entropy(uncertainty, registry):
    entropy, information = np.array([0.0, 0.5]), np.array([0.0, 0.25])
    outputs = {"entropy": entropy, "mutual_information": information}
    uncertainty.observe(VERSION, [outputs])
    assert value_of(registry, "tfbbb_predictive_entropy_sum") == 0.5
    assert value_of(registry, "tfbbb_epistemic_share_sum") == 0.5
