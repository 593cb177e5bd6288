"""The Helm chart: its values and templates always; what it renders to, where `helm` is installed."""

import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from api.service import health_router as router
from services.platform.settings import Settings

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy" / "chart"
VALUES: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
SCHEMA: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text())
TEMPLATES = {path.name: path.read_text() for path in (CHART / "templates").iterdir()}
SETTINGS = {f"ANAMNESIS_{name.upper()}": field for name, field in Settings.model_fields.items()}
NEEDED = {"milvus": {"uri": "http://milvus:19530"}, "redis": {"url": "redis://redis:6379/0"}}
EVERYTHING: dict[str, Any] = {
    "imagePullSecrets": [{"name": "registry"}],
    "fullnameOverride": "memory",
    "serviceAccountName": "anamnesis",
    "milvus": {"uri": "http://milvus:19530", "tokenSecret": {"name": "milvus", "key": "token"}},
    "redis": {"urlSecret": {"name": "redis", "key": "url"}},
    "encryption": {"keysClaim": "user-keys", "masterKeySecret": {"name": "master", "key": "master.key"}},
    "receiptKeySecret": {"name": "receipts", "key": "receipt_key.pem"},
    "settings": {"ANAMNESIS_AUTH": "jwt", "ANAMNESIS_LLM_MODEL": "m", "ANAMNESIS_TURNS_MAX": "1000000"},
    "secretSettings": {"ANAMNESIS_LLM_API_KEY": {"name": "model", "key": "key"}},
    "api": {
        "podAnnotations": {"a": "b"},
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"key": "spot", "operator": "Exists"}],
        "affinity": {"nodeAffinity": {}},
    },
    "autoscaling": {"enabled": True},
    "networkPolicy": {
        "from": [{"podSelector": {"matchLabels": {"app": "proxy"}}}],
        "egress": [{"ports": [{"protocol": "TCP", "port": 443}]}],
    },
    "podMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
    "prometheusRule": {"enabled": True},
    "ingress": {
        "enabled": True,
        "className": "nginx",
        "host": "anamnesis.example",
        "tlsSecretName": "certificate",
        "annotations": {"nginx.ingress.kubernetes.io/proxy-buffering": "off"},
    },
}


def render(tmp_path: Path, values: dict[str, Any]) -> dict[tuple[str, str], Any]:
    """What the chart gives with these values, by kind and name."""
    given = tmp_path / "values.yaml"
    given.write_text(yaml.safe_dump(values))
    command = ["helm", "template", "anamnesis", str(CHART), "--namespace", "chat", "--values", str(given)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    found = [each for each in yaml.safe_load_all(ran.stdout) if each]
    return {(each["kind"], each["metadata"]["name"]): each for each in found}


def pods_of(rendered: dict[tuple[str, str], Any]) -> dict[str, Any]:
    found = {}
    for each in rendered.values():
        if each["kind"] in {"Deployment", "Job"}:
            found[each["spec"]["template"]["spec"]["containers"][0]["name"]] = each["spec"]["template"]["spec"]
    return found


def is_missing(values: dict[str, Any], *path: str) -> bool:
    inner: Any = values
    for step in path:
        if not isinstance(inner, dict) or step not in inner:
            return True
        inner = inner[step]
    return False


def test_the_schema_takes_the_default_values_and_knows_all_of_them() -> None:
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    jsonschema.validate(VALUES, SCHEMA)
    assert set(VALUES) == set(SCHEMA["properties"]) - {"global"}


@pytest.mark.parametrize(
    ("section", "wrong"),
    [
        ("settings", {"ANAMNESIS_AUTH": "none"}),
        ("settings", {"ANAMNESIS_AUTH": "jwt", "ANAMNESIS_LLM_API_KEY": "sk-1"}),
        ("settings", {"ANAMNESIS_AUTH": "jwt", "ANAMNESIS_REDIS_URL": "redis://redis:6379/0"}),
        ("secretSettings", {"ANAMNESIS_LLM_API_KEY": "sk-1"}),
        ("redis", {"url": "redis://:password@redis:6379/0"}),
        ("postgresql", {"url": "postgresql://anamnesis:password@db/anamnesis"}),
        ("replicas", 3),
    ],
)
def test_the_schema_refuses_secrets_in_values_and_what_the_chart_would_ignore(section: str, wrong: object) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**VALUES, section: wrong}, SCHEMA)


def test_settings_that_are_secret_come_from_secrets_alone() -> None:
    secret = {name for name, field in SETTINGS.items() if "SecretStr" in str(field.annotation)}
    set_by_chart = set(SCHEMA["definitions"]["setByTheChart"]["enum"])
    assert secret <= set_by_chart | set(SCHEMA["definitions"]["secretSetting"]["enum"])
    assert set_by_chart <= set(SETTINGS)


