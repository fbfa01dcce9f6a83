"""Requests that are computed together, and those that are computed in blocks."""

import re
from dataclasses import replace

import numpy as np
import orjson
import pytest

from service.predicting.answer import Block, VersionName, compute, finish, prepare
from service.predicting.codecs import CODECS
from service.shared.errors import InvalidRequest
from service.shared.settings import Settings
from tests.service.predicting.exporting import exported, network

ROWS = np.random.default_rng(0).normal(size=(40, 2)).astype("float32")


def request(model, rows, **body):
    body = {"instances": np.asarray(rows).tolist()} | body
    query = CODECS["json"].read(orjson.dumps(body), {})
    return prepare(VersionName("m", 1), model.manifest, query, Settings())


def answers(model, requests):
    assert len({one.batch_key for one in requests}) == 1
    blocks = [Block(one, slice(0, one.num_rows)) for one in requests]
    found = compute(model, blocks)
    return [finish(one, [part]) for one, part in zip(requests, found, strict=True)]


def assert_same(ours, theirs):
    assert list(ours.outputs) == list(theirs.outputs)
    for name, values in ours.outputs.items():
        expected = theirs.outputs[name]
        if isinstance(values, np.ndarray):
            np.testing.assert_array_equal(values, expected)
        else:
            assert values == expected


@pytest.mark.parametrize("method", ["local", "linearised"])
def test_answer_is_the_same_whatever_it_is_batched_with(numbers, tmp_path, method):
    model = numbers
    if method != "local":
        model = exported(network(), tmp_path / "1", method=method)
    parameters = {"quantiles": [0.1, 0.9], "intervals": [0.5], "seed": 7}
    requests = [
        request(
            model,
            ROWS[first : first + count],
            parameters=parameters,
            targets=[0.5] * count,
        )
        for first, count in ((0, 1), (1, 30), (31, 9))
    ]
    together = answers(model, requests)
    for answer, one in zip(together, requests, strict=True):
        (alone,) = answers(model, [one])
        assert_same(answer, alone)


def test_answer_in_blocks_is_the_answer_at_once(numbers):
    one = request(numbers, ROWS, parameters={"quantiles": [0.5]})
    (whole,) = answers(numbers, [one])
    slices = [slice(0, 7), slice(7, 39), slice(39, 40)]
    blocks = [compute(numbers, [Block(one, rows)])[0] for rows in slices]
    assert_same(finish(one, blocks), whole)


def test_row_without_a_finite_answer_fails_its_own_request(numbers):
    good, bad = request(numbers, ROWS[:2]), request(numbers, [[3e38, 3e38]])
    parts = compute(numbers, [Block(good, slice(0, 2)), Block(bad, slice(0, 1))])
    assert_same(finish(good, parts[:1]), answers(numbers, [good])[0])
    with pytest.raises(InvalidRequest, match="for row 1: its values are too far"):
        finish(bad, parts[1:])
    said = "Column 'x' is 3e+38, outside the range of training, 0 to 1."
    with pytest.raises(InvalidRequest, match=re.escape(f"trained on. {said}")):
        finish(replace(bad, warnings=[[said]]), parts[1:])


@pytest.mark.parametrize(
    ("body", "counted"),
    [
        ({"parameters": {"num_samples": 2**31 - 1}}, "2147483647 draws × 1 answers"),
        (
            {"parameters": {"num_samples": 100_000, "quantiles": [0.1] * 100}},
            "100000 draws × 101 answers",
        ),
    ],
)
def test_everything_that_costs_counts_as_work(numbers, body, counted):
    with pytest.raises(Exception, match=f"1 rows × {counted}") as refused:
        request(numbers, ROWS[:1], **body)
    assert type(refused.value).__name__ == "RequestTooLarge"
