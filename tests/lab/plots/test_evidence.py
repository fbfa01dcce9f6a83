import numpy as np
import pytest
from matplotlib.figure import Figure

from tfbbb.lab.evidence import EvidenceEstimate
from tfbbb.lab.plots import evidence_curve


def test_each_curve_marks_its_best_size():
    estimates = [EvidenceEstimate(value, 0.5) for value in (-9.0, -4.0, -3.0)]
    axes = evidence_curve(
        [3, 1, 2],
        {"exact": [-3.0, -8.0, -2.0], "ELBO": estimates},
        axes=Figure().subplots(),
    )
    texts = [text.get_text() for text in axes.get_legend().get_texts()]
    assert texts == ["exact: best at 2", "ELBO: best at 2"]
    assert axes.lines[0].get_xdata().tolist() == [1.0, 2.0, 3.0]
    (bars,) = axes.collections
    np.testing.assert_allclose(
        [segment[:, 1] for segment in bars.get_segments()],
        [[-10.0, -8.0], [-5.0, -3.0], [-4.0, -2.0]],
    )


@pytest.mark.parametrize(
    ("curves", "message"),
    [
        ({}, "1 to 6 curves. Received: 0"),
        ({"exact": [1.0]}, "one value for each row"),
        ({"exact": [1.0, np.nan]}, "that are not"),
    ],
)
def test_what_cannot_be_drawn_is_refused(curves, message):
    with pytest.raises(ValueError, match=message):
        evidence_curve([1, 2], curves, axes=Figure().subplots())
