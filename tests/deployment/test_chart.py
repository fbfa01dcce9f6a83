"""The Helm chart renders valid objects that fit the settings and the image."""

import json
import subprocess

import kubernetes_validate
import pytest
import yaml

from tests.deployment.containers import (
    PORT,
    ROOT,
    USER,
    VOLUMES,
    answers_without_key,
    settings,
)
from tests.deployment.programs import program
from tfbbb.version import __version__

CHART = ROOT / "deploy" / "helm" / "tfbbb"
REQUIRED = {"existingSecret": "tfbbb", "store": "s3://bucket/tfbbb"}
# Every optional object and field.
ALL = {
    "image": {"repository": "registry.example/tfbbb", "pullSecrets": ["pull"]},
    "environment": {"AWS_ENDPOINT_URL": "http://store:8333"},
    "api": {
        "autoscaling": {"enabled": True},
        "nodeSelector": {"disk": "fast"},
        "tolerations": [{"key": "api", "operator": "Exists"}],
    },
    "worker": {
        "environment": {"TFBBB_JOB_SECONDS": "3600"},
        "resources": {"limits": {"nvidia.com/gpu": 1}},
        "affinity": {"podAntiAffinity": {}},
    },
    "ingress": {
        "enabled": True,
        "className": "nginx",
        "host": "tfbbb.example",
        "tlsSecret": "tls",
        "annotations": {"nginx.ingress.kubernetes.io/proxy-body-size": "0"},
    },
    "serviceAccount": {"annotations": {"role": "store"}},
}
VALUES = {"required": {}, "all": ALL}
WORKLOADS = ["api", "worker"]

# The oldest Kubernetes that the chart supports, and the newest whose schemas there are.
KUBERNETES = ["1.25", kubernetes_validate.latest_version()]


class Helm:
    """The commands of Helm.

    Args:
        path: The program.
        folder: A folder for values.
    """

    def __init__(self, path, folder):
        self._path, self._values = path, folder / "values.json"

    def run(self, *command, values):
        self._values.write_text(json.dumps(values))
        arguments = (self._path, *command, CHART, "--values", self._values)
        return subprocess.run(arguments, capture_output=True, text=True)

    def render(self, values):
        """Returns the objects of a release named `test`."""
        done = self.run("template", "test", values=REQUIRED | values)
        assert done.returncode == 0, done.stderr
        return [found for found in yaml.safe_load_all(done.stdout) if found]


@pytest.fixture(scope="module")
def helm(tmp_path_factory):
    path = program("helm", "`make helm` puts it beside Python")
    return Helm(path, tmp_path_factory.mktemp("helm"))


@pytest.fixture(scope="module")
def objects(helm):
    """The rendered objects by the name of their values."""
    return {name: helm.render(values) for name, values in VALUES.items()}


def of_kind(objects, kind):
    return [found for found in objects if found["kind"] == kind]


def deployment(objects, workload):
    (found,) = (
        found
        for found in of_kind(objects, "Deployment")
        if found["metadata"]["name"] == f"test-tfbbb-{workload}"
    )
    return found["spec"]


def pod(objects, workload):
    return deployment(objects, workload)["template"]["spec"]


def environment(objects, workload):
    (container,) = pod(objects, workload)["containers"]
    return {variable["name"]: variable["value"] for variable in container["env"]}


@pytest.mark.parametrize("values", VALUES)
def test_helm_finds_no_fault_in_the_chart(helm, values):
    done = helm.run("lint", "--strict", values=REQUIRED | VALUES[values])
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("version", KUBERNETES)
@pytest.mark.parametrize("values", VALUES)
def test_rendered_objects_follow_the_schemas_of_kubernetes(objects, values, version):
    for found in objects[values]:
        kubernetes_validate.validate(found, version, strict=True)


def test_optional_objects_are_rendered_on_demand(objects):
    kinds = {name: {found["kind"] for found in objects[name]} for name in VALUES}
    always = {"Deployment", "Service", "ServiceAccount", "PodDisruptionBudget"}
    assert kinds["required"] == always
    assert kinds["all"] == always | {"Ingress", "HorizontalPodAutoscaler"}


@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize("values", VALUES)
def test_settings_of_each_container_exist(objects, values, workload):
    found = settings(environment(objects[values], workload))
    assert found.store == REQUIRED["store"]
    assert (found.job_slots == 0) == (workload == "api")


@pytest.mark.parametrize("workload", WORKLOADS)
def test_containers_fit_the_image(objects, workload):
    spec = pod(objects["required"], workload)
    (container,) = spec["containers"]
    # The API predicts, without TensorFlow.
    image = {"api": "tfbbb-predict", "worker": "tfbbb"}[workload]
    assert container["image"] == f"{image}:{__version__}"
    ports = [port["containerPort"] for port in container.get("ports", [])]
    assert ports == {"api": [PORT], "worker": []}[workload]
    assert str(spec["securityContext"]["runAsUser"]) == USER
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    mounts = {mount["mountPath"] for mount in container["volumeMounts"]}
    # The models are in the store.
    assert mounts == VOLUMES - {"/app/saved_models"} | {"/tmp"}
    # The addresses of services would be variables TFBBB_PORT, ..., unknown settings.
    assert spec["enableServiceLinks"] is False


def test_probes_ask_paths_of_the_service(objects):
    (container,) = pod(objects["required"], "api")["containers"]
    paths = {
        probe: container[f"{probe}Probe"]["httpGet"]["path"]
        for probe in ("startup", "liveness", "readiness")
    }
    assert paths["startup"] == paths["liveness"] == "/health/live"
    assert paths["readiness"] == "/health/predicting"
    assert all(map(answers_without_key, set(paths.values())))
    # A worker speaks no HTTP, and ends where it cannot go on.
    (worker,) = pod(objects["required"], "worker")["containers"]
    assert not [name for name in worker if name.endswith("Probe")]


def test_service_and_budget_select_the_replicas_alone(objects):
    (service,) = of_kind(objects["required"], "Service")
    (budget,) = of_kind(objects["required"], "PodDisruptionBudget")
    selector = service["spec"]["selector"]
    assert budget["spec"]["selector"]["matchLabels"] == selector
    for workload in WORKLOADS:
        spec = deployment(objects["required"], workload)
        labels = spec["template"]["metadata"]["labels"]
        assert spec["selector"]["matchLabels"].items() <= labels.items()
        assert (selector.items() <= labels.items()) == (workload == "api")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"store": "/a/directory"}, "store"),
        ({"environment": {"TFBBB_ADMIN_KEY": "a.b"}}, "TFBBB_ADMIN_KEY"),
        # Helm would write the number as 2.147483648e+09.
        ({"environment": {"TFBBB_MAX_UPLOAD_BYTES": 2147483648}}, "want string"),
        ({"ingress": {"enabled": True}}, "host"),
    ],
)
def test_wrong_values_are_refused(helm, values, message):
    done = helm.run("template", "test", values=REQUIRED | values)
    assert done.returncode != 0
    assert message in done.stderr
