import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread

from tests.scores.plots import pictures
from tests.scores.plots.pictures import BASELINE, PICTURES, save_without_text
from tfbbb import plots

# Root mean square of the differences in colour, from 0 to 1. Releases 3.10 and 3.11 of
# Matplotlib draw all pictures alike; the smallest part of one, three ticks, is 0.007.
TOLERANCE = 0.005


@pytest.fixture
def difference(tmp_path):
    def from_baseline(name):
        save_without_text(name, tmp_path / "now.png")
        now, baseline = imread(tmp_path / "now.png"), imread(BASELINE / f"{name}.png")
        assert now.shape == baseline.shape
        return np.sqrt(np.mean((now - baseline)[..., :3] ** 2))

    return from_baseline


def parts(axes):
    return [*axes.lines, *axes.collections, *axes.patches]


@pytest.mark.parametrize("name", PICTURES)
def test_a_plot_equals_its_reviewed_image(name, difference):
    assert difference(name) < TOLERANCE


@pytest.mark.parametrize("name", PICTURES)
def test_a_plot_without_one_part_differs_from_its_image(name, difference, monkeypatch):
    draw, axes = PICTURES[name], Figure().subplots()
    draw(axes)
    for index in range(len(parts(axes))):

        def draw_without(axes, index=index):
            draw(axes)
            parts(axes)[index].set_visible(False)

        monkeypatch.setitem(pictures.PICTURES, name, draw_without)
        assert difference(name) > TOLERANCE


def test_every_plot_has_a_reviewed_image():
    assert sorted(PICTURES) == sorted(plots.__all__)
    assert {path.stem for path in BASELINE.iterdir()} == set(PICTURES)
