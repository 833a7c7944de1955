"""Cluster files: Ray's own schema for the launcher, KubeRay's types for the manifests, one Ray version everywhere."""

import re
from pathlib import Path

import jsonschema
import pytest
import ray
import yaml
from ray.autoscaler._private.util import prepare_config, validate_config
from ray.serve.schema import ServeDeploySchema

ROOT = Path(__file__).parents[2]
KUBERAY = ROOT / "deploy" / "kuberay"
LAUNCHERS = [ROOT / "cluster.yaml", ROOT / "deploy" / "cluster-aws.yaml"]

# The fields that are used here, as ray-project/kuberay declares them in ray-operator/apis/ray/v1/raycluster_types.go,
# rayjob_types.go and rayservice_types.go (authOptions: pull request 4179); of Kubernetes' core/v1 what our pods have.
STRINGS = {"type": "object", "additionalProperties": {"type": "string"}}
AMOUNTS = {"type": "object", "additionalProperties": {"type": "string", "pattern": r"^[0-9.]+(m|Ki|Mi|Gi)?$"}}


def strict(properties: dict, *required: str) -> dict:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


CONTAINER = strict(
    {
        "name": {"type": "string"},
        "image": {"type": "string"},
        "resources": strict({"requests": AMOUNTS, "limits": AMOUNTS}),
        "volumeMounts": {
            "type": "array",
            "items": strict(
                {"name": {"type": "string"}, "mountPath": {"type": "string"}}, "name", "mountPath"
            ),
        },
    },
    "name",
    "image",
)
VOLUME = strict(
    {
        "name": {"type": "string"},
        "persistentVolumeClaim": strict({"claimName": {"type": "string"}}, "claimName"),
    },
    "name",
)
POD = strict(
    {
        "spec": strict(
            {
                "securityContext": strict({"runAsUser": {"type": "integer"}, "fsGroup": {"type": "integer"}}),
                "containers": {"type": "array", "items": CONTAINER, "minItems": 1},
                "volumes": {"type": "array", "items": VOLUME},
            },
            "containers",
        )
    },
    "spec",
)
COUNT = {"type": "integer", "minimum": 0}
CLUSTER = strict(
    {
        "rayVersion": {"type": "string"},
        "authOptions": strict({"mode": {"enum": ["disabled", "token"]}}),
        "enableInTreeAutoscaling": {"type": "boolean"},
        "autoscalerOptions": strict({"idleTimeoutSeconds": COUNT}),
        "headGroupSpec": strict({"rayStartParams": STRINGS, "template": POD}, "rayStartParams", "template"),
        "workerGroupSpecs": {
            "type": "array",
            "items": strict(
                {
                    "groupName": {"type": "string"},
                    "replicas": COUNT,
                    "minReplicas": COUNT,
                    "maxReplicas": COUNT,
                    "rayStartParams": STRINGS,
                    "template": POD,
                },
                "groupName",
                "minReplicas",
                "maxReplicas",
                "rayStartParams",
                "template",
            ),
        },
    },
    "headGroupSpec",
)
JOB = strict(
    {
        "entrypoint": {"type": "string"},
        "backoffLimit": COUNT,
        "shutdownAfterJobFinishes": {"type": "boolean"},
        "ttlSecondsAfterFinished": COUNT,
        "rayClusterSpec": CLUSTER,
    },
    "entrypoint",
    "rayClusterSpec",
)
SERVICE = strict(
    {"serveConfigV2": {"type": "string"}, "rayClusterConfig": CLUSTER}, "serveConfigV2", "rayClusterConfig"
)
SPECS = {"RayCluster": CLUSTER, "RayJob": JOB, "RayService": SERVICE}


def manifest(name: str) -> dict:
    return yaml.safe_load((KUBERAY / f"{name}.yaml").read_text())


def check_manifest(document: dict) -> None:
    schema = strict(
        {
            "apiVersion": {"const": "ray.io/v1"},
            "kind": {"const": document["kind"]},
            "metadata": strict({"name": {"type": "string"}}, "name"),
            "spec": SPECS[document["kind"]],
        },
        "apiVersion",
        "metadata",
        "spec",
    )
    jsonschema.validate(document, schema)


def cluster_of(document: dict) -> dict:
    spec = document["spec"]
    return spec.get("rayClusterSpec") or spec.get("rayClusterConfig") or spec


