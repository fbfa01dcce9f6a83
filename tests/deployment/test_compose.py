"""`compose.yaml` is valid, and fits the settings and the image of the service."""

import re

import pytest
import yaml
from compose_spec import PyCompose

from tests.deployment.containers import (
    PORT,
    ROOT,
    STAGES,
    USER,
    VOLUMES,
    answers_without_key,
    settings,
)

SECRETS = {"TFBBB_ADMIN_KEY", "POSTGRES_PASSWORD", "STORE_SECRET"}
API, WORKERS = ["api-1", "api-2"], ["worker"]

# ${NAME:-default} and ${NAME:?message}
_VARIABLE = re.compile(r"\$\{(\w+):([-?])([^}]*)\}")


def interpolated(text, variables):
    """Replaces variables as Docker Compose does."""

    def value(match):
        name, operator, rest = match.groups()
        if operator == "?" and name not in variables:
            raise KeyError(name)
        return variables.get(name, rest)

    return _VARIABLE.sub(value, text)


@pytest.fixture(scope="module")
def text():
    return (ROOT / "compose.yaml").read_text()


@pytest.fixture(scope="module")
def compose(text):
    secrets = {name: f"of.{name}" for name in SECRETS}
    return yaml.safe_load(interpolated(text, secrets))


@pytest.fixture(scope="module")
def services(compose):
    return compose["services"]


def test_file_follows_the_compose_specification(compose):
    PyCompose.from_yaml(yaml.safe_dump(compose)).validate()


@pytest.mark.parametrize("name", sorted(SECRETS))
def test_missing_secret_stops_the_start(text, name):
    with pytest.raises(KeyError, match=name):
        interpolated(text, dict.fromkeys(SECRETS - {name}, "x"))


def test_every_secret_comes_from_a_variable(services):
    given = {
        f"{service}.{name}": value
        for service, definition in services.items()
        for name, value in definition.get("environment", {}).items()
        if re.search("SECRET|PASSWORD|ADMIN_KEY|DATABASE_URL", name)
    }
    assert len(given) == 3 * len(API + WORKERS) + 2
    assert all(
        any(f"of.{name}" in value for name in SECRETS) for value in given.values()
    )


@pytest.mark.parametrize("name", API + WORKERS)
def test_settings_of_each_service_exist(services, name):
    found = settings(services[name]["environment"])
    assert (found.job_slots == 0) == (name in API)
    memory = services[name]["deploy"]["resources"]["limits"]["memory"]
    processes = (
        found.workers * found.model_memory_bytes
        if name in API
        else found.job_memory_bytes
    )
    assert processes < int(memory.removesuffix("G")) * 2**30


@pytest.mark.parametrize("name", API + WORKERS)
def test_image_and_mounts_of_each_service_fit(services, name):
    stage = "predict" if name in API else "full"
    assert services[name]["build"]["target"] == stage
    assert stage in STAGES
    (volume,) = services[name]["volumes"]
    source, target = volume.split(":")
    assert source == name, "two services would write the same copies"
    # Docker makes a new volume at each start for what has no mount.
    assert {target} | set(services[name]["tmpfs"]) >= VOLUMES


@pytest.mark.parametrize("name", API)
def test_health_check_asks_a_path_of_the_service(services, name):
    command = services[name]["healthcheck"]["test"][-1]
    (port, path) = re.findall(r"http://127\.0\.0\.1:(\d+)([\w/]+)", command)[0]
    assert int(port) == PORT
    assert answers_without_key(path)


def test_balancer_knows_every_replica(services):
    given = services["balancer"]["environment"]
    replicas = [value for name, value in given.items() if name.startswith("REPLICA_")]
    assert replicas == [f"{name}:{PORT}" for name in API]
    proxy = services["proxy"]["environment"]["BALANCER"]
    assert proxy == f"balancer{given['LISTEN']}"


def test_no_container_runs_as_root(services):
    # The service has the user of its image, and PostgreSQL that of its own.
    users = {name: definition.get("user") for name, definition in services.items()}
    assert USER != "0"
    assert [name for name, user in users.items() if user is None] == API + WORKERS
    assert not {"0", "root", "0:0"} & set(users.values())


def test_only_the_proxy_is_reachable(compose):
    services = compose["services"]
    assert [name for name in services if "ports" in services[name]] == ["proxy"]
    assert compose["networks"]["inside"]["internal"] is True
    for name in services.keys() - {"proxy"}:
        assert services[name]["networks"] == ["inside"]
