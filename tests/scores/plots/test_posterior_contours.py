import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy import stats

from tfbbb.scores.plots import posterior_contours

COVARIANCE = np.array([[1.0, 0.6], [0.6, 0.5]])
NORMAL = (np.array([0.5, -1.0]), COVARIANCE)


def log_density(points):
    return 7.0 + stats.multivariate_normal(*NORMAL).logpdf(points)


def contour_of(axes):
    (contours,) = (c for c in axes.collections if hasattr(c, "levels"))
    return contours


@pytest.mark.parametrize("given", [NORMAL, log_density], ids=["normal", "density"])
@pytest.mark.parametrize("level", [0.5, 0.9])
def test_contours_enclose_their_probability(given, level):
    limits = ((-4.0, 5.0), (-4.5, 2.5))
    axes = posterior_contours(
        None, {"q": given}, levels=[level], limits=limits, axes=Figure().subplots()
    )
    (path,) = contour_of(axes).get_paths()
    away = path.vertices - NORMAL[0]
    squares = np.einsum("ni,ij,nj->n", away, np.linalg.inv(COVARIANCE), away)
    # The grid has 200 cells on each side.
    np.testing.assert_allclose(squares, stats.chi2(2).ppf(level), rtol=0.03)


def test_two_modes_have_two_contours():
    def two(points):
        modes = [
            stats.multivariate_normal([at, 0.0], 0.2).pdf(points) for at in (-2, 2)
        ]
        return np.log(modes[0] + modes[1])

    axes = posterior_contours(
        None,
        {"q": two},
        levels=[0.9],
        limits=((-4.0, 4.0), (-2.0, 2.0)),
        axes=Figure().subplots(),
    )
    (path,) = contour_of(axes).get_paths()
    assert sum(code == path.MOVETO for code in path.codes) == 2


def test_limits_show_normals_and_samples():
    samples = np.random.default_rng(0).normal(size=(30, 2)) + 10.0
    axes = posterior_contours(
        None, {"q": NORMAL, "chain": samples}, axes=Figure().subplots()
    )
    assert axes.get_xlim()[0] < 0.5 - 3.0
    assert axes.get_xlim()[1] > samples[:, 0].max()


@pytest.mark.parametrize(
    ("approximations", "options", "message"),
    [
        ({}, {}, "up to 6 approximations"),
        ({"q": np.ones(3)}, {}, "an array of shape"),
        ({"q": (np.zeros(2), -np.eye(2))}, {}, "The approximation 'q' must be"),
        ({"q": [0.0, 1.0]}, {}, "give `limits`"),
        ({"q": NORMAL}, {"levels": [1.0]}, "`levels` must be"),
        (
            {"q": lambda points: np.full(len(points), -np.inf)},
            {"limits": ((0, 1), (0, 1))},
            "finite somewhere",
        ),
    ],
)
def test_what_cannot_be_drawn_is_refused(approximations, options, message):
    with pytest.raises(ValueError, match=message):
        posterior_contours(None, approximations, **options, axes=Figure().subplots())
