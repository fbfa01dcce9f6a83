import numpy as np
import pytest

from tfbbb.tables.schema import Schema

N = 120
GENERATOR = np.random.default_rng(0)
COLUMNS = {
    "age": GENERATOR.integers(20, 80, N),
    "time": GENERATOR.integers(1, 300, N),
    "event": GENERATOR.integers(0, 2, N),
}


def warnings_of(target, **names):
    columns = {names.get(name, name): values for name, values in COLUMNS.items()}
    schema = Schema.infer(columns, target)
    return {column.name: column.warnings for column in schema.features}


@pytest.mark.parametrize(
    ("time", "event"),
    [("time", "event"), ("follow_up_days", "status"), ("survivalMonths", "is_dead")],
)
def test_a_time_beside_its_event_is_said(time, event):
    (warning,) = warnings_of(time, time=time, event=event)[event]
    assert "predicted times are too short" in warning
    (warning,) = warnings_of(event, time=time, event=event)[time]
    assert f"--ignore {time}" in warning


@pytest.mark.parametrize(
    ("time", "event"),
    [("days_since_visit", "event"), ("time", "marital status"), ("price", "died")],
)
def test_other_times_and_events_are_not(time, event):
    for target in (time, event):
        assert not any(warnings_of(target, time=time, event=event).values())