@pytest.mark.parametrize("file", LAUNCHERS, ids=lambda f: f.name)
def test_launcher_files_pass_rays_schema(file):
    validate_config(prepare_config(yaml.safe_load(file.read_text())))


@pytest.mark.parametrize("file", LAUNCHERS, ids=lambda f: f.name)
def test_five_values_are_marked(file):
    body = [line for line in file.read_text().splitlines() if not line.startswith("#")]
    assert sum("# CHANGE" in line for line in body) == 5


@pytest.mark.parametrize("file", LAUNCHERS, ids=lambda f: f.name)
def test_head_and_workers_use_the_same_token_mode(file):
    config = yaml.safe_load(file.read_text())
    starts = [
        c for kind in ("head", "worker") for c in config[f"{kind}_start_ray_commands"] if "ray start" in c
    ]
    assert len(starts) == 2
    assert all("RAY_AUTH_MODE=token" in command for command in starts)


@pytest.mark.parametrize(
    ("key", "value"), [("max_worker", 3), ("head_node_type", "nobody"), ("provider", {"type": "moon"})]
)
def test_rays_schema_catches_mistakes(key, value):
    with pytest.raises(Exception, match=r"max_worker|head_node_type|moon"):
        validate_config(prepare_config(yaml.safe_load(LAUNCHERS[1].read_text()) | {key: value}))


@pytest.mark.parametrize("name", ["raycluster", "rayjob", "rayservice"])
def test_manifests_fit_kuberays_types(name):
    document = manifest(name)
    check_manifest(document)
    for group in (cluster_of(document)["headGroupSpec"], *cluster_of(document)["workerGroupSpecs"]):
        pod = group["template"]["spec"]
        assert {m["name"] for c in pod["containers"] for m in c["volumeMounts"]} == {
            v["name"] for v in pod["volumes"]
        }
        claims = {v["persistentVolumeClaim"]["claimName"] for v in pod["volumes"]}
        assert claims == {manifest("storage")["metadata"]["name"]}


def test_the_manifest_check_can_fail():
    document = manifest("raycluster")
    document["spec"]["workerGroupSpec"] = document["spec"].pop("workerGroupSpecs")
    with pytest.raises(jsonschema.ValidationError, match="workerGroupSpec"):
        check_manifest(document)


def test_all_manifests_describe_the_same_cluster():
    assert (
        cluster_of(manifest("raycluster"))
        == cluster_of(manifest("rayjob"))
        == cluster_of(manifest("rayservice"))
    )


def test_the_service_names_an_application_that_exists():
    pytest.importorskip("preplay_serve")
    from preplay_serve.app import build

    config = ServeDeploySchema.model_validate(yaml.safe_load(manifest("rayservice")["spec"]["serveConfigV2"]))
    (application,) = config.applications
    assert application.import_path == f"{build.__module__}:{build.__name__}"


def test_the_job_starts_a_configuration_that_exists():
    command = manifest("rayjob")["spec"]["entrypoint"]
    (path,) = re.findall(r"/home/ray/preplay/(\S+\.yaml)", command)
    assert (ROOT / path).exists()


def test_one_ray_version_everywhere():
    pinned = re.search(r"^ray==(\S+)$", (ROOT / "constraints.txt").read_text(), re.M)
    assert pinned
    assert pinned[1] == ray.__version__
    dockerfile = (ROOT / "deploy" / "Dockerfile").read_text()
    assert set(re.findall(r"rayproject/ray:([\d.]+)-", dockerfile)) == {pinned[1]}
    assert {cluster_of(manifest(n))["rayVersion"] for n in ("raycluster", "rayjob", "rayservice")} == {
        pinned[1]
    }


def test_the_image_holds_what_is_installed():
    dockerfile = (ROOT / "deploy" / "Dockerfile").read_text()
    copied = {
        name
        for line in re.findall(r"^COPY --chown=ray (.*)$", dockerfile, re.M)
        for name in line.split()[:-1]
    }
    assert {name for name in copied if not (ROOT / name).exists()} == set()
    assert {"platform", "rllib_ext", "serve", "pyproject.toml", "constraints.txt", "tune_configs"} <= copied
    assert "-c constraints.txt" in dockerfile
