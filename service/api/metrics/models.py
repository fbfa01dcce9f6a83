"""Metrics of the model processes, told apart by a label."""

from collections.abc import Iterable, Sequence

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

_LABEL = "model_process"


class _Labelled(Collector):
    def __init__(self, texts: Sequence[bytes | bytearray]) -> None:
        self._texts = texts

    def collect(self) -> Iterable[Metric]:
        families: dict[str, Metric] = {}
        for number, text in enumerate(self._texts):
            for family in text_string_to_metric_families(bytes(text).decode()):
                first = families.setdefault(family.name, family)
                samples = [
                    sample._replace(labels={**sample.labels, _LABEL: str(number)})
                    for sample in family.samples
                ]
                first.samples = samples if first is family else first.samples + samples
        return families.values()


def label_by_process(texts: Sequence[bytes | bytearray]) -> bytes:
    """Joins the metrics of several processes, in the format of Prometheus.

    Each sample gets the label `model_process`, the number of its process, so that those
    of a restarted process start from 0 on their own.
    """
    registry = CollectorRegistry()
    registry.register(_Labelled(texts))
    return generate_latest(registry)
