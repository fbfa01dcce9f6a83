import numpy as np
import pandas as pd
import pytest

from tests.sklearn.estimators import SHORTEST, classifier, compiled_fit

CENTRES = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]])


def blobs(rows=120, seed=0):
    generator = np.random.default_rng(seed)
    codes = np.arange(rows) % 3
    return CENTRES[codes] + generator.normal(size=(rows, 2)), codes


# Two of them resemble a missing value and a number.
LABELS = np.array(["oak", "none", "12"], dtype=object)


@pytest.fixture(scope="module")
def fitted():
    """A classifier of three classes; the rows of a fourth one have weight 0."""
    x, codes = blobs(128)
    counts = np.arange(128) < 120
    labels = np.where(counts, LABELS[codes], "fir")
    return compiled_fit(classifier(), x, labels, sample_weight=counts)


def test_learns_the_classes(fitted):
    x, codes = blobs(300, seed=1)
    labels = LABELS[codes]
    assert list(fitted.classes_) == ["12", "none", "oak"]
    assert fitted.classes_.dtype == fitted.predict(x).dtype == labels.dtype
    assert fitted.score(x, labels) > 0.9
    probabilities = fitted.predict_proba(x)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    np.testing.assert_array_equal(
        fitted.predict(x), fitted.classes_[probabilities.argmax(axis=1)]
    )
    np.testing.assert_allclose(fitted.predict_log_proba(x), np.log(probabilities))


def test_ordered_categories_keep_their_order():
    x, codes = blobs(60)
    levels = [3, 1, 2]
    y = pd.Series(pd.Categorical.from_codes(codes, levels, ordered=True))
    model = classifier(**SHORTEST).fit(x, y)
    assert model.classes_.tolist() == levels
    chosen = model.predict_proba(x).argmax(axis=1)
    np.testing.assert_array_equal(model.predict(x), np.array(levels)[chosen])


def test_log_prob_of_an_unseen_class_is_nan(fitted):
    x, _ = blobs(3, seed=2)
    message = (
        "2 rows have a class that the fit did not have, such as 'fir' in row 1; the "
        "log probability of such a row is NaN."
    )
    with pytest.warns(UserWarning, match=f"^{message}$"):
        found = fitted.log_prob(x, ["oak", "fir", "fir"])
    assert np.isnan(found).tolist() == [False, True, True]
    assert fitted.score(x, ["fir"] * 3) == 0.0


def test_draws_and_sets_are_of_labels(fitted):
    x, _ = blobs(6, seed=3)
    drawn = fitted.sample(x, n=500, seed=2)
    assert drawn.shape == (500, 6)
    assert set(drawn.ravel()) <= set(fitted.classes_)
    shares = np.mean(drawn == fitted.classes_[0], axis=0)
    # Five standard errors at most.
    np.testing.assert_allclose(
        shares, fitted.predict_proba(x)[:, 0], atol=5 * 0.5 / np.sqrt(500)
    )
    sets = fitted.predict_set(x, level=0.9)
    assert sets.shape == (6, 3)
    assert sets.dtype == bool
    assert np.all(sets.any(axis=1))


def test_one_class_with_weight_is_refused():
    x, codes = blobs(60)
    with pytest.raises(ValueError, match="one class, 0"):
        classifier().fit(x, codes, sample_weight=codes == 0)


def test_partial_fit_keeps_the_classes():
    x, codes = blobs(90)
    labels = LABELS[codes]
    # Temperature 1, at which posteriors become priors as they are.
    model = classifier(kl_schedule="constant", **SHORTEST)
    with pytest.raises(ValueError, match=r"no row of \['oak'\]"):
        model.partial_fit(x[1:3], labels[1:3], classes=LABELS)
    model.partial_fit(x[:45], labels[:45], classes=LABELS)
    of_one = codes[45:] == 1
    model.partial_fit(x[45:][of_one], labels[45:][of_one])
    assert list(model.classes_) == ["12", "none", "oak"]
    with pytest.raises(ValueError, match="'fir' in row 0"):
        model.partial_fit(x[:2], ["fir", "oak"])


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.linspace(0, 1, 30), "continuous"),
        (np.ones(30), "one class, 1.0"),
        (np.array(["a", None] * 15, dtype=object), "None in row 1"),
    ],
)
def test_labels_that_cannot_be_used_are_refused(y, message):
    with pytest.raises(ValueError, match=message):
        classifier().fit(blobs(30)[0], y)
