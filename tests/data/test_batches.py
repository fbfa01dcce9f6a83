import numpy as np

from tfbbb.data.batches import shuffled_batches

ROWS = 10
INPUTS = {"x": np.arange(ROWS, dtype=np.float32), "word": np.array(list("abcdefghij"))}
TARGETS = np.arange(ROWS)


def passes(seed, count):
    """The targets of some passes, and how many batches made them."""
    batches = list(shuffled_batches(INPUTS, TARGETS, 4, seed=seed).take(3 * count))
    targets = np.concatenate([batch[1].numpy() for batch in batches])
    return targets.reshape(count, ROWS), [len(batch[1]) for batch in batches]


def test_each_pass_has_every_row_once_in_another_order():
    orders, sizes = passes(seed=0, count=5)
    assert sizes == [4, 4, 2] * 5
    assert (np.sort(orders) == TARGETS).all()
    assert len(set(map(tuple, orders.tolist()))) == 5


def test_inputs_and_targets_of_a_row_stay_together():
    for inputs, targets in shuffled_batches(INPUTS, TARGETS, 4, seed=0).take(6):
        np.testing.assert_array_equal(inputs["x"], targets)
        words = [word.decode() for word in inputs["word"].numpy()]
        assert words == [INPUTS["word"][row] for row in targets.numpy()]


def test_the_orders_depend_on_the_seed_alone():
    batches = shuffled_batches(INPUTS, TARGETS, ROWS, seed=3)
    first, again = ([t.numpy().tolist() for _, t in batches.take(4)] for _ in range(2))
    assert first == again == passes(seed=3, count=4)[0].tolist()
    assert first != passes(seed=4, count=4)[0].tolist()
