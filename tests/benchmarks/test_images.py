"""LeNet by several methods, and the corruptions that it meets."""

import numpy as np
import pytest
from scipy import ndimage

from tests.benchmarks.digits import write_images
from tests.benchmarks.programs import load, run_smoke

corruptions = load("corruptions")
image_sets = load("image_sets")


@pytest.fixture(scope="module")
def strokes():
    """Twenty images of a slanted stroke, with grey edges."""
    images = np.zeros((20, 28, 28), "float32")
    for column in range(8, 20):
        images[:, column, column - 2 : column + 2] = 1.0
    return ndimage.gaussian_filter(images, (0.0, 0.7, 0.7))


@pytest.mark.parametrize("name", corruptions.CORRUPTIONS)
def test_a_higher_level_changes_images_more(strokes, name):
    changed = [corruptions.corrupted(strokes, name, level) for level in (1, 5)]
    for images in changed:
        assert images.shape == strokes.shape
        assert images.dtype == np.float32
        assert 0.0 <= images.min() <= images.max() <= 1.0
    mild, strong = (np.abs(images - strokes).mean() for images in changed)
    assert 0.0 < mild < strong


def test_a_turned_image_is_that_of_scipy(strokes):
    expected = [
        ndimage.rotate(strokes[0], sign * np.rad2deg(0.4), reshape=False, order=1)
        for sign in (1, -1)
    ]
    for image in corruptions.corrupted(strokes, "rotate", 2):
        assert min(np.abs(image - one).max() for one in expected) < 1e-5


def test_impulses_hit_their_share_of_pixels():
    grey = np.full((50, 28, 28), 0.5, "float32")
    changed = corruptions.corrupted(grey, "impulse noise", 5)
    assert (changed != 0.5).mean() == pytest.approx(0.27, abs=0.01)
    assert set(np.unique(changed)) == {0.0, 0.5, 1.0}


def test_fashion_images_of_the_test_part_are_not_trained_on(tmp_path, monkeypatch):
    images, labels = write_images(tmp_path), np.arange(400) % 10
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(image_sets, "_images_of_package", lambda name: (images, labels))
    for _ in range(2):  # from the package, and from the cache
        train, test = image_sets.read_fashion(tmp_path)
        assert {x.tobytes() for x in test[0]} == {x.tobytes() for x in images[:30]}
        np.testing.assert_array_equal(train[0], images[30:])
        np.testing.assert_array_equal(train[1], labels[30:])


@pytest.mark.slow
def test_smoke_run_compares_the_recipe_with_points(tmp_path, monkeypatch):
    clothes = write_images(tmp_path)[30:]
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    package = clothes, np.arange(len(clothes)) % 10
    monkeypatch.setattr(image_sets, "_images_of_package", lambda name: package)
    images = load("images")
    methods = [images.POINT, images.OURS]
    options = ("--sets", "MNIST", "--methods", ",".join(methods))
    measured = run_smoke("images", tmp_path, tmp_path / "images.json", *options)
    assert [x.get("method") for x in measured.records] == [*methods, None]
    assert "and the ratio to Keras'" in images.report(measured)
