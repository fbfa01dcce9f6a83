import math

import pytest

from tests.benchmarks.programs import load

comparisons = load("comparisons")
speeds = load("speeds")


@pytest.mark.parametrize(
    ("ours", "theirs", "larger", "error", "outcome"),
    [
        (1.0, 2.0, True, math.nan, comparisons.LOST),
        (2.0, 1.0, True, math.nan, comparisons.WON),
        (1.0, 1.0, True, math.nan, comparisons.EVEN),
        (2.0, 1.0, False, math.nan, comparisons.LOST),
        (2.0, 1.0, False, 1.0, comparisons.EVEN),
        (2.0, 1.0, False, 0.5, comparisons.LOST),
        (math.nan, 1.0, True, 1.0, comparisons.LOST),
        (math.nan, 1.0, False, 1.0, comparisons.LOST),
    ],
)
def test_a_margin_beyond_its_error_is_won_or_lost(ours, theirs, larger, error, outcome):
    found = comparisons.Comparison("RMSE", "a", ours, theirs, "b", larger, error)
    assert found.outcome == outcome


def records_of(**by_method):
    return [
        {"set": "yacht", "method": method, "split": split, "rmse": rmse}
        for method, figures in by_method.items()
        for split, rmse in enumerate(figures)
    ]


def test_methods_are_compared_over_their_common_splits():
    records = records_of(default=[1.0, 2.0, 9.0], ngboost=[2.0, 5.0], crepes=[0.5])
    rivals = ["ngboost", "crepes", "tabm"]
    first, second = comparisons.compare_methods(
        records, rivals, {"RMSE": (["rmse"], False)}
    )
    assert (first.ours, first.theirs, first.rival) == (1.5, 3.5, "ngboost")
    # The differences are -1 and -3.
    assert first.error == pytest.approx(1.0)
    # One split counts, too.
    assert (second.ours, second.theirs, second.outcome) == (1.0, 0.5, comparisons.LOST)


def test_losses_are_counted_and_listed_by_figure():
    def compared(on, ours, theirs, rival, error=math.nan):
        return comparisons.Comparison("RMSE", on, ours, theirs, rival, False, error)

    text = comparisons.summarize_losses(
        {
            "uci": [
                compared("yacht", 1.25, 0.5, "ngboost"),
                compared("yacht", 1.25, 1.0, "crepes"),
                compared("energy", 4.0, 1.0, "bde"),
                compared("boston", 3.0, 2.5, "bde", error=1.0),
                compared("wine", 1.0, 2.0, "bde"),
            ]
        }
    )
    assert "Of 5 comparisons 1 are won, 3 are lost, and in 1 the difference" in text
    assert text.splitlines()[-1] == (
        "- **uci, RMSE**: energy 4 / 1 bde; yacht 1.25 / 0.5 ngboost and 1 more; "
        "worse within one standard error on boston"
    )


def test_medians_have_the_error_of_their_quartiles():
    def times(median):
        quartiles = {"lower_quartile": median - 0.5, "upper_quartile": median + 0.5}
        return {"milliseconds": {"median": median, **quartiles}}

    net = {"tfbbb local": times(5.0), "keras.layers": times(4.0)}
    (found,) = speeds.train_step({"rounds": 2, "nets": {"net": net}})
    assert (found.on, found.ours, found.theirs) == ("net, local", 5.0, 4.0)
    assert found.error == pytest.approx(1.25 / 1.35)
    assert found.outcome == comparisons.LOST
