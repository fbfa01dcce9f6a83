import re

import pytest

from tests.service.serving import ask, refusal


def rows(text):
    return f'{{"instances": {text}}}'


def with_parameters(**parameters):
    return {"instances": [[1, 2, 3]], "parameters": parameters}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (rows("[]"), r"`instances` must be a list of at least one row.*: \[\]"),
        (rows("[[1, 2, 3], [1, 2]]"), "Row 2 has 2 values"),
        (rows('[[1, 2, 3], [1, "2", 3]]'), "Row 2, column 'bmi' needs a number"),
        (
            rows('[[1, 2, "True"]]'),
            "'bp' needs a number or a boolean .true, false., not text. Rec.*'True'",
        ),
        (rows("[[1, NaN, 3]]"), "JSON has no NaN or Infinity; a missing value is null"),
        (rows("[[1, 2, 1e39]]"), "Row 1, column 'bp' .* up to 3.4e38. Received: 1e.39"),
        (
            rows('[{"age": 1, "Bmi": 2, "bp": 3, "note": "x"}]'),
            "Row 1: The column 'bmi' .is 'Bmi' misspelt.. is lacking.*reads 'age'",
        ),
        (
            rows('[{"age": 1, "bmi": 2, "bp": 3}, {"age": 1, "bmi": 2, "y": 1}]'),
            "Row 2: The column 'bp' is lacking; ",
        ),
        (
            {"inputs": {"Age": [1], "bmi": [2], "bp": [3]}},
            "'age' .is 'Age' misspelt.. is lacking",
        ),
        ({"inputs": {"age": [1], "bmi": [2], "bp": [3, 4]}}, "same number of rows"),
        ({"inputs": {"age": 1, "bmi": 2, "bp": 3}}, "The column 'age' needs a list"),
        ({"inputs": 3}, "`inputs` must be an object of columns"),
        ('{"instances": [[1, 2, 3]', "not JSON"),
        ("[" * 100_000, "not JSON"),
        (rows('[[1, 2, "\\ud800"]]'), "not JSON: no low surrogate"),
        ("{}", "either `instances`, a list of rows, or `inputs`"),
        ('{"instances": [[1, 2, 3]], "sampels": 3}', "Received: 'sampels'"),
        (
            with_parameters(num_samples=1),
            "`parameters.num_samples` must be at least 2. Received: 1",
        ),
        (
            with_parameters(num_samples=2.5),
            "`parameters.num_samples` must be a whole number. Received: 2.5",
        ),
        (
            with_parameters(quantiles=[0.5, 1.0]),
            "`parameters.quantiles.1` must be less than 1",
        ),
        (
            with_parameters(quantiles=[2] * 1000),
            "`parameters.quantiles.0`: a level is a probability .* Write 0.02. Rec",
        ),
        (
            with_parameters(intervals=["90%"]),
            "between 0 and 1. Write 0.9. Received: '90%'",
        ),
        (
            with_parameters(**{"a" * 10_000: 1}),
            "`parameters.a{89}` is unknown. The parameters are num",
        ),
        (
            with_parameters(samples=100),
            "is unknown. Did you mean `parameters.num_samples`. The",
        ),
        (with_parameters(deadline_ms=0), "`parameters.deadline_ms`"),
    ],
)
def test_mistake_in_a_prediction_is_described(client, body, message):
    assert re.search(message, refusal(ask(client, "diabetes", body), 400))


def test_column_of_a_table_that_does_not_fit_is_named(client):
    for row, message in (
        ('[null, 1, "f", "x"]', "column 'age' has no value"),
        ('[1, 1, "", "x"]', "column 'sex' has no value"),
        ('[1, 1, 3, "x"]', "column 'sex' needs text. Received: 3"),
    ):
        response = ask(client, "patients", rows(f"[{row}]"))
        assert f"Row 1, {message}" in refusal(response, 400)


@pytest.mark.parametrize(
    "name",
    [
        "no_such",
        "diabetes%00",
        "..%2f..%2fetc%2fpasswd",
        "%2e%2e",
        ".staging",
        "diabetes%2f1",
        "%5c..%5c",
        "-",
        "%ff",
        "\N{FULLWIDTH FULL STOP}",
    ],
)
def test_no_name_leads_out_of_the_models(client, name):
    for path in (f"{name}:predict", f"{name}/versions/1:predict"):
        response = client.post(f"/v1/models/{path}", json={"instances": [[1, 2, 3]]})
        message = refusal(response, 404)
    for path in (f"diabetes/versions/{name}", f"diabetes/labels/{name}"):
        assert client.get(f"/v1/models/{path}").status_code in (400, 404)
    if name == "no_such":
        assert "'diabetes', 'iris', 'patients'" in message


