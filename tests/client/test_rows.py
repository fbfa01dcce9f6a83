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
        ({"area": 120}, r"Column 'area' .* Received: 120"),
        ("more.csv", "`rows` must be .* Received: 'more.csv'"),
    ],
)
def test_rows_of_a_wrong_type_are_refused_with_a_remedy(rows, said):
    with pytest.raises(TypeError, match=said):
        Rows.read(rows)


def test_a_quantile_that_was_not_requested_names_its_level():
    with pytest.raises(ValueError, match=r"Received: level=0\.05$"):
        Prediction(model="houses", version=1, num_samples=100).interval(0.9)
