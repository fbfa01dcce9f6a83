import pytest
from pydantic import ValidationError

from tfbbb.training.plan import TrainingPlan
from tfbbb.training.spec import SpecError, TrainingSpec


def plan(num_rows, **fields):
    return TrainingPlan.from_spec(TrainingSpec.model_validate(fields), num_rows)


def test_by_default_six_thousand_steps_are_planned():
    assert plan(320).steps == 6000
    assert plan(320, batch_size=7).steps == pytest.approx(6000, rel=0.01)


def test_many_rows_are_passed_over_ten_times_at_least():
    assert plan(10**7).epochs == 10
    assert plan(10**7, steps=100).epochs == 1


def test_a_training_outlasts_its_warmup():
    assert plan(10**7, kl_schedule="linear_warmup").epochs == 20
    with pytest.raises(ValidationError, match="of 10 epochs leaves none of 10 at temp"):
        plan(100, kl_schedule="linear_warmup", epochs=10)
    with pytest.raises(SpecError, match="leaves none of 4 at temperature 1"):
        plan(320, kl_schedule="linear_warmup", steps=40)


@pytest.mark.parametrize(("num_rows", "units"), [(499, (20,)), (500, (50,))])
def test_more_rows_get_a_wider_network(num_rows, units):
    assert plan(num_rows).hidden_units == units


def test_epochs_and_batches_that_are_given_are_taken():
    given = plan(100, epochs=3, batch_size=30)
    assert (given.epochs, given.batch_size, given.steps_per_epoch) == (3, 30, 4)


@pytest.mark.parametrize(
    ("decay", "half", "end"),
    [("cosine", 0.005, 0.0), ("linear", 0.005, 0.0), ("constant", 0.01, 0.01)],
)
def test_the_learning_rate_falls_as_it_is_told(decay, half, end):
    spec = TrainingSpec.model_validate({"learning_rate": {"decay": decay}})
    rate = TrainingPlan.from_spec(spec, 320).learning_rate(spec.learning_rate)
    of_step = rate if callable(rate) else lambda step: rate
    assert float(of_step(0)) == pytest.approx(0.01)
    assert float(of_step(3000)) == pytest.approx(half)
    assert float(of_step(6000)) == pytest.approx(end, abs=1e-8)