def test_unknown_version_is_not_found(client):
    body = {"instances": [[1, 2, 3]]}
    response = ask(client, "diabetes/versions/3", body)
    assert "its versions are: 2, 1" in refusal(response, 404)
    response = ask(client, "diabetes/versions/two", body)
    assert "`version` must be a whole number" in refusal(response, 400)


# 4300 digits are the most that Python reads.
@pytest.mark.parametrize("number", [-1, 2**63, 10**4299])
def test_numbers_in_paths_are_bounded(client, number):
    body = {"instances": [[1, 2, 3]]}
    path = f"/v1/models/diabetes/versions/{number}"
    for response in (
        client.get(path),
        client.post(f"{path}:predict", json=body),
        client.post(f"{path}/feedback", json=body),
    ):
        assert "`version` must be" in refusal(response, 400)
    v2 = client.get(path.replace("/v1", "/v2"))
    assert v2.status_code in (400, 404), v2.text


@pytest.mark.parametrize(("number", "num_samples"), [(1001, 100), (1, 2**31 - 1)])
def test_more_rows_times_samples_than_the_limit_are_refused(
    client, number, num_samples
):
    body = with_parameters(num_samples=num_samples)
    body["instances"] *= number
    message = refusal(ask(client, "diabetes", body), 413)
    assert "at most 100000 units of work" in message
    assert "TFBBB_MAX_WORK" in message
    assert f"Received: {number} rows × {num_samples} draws × 1 answers" in message


@pytest.mark.parametrize(
    ("content", "content_type", "message"),
    [
        (b"\xff", "application/json", "parsing the body: 'utf-8' codec can't decode"),
        (b"{}", "text/plain", "sent with `Content-Type: application/json`. Rec.*'{}'"),
        (b"[" * 100_000, "application/json", "the body: it is nested too deeply."),
    ],
)
def test_body_that_is_not_read_as_json_is_described(
    client, content, content_type, message
):
    headers = {"content-type": content_type}
    response = client.post("/v1/keys", content=content, headers=headers)
    assert re.search(message, refusal(response, 400))


def test_error_names_the_row_without_a_finite_answer(client):
    response = ask(client, "diabetes", {"instances": [[1, 2, 3], [3e38, 3e38, 0]]})
    message = refusal(response, 400)
    assert "no finite `mean` for row 2: its values are too far from" in message


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/v1/nothing", 404, "not_found"),
        ("GET", "/v1/models/no_such", 404, "unknown_model"),
        ("GET", "/v1/models/diabetes/versions/two", 400, "invalid_request"),
        ("DELETE", "/v1/models/diabetes", 405, "method_not_allowed"),
        ("POST", "/v1/models/diabetes:explain", 404, "not_found"),
    ],
)
def test_every_error_has_the_same_shape_and_a_code(client, method, path, status, code):
    response = client.request(method, path)
    assert refusal(response, status)
    assert response.json()["code"] == code
    assert ("allow" in response.headers) == (status == 405)


def test_error_has_the_column_or_the_parameter_as_its_field(client):
    body = {"instances": [{"age": 1, "bmi": 2, "bp": "x"}]}
    assert ask(client, "diabetes", body).json()["field"] == "bp"
    wrong = ask(client, "diabetes", with_parameters(no=1))
    assert wrong.json()["field"] == "parameters.no"
    body = {"instances": [[1, 2, 3]], "signature_name": "variance"}
    message = "must be one of serving_default, predict. Received: 'variance'"
    assert message in refusal(ask(client, "diabetes", body), 400)


def test_another_method_of_a_verb_is_told_to_post(client):
    document = client.get("/openapi.json").json()
    verbs = [path for path in document["paths"] if re.search(r":\w+$", path)]
    assert len(verbs) >= 5
    for verb in verbs:
        path = re.sub(r"{\w+}", "1", verb)
        response = client.get(path)
        assert response.headers["allow"] == "POST", verb
        assert f"Method Not Allowed: GET {path}" in refusal(response, 405)


def test_head_is_answered_as_get(client):
    for path, status in (("/health/live", 200), ("/v1/models/no_such", 404)):
        response = client.head(path)
        assert (response.status_code, response.content) == (status, b"")
        assert response.headers["content-length"] != "0"
