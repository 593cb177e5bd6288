"""Image and compose file: what linters and schemas say, and that everything they name exists."""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from compose_spec.models import ComposeSpecification

from services.platform.settings import Settings

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
SERVICES: dict[str, Any] = COMPOSE["services"]
OURS = {name: service for name, service in SERVICES.items() if "anamnesis" in service["image"]}
_VARIABLE = re.compile(r"\$\{([A-Z0-9_]+)")


@pytest.mark.process
def test_the_linter_has_nothing_to_say_of_the_dockerfile() -> None:
    hadolint = Path(sys.executable).with_name("hadolint")
    ran = subprocess.run([hadolint, DEPLOY / "Dockerfile"], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, "")


def test_the_image_runs_as_nobody_in_particular_and_ends_with_a_signal() -> None:
    last_stage = (DEPLOY / "Dockerfile").read_text().rpartition("\nFROM ")[2]
    for line in ("USER 10001:10001", "STOPSIGNAL SIGTERM", "HEALTHCHECK", 'ENTRYPOINT ["anamnesis"]'):
        assert f"\n{line}" in last_stage
    copied = set(re.findall(r"^!([a-z_]+)$", (ROOT / ".dockerignore").read_text(), re.MULTILINE))
    assert copied == {"anamnesis_agent", "anamnesis_client", "api", "graph", "nodes", "services", "state"}


def test_the_compose_file_is_one() -> None:
    ComposeSpecification.model_validate(COMPOSE)
    for service in OURS.values():
        assert service["read_only"]
        assert service["cap_drop"] == ["ALL"]
        assert service["tmpfs"] == ["/tmp"]
        assert service["stop_grace_period"] == "40s"


@pytest.mark.parametrize(
    ("profile", "running"),
    [
        ("embedded", {"embedded"}),
        ("stores", {"single", "migrate", "postgres", "redis", "milvus"}),
        ("cluster", {"api-1", "api-2", "worker-1", "worker-2", "nginx", "migrate", "postgres", "redis", "milvus"}),
        ("observability", {"collector", "tempo", "prometheus", "grafana"}),
    ],
)
def test_a_profile_has_all_that_it_depends_on(profile: str, running: set[str]) -> None:
    assert {name for name, service in SERVICES.items() if profile in service["profiles"]} == running
    for name in running:
        for other, condition in SERVICES[name].get("depends_on", {}).items():
            assert other in running
            if condition["condition"] == "service_healthy" and other not in OURS:
                assert "healthcheck" in SERVICES[other] or other not in SERVICES


def test_it_sets_settings_that_there_are_from_variables_that_are_listed() -> None:
    settings = {f"ANAMNESIS_{name.upper()}" for name in Settings.model_fields}
    for service in OURS.values():
        assert {name for name in service["environment"] if name.startswith("ANAMNESIS_")} <= settings
    listed = set(re.findall(r"^(?:# )?([A-Z0-9_]+)=", (DEPLOY / "env.example").read_text(), re.MULTILINE))
    asked = {each["environment"] for each in COMPOSE["secrets"].values()} | set(
        _VARIABLE.findall((DEPLOY / "compose.yaml").read_text())
    )
    optional = {"ANAMNESIS_IMAGE", "ANAMNESIS_SMALL_LLM_MODEL"} | {
        each for each in asked if each.startswith("ANAMNESIS_EMBEDDING_")
    }
    assert asked - optional <= listed <= asked


def test_every_file_that_is_mounted_is_there() -> None:
    for service in SERVICES.values():
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            assert (DEPLOY / source).is_file() if source.startswith(".") else source in COMPOSE["volumes"]


@pytest.mark.process
@pytest.mark.skipif(shutil.which("nginx") is None, reason="no nginx on this machine")
def test_nginx_accepts_its_configuration(tmp_path: Path) -> None:
    text = (DEPLOY / "nginx" / "nginx.conf").read_text()
    text = re.sub(r"api-[12]:8000", "127.0.0.1:1", text).replace("/tmp/nginx.pid", str(tmp_path / "pid"))
    configuration = tmp_path / "nginx.conf"
    configuration.write_text(text)
    command = ["nginx", "-t", "-c", str(configuration), "-p", str(tmp_path), "-e", str(tmp_path / "errors")]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
