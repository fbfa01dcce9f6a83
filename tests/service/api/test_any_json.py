import json

import httpx
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.service.serving import ask

# Up to where the models' answers are finite, and what no model reads.
numbers = (
    st.integers(-(10**15), 10**15)
    | st.floats(-1e15, 1e15)
    | st.sampled_from([1e39, -1e300, float("nan"), float("inf"), 10**400])
)
scalars = st.none() | st.booleans() | numbers | st.text(max_size=5)
anything = st.recursive(
    scalars,
    lambda values: (
        st.lists(values, max_size=4)
        | st.dictionaries(
            st.sampled_from(["age", "bmi", "bp", "inputs", "seed"])
            | st.text(max_size=3),
            values,
            max_size=4,
        )
    ),
    max_leaves=12,
)
names = ["age", "bmi", "bp", "sex", "region", "blood pressure", "blood_pressure"]
rows = st.lists(
    st.lists(scalars, min_size=3, max_size=3)
    | st.dictionaries(st.sampled_from([*names, "inputs"]), scalars),
    max_size=3,
)
parameters = st.fixed_dictionaries(
    {},
    optional={
        "num_samples": st.integers(0, 50) | scalars,
        "seed": st.integers(-(2**31), 2**31) | scalars,
        "quantiles": st.lists(st.floats(0, 1) | scalars, max_size=3) | scalars,
        "return_samples": st.booleans() | scalars,
    },
)
requests = anything | st.fixed_dictionaries(
    {},
    optional={
        "instances": rows | anything,
        "inputs": rows | anything,
        "parameters": parameters | anything,
        "signature_name": st.just("predict") | anything,
    },
)


@settings(
    max_examples=200,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(body=requests, model=st.sampled_from(["diabetes", "patients", "iris"]))
def test_no_json_body_makes_the_service_fail(
    client: httpx.Client, body: object, model: str
) -> None:
    response = ask(client, model, json.dumps(body))
    assert response.status_code in (200, 400, 413), (response.text, body)
    assert (response.status_code == 200) == ("error" not in response.json())
