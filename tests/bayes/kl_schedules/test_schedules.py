import numpy as np
import pytest

from tfbbb import kl_schedules
from tfbbb.bayes.kl_schedules import (
    Blundell,
    Constant,
    FromEffectiveSize,
    LinearWarmup,
    RowsPerWeight,
    Tempered,
)

N = 80
ALL = [
    Blundell(),
    Constant(),
    FromEffectiveSize(20),
    LinearWarmup(),
    LinearWarmup(2.5, each_batch=False),
    RowsPerWeight(800),
    Tempered(0.3),
]


def epoch_of(schedule, num_batches, epoch=0):
    return np.array(
        [schedule.temperature(epoch, b, num_batches, N) for b in range(num_batches)]
    )


@pytest.mark.parametrize("n", [20, 160, 12.5])
def test_from_effective_size_gives_the_kl_weight_of_n_rows(n):
    kl_weight = FromEffectiveSize(n).temperature(0, 0, 5, N) / N
    np.testing.assert_allclose(kl_weight, 1 / n, rtol=1e-15)


@pytest.mark.parametrize(
    ("num_weights", "temperature"), [(24, 1.0), (240, 0.1), (1e6, 0.03)]
)
def test_rows_per_weight_is_03_of_their_ratio_from_003_to_1(num_weights, temperature):
    schedule = RowsPerWeight(num_weights)
    np.testing.assert_allclose(epoch_of(schedule, 5, epoch=2), temperature)
    assert schedule.target_temperature(N) == schedule.temperature(2, 3, 5, N)


def test_linear_warmup_rises_linearly_from_0_to_1():
    schedule = LinearWarmup(epochs=3)
    rise = np.concatenate([epoch_of(schedule, 4, epoch) for epoch in range(4)])
    np.testing.assert_allclose(rise[:13], np.arange(13) / 12, rtol=1e-15)
    np.testing.assert_array_equal(rise[12:], 1.0)


def test_linear_warmup_by_epochs_is_constant_within_an_epoch():
    by_batch, by_epoch = LinearWarmup(3), LinearWarmup(3, each_batch=False)
    for epoch in range(5):
        first = epoch_of(by_batch, 4, epoch)[0]
        np.testing.assert_array_equal(epoch_of(by_epoch, 4, epoch), first)
        assert by_epoch.temperature(epoch, 0, None, N) == first


@pytest.mark.parametrize("num_batches", [1, 2, 7, 60])
def test_blundell_gives_the_shares_of_the_paper(num_batches):
    shares = epoch_of(Blundell(), num_batches) / num_batches
    # Section 3.4 of the paper, in integers: 2^(M-i) / (2^M - 1).
    paper = [
        2 ** (num_batches - i - 1) / (2**num_batches - 1) for i in range(num_batches)
    ]
    np.testing.assert_allclose(shares, paper, rtol=1e-14)


@pytest.mark.parametrize("num_batches", [1, 2, 60, 1100, 20_000])
def test_blundell_has_the_mean_temperature_1_over_an_epoch(num_batches):
    temperatures = epoch_of(Blundell(), num_batches)
    assert np.isfinite(temperatures).all()
    np.testing.assert_allclose(temperatures.sum(), num_batches, rtol=1e-14)
    # Before float64 underflows.
    halves = temperatures[:1000]
    np.testing.assert_allclose(halves[:-1], 2 * halves[1:], rtol=1e-14)


def test_schedules_know_whether_they_vary_within_an_epoch():
    for schedule in ALL:
        varies = len(set(epoch_of(schedule, 4))) > 1
        assert schedule.varies_within_epoch == varies, schedule


def test_the_target_is_the_mean_temperature_of_final_epochs():
    for schedule in ALL:
        mean = epoch_of(schedule, 6, epoch=100).mean()
        np.testing.assert_allclose(schedule.target_temperature(N), mean, rtol=1e-14)


def test_a_settled_schedule_has_the_target_temperature_on_average():
    for schedule in ALL:
        for epoch in range(12):
            mean = epoch_of(schedule, 6, epoch=epoch).mean()
            there = np.isclose(mean, schedule.target_temperature(N), rtol=1e-12)
            assert schedule.has_settled(epoch) == there


@pytest.mark.parametrize("schedule", ALL, ids=repr)
def test_serialized_schedules_are_restored(schedule):
    config = kl_schedules.serialize(schedule)
    assert kl_schedules.deserialize(config) == schedule
    assert kl_schedules.get(config) == schedule
    assert kl_schedules.get(schedule) is schedule


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LinearWarmup(0), "epochs=0"),
        (lambda: Tempered(-1.0), "temperature=-1.0"),
        (lambda: Tempered("cold"), "temperature='cold'"),
        (lambda: FromEffectiveSize(float("nan")), "n=nan"),
        (lambda: Blundell().temperature(0, 0, None, N), "num_batches=None"),
        (lambda: Blundell().temperature(0, 4, 4, N), "batch=4, num_batches=4"),
        (lambda: LinearWarmup().temperature(0, 0, None, N), "num_batches=None"),
        (lambda: kl_schedules.get("cyclical"), "kl_schedule='cyclical'"),
        (lambda: kl_schedules.get("tempered"), "kl_schedule='tempered'"),
    ],
)
def test_invalid_arguments_are_refused(make, message):
    with pytest.raises(ValueError, match=f"Received: .*{message}"):
        make()
