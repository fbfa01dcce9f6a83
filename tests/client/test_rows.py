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
        ("more.csv", "What is to be predicted must be .* Received: 'more.csv'"),
    ],
)
def test_what_is_no_table_is_refused_with_what_to_give(rows, said):
    with pytest.raises(TypeError, match=said):
        Rows.of(rows)


def test_an_interval_that_was_not_asked_for_names_its_level_as_it_is_written():
    with pytest.raises(ValueError, match=r"Received: level=0\.05$"):
        Prediction(model="houses", version=1, num_samples=100).interval(0.9)
