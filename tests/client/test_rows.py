import pytest

from tfbbb.client.prediction import Prediction
from tfbbb.client.rows import Rows


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (
            {"street": "park road"},
            r"Column 'street' .* \[\{...\}\]. Received: 'park road'",
        ),
        ("more.csv", "`rows` must be .* Received: 'more.csv'"),
    ],
)
def test_rows_of_a_wrong_type_are_refused_with_a_remedy(rows, said):
    with pytest.raises(TypeError, match=said):
        Rows.read(rows)


def test_what_was_not_requested_is_named_with_its_level():
    prediction = Prediction(model="houses", version=1, num_samples=100)
    with pytest.raises(ValueError, match=r"quantiles=.* Received: level=0\.05$"):
        prediction.quantile(0.05)
    with pytest.raises(ValueError, match=r"intervals=.* Received: level=0\.9$"):
        prediction.interval(0.9)