def test_templates_use_values_that_exist_and_set_settings_that_exist() -> None:
    text = "\n".join(TEMPLATES.values())
    for used in set(re.findall(r"\.Values((?:\.[A-Za-z_]+)+)", text)):
        assert not is_missing(VALUES, *used[1:].split(".")), used
    assert set(re.findall(r"ANAMNESIS_[A-Z_]+", text)) <= set(SETTINGS)
    documented = set(re.findall(r"ANAMNESIS_[A-Z_]+[A-Z]", (CHART / "values.yaml").read_text()))
    assert documented <= set(SETTINGS)


def test_probes_metric_and_version_are_those_of_the_service() -> None:
    paths = set(re.findall(r"path: (/[a-z]+)[},\n]", TEMPLATES["api.yaml"] + TEMPLATES["podmonitor.yaml"]))
    assert paths == {"/healthz", "/readyz", "/metrics"}
    assert paths <= {getattr(route, "path", "") for route in router.routes}
    metric = re.search(r"metric: \{name: (\w+)}", TEMPLATES["autoscaler.yaml"])
    assert metric is not None
    assert f"| `{metric[1]}` | gauge |" in (ROOT / "docs" / "metrics.md").read_text()
    assert f"containerPort: {Settings.model_fields['port'].default}}}" in TEMPLATES["api.yaml"]
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"] == version


@pytest.mark.process
@pytest.mark.skipif(shutil.which("helm") is None, reason="no helm on this machine")
class TestRendered:
    @pytest.mark.parametrize("values", [NEEDED, EVERYTHING], ids=["needed", "everything"])
    def test_every_object_is_one_of_kubernetes(self, tmp_path: Path, values: dict[str, Any]) -> None:
        import kubernetes_validate

        for (kind, _), each in render(tmp_path, values).items():
            if kind not in {"PodMonitor", "PrometheusRule"}:
                for version in ("1.27", "1.37"):
                    kubernetes_validate.validate(each, version, strict=True)

    def test_the_rules_are_those_that_are_evaluated(self, tmp_path: Path) -> None:
        rules = render(tmp_path, EVERYTHING)["PrometheusRule", "memory"]["spec"]["groups"]
        assert rules == yaml.safe_load((ROOT / "deploy" / "observability" / "alerts.yaml").read_text())["groups"]

    def test_the_default_has_two_apis_two_workers_and_a_migration_before_them(self, tmp_path: Path) -> None:
        rendered = render(tmp_path, NEEDED)
        kinds = sorted(kind for kind, _ in rendered)
        budgets, policies = ["PodDisruptionBudget"] * 2, ["NetworkPolicy"] * 3
        assert kinds == ["Deployment", "Deployment", "Job", *policies, *budgets, "Service"]
        pods = pods_of(rendered)
        assert {name: pod["containers"][0]["args"] for name, pod in pods.items()} == {
            "api": ["serve"],
            "worker": ["worker"],
            "migrate": ["migrate"],
        }
        hook = rendered["Job", "anamnesis-migrate"]["metadata"]["annotations"]
        assert hook["helm.sh/hook"] == "pre-install,pre-upgrade"

    def test_pods_run_without_rights_and_hold_no_secret(self, tmp_path: Path) -> None:
        for name, pod in pods_of(render(tmp_path, EVERYTHING)).items():
            container = pod["containers"][0]
            assert pod["securityContext"]["runAsNonRoot"]
            assert pod["automountServiceAccountToken"] is pod["enableServiceLinks"] is False
            assert container["securityContext"]["readOnlyRootFilesystem"]
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
            mounted = {each["name"]: each["mountPath"] for each in container["volumeMounts"]}
            assert mounted == {each["name"]: mounted[each["name"]] for each in pod["volumes"]}
            writable = [each["mountPath"] for each in container["volumeMounts"] if not each.get("readOnly")]
            assert writable == ["/tmp", "/data", *(["/keys"] if name != "migrate" else [])]
            environment = {each["name"]: each for each in container["env"]}
            assert len(environment) == len(container["env"])
            assert set(environment) <= set(SETTINGS)
            for setting, each in environment.items():
                assert ("valueFrom" in each) is ("SecretStr" in str(SETTINGS[setting].annotation))
            assert ("ANAMNESIS_MIGRATION_DATABASE_URL" in environment) is (name == "migrate")

    @pytest.mark.parametrize("store", sorted(NEEDED))
    def test_without_the_address_of_a_store_nothing_is_rendered(self, tmp_path: Path, store: str) -> None:
        given = tmp_path / "values.yaml"
        given.write_text(yaml.safe_dump({name: each for name, each in NEEDED.items() if name != store}))
        command = ["helm", "template", "anamnesis", str(CHART), "--values", str(given)]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        assert ran.returncode != 0
        assert f"{store}.{next(iter(NEEDED[store]))}" in ran.stderr
