AVAILABLE = {"error_code": "OK", "error_message": ""}


def test_every_model_is_listed_with_its_versions(client):
    models = {m["name"]: m for m in client.get("/v1/models").json()["models"]}
    assert list(models) == ["diabetes", "iris", "patients"]
    assert models["iris"]["task"] == "classification"
    assert models["diabetes"]["target"] == "progression"
    assert models["diabetes"]["versions"][0] == {
        "version": "2",
        "state": "AVAILABLE",
        "status": AVAILABLE,
    }
    newest = models["diabetes"]["newest"]
    assert (newest["version"], newest["metrics"]) == ("2", {"rmse": 54.0})
    description = client.get("/v1/models/patients/versions/1").json()["description"]
    feature = description["features"][1]
    assert (feature["name"], feature["kind"]) == ("blood pressure", "numeric")
    assert (feature["missing"], feature["notation"]) == (True, None)
