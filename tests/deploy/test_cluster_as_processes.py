"""The cluster of the compose file without containers: commands, environment and probes as processes."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from services.engines import Engines
from tests.deploy.test_image_and_compose import DEPLOY, OURS
from tests.support.command import run_command
from tests.support.folders import new_folder
from tests.support.model_server import ModelServer
from tests.support.ports import free_port, wait_for_port
from tests.support.service_process import ServiceProcess, answer_of, events_of

pytestmark = [
    pytest.mark.soak,
    pytest.mark.process,
    pytest.mark.skipif(shutil.which("nginx") is None, reason="no nginx on this machine"),
]

MEMBERS = ("api-1", "api-2", "worker-1", "worker-2")
_PREFIX = "ANAMNESIS_"
PORTS = {name: free_port() for name in ("worker-1", "worker-2")}
"""Of the workers' metrics."""


@pytest.fixture
def variables(engines: Engines, redis_server: str, model_server: ModelServer) -> dict[str, str]:
    """The environment of the image, and where in place of the containers' names something listens."""
    dockerfile = (DEPLOY / "Dockerfile").read_text()
    image = dict(re.findall(r"ANAMNESIS_([A-Z_]+)=(\S+)", dockerfile))
    return {name.lower(): value for name, value in image.items() if name not in {"DATA_DIR", "HOST"}} | {
        "host": "127.0.0.1",
        "database_url": engines.database_url,
        "redis_url": redis_server,
        "milvus_uri": engines.milvus_uri,
        "llm_model": "scripted",
        "llm_base_url": model_server.base_url,
        "llm_api_key": "k",
    }


@pytest.fixture
def members(variables: dict[str, str]) -> Iterator[dict[str, ServiceProcess]]:
    with new_folder() as folder, ExitStack() as stack:
        running = {}
        for name in MEMBERS:
            service: dict[str, Any] = OURS[name]
            theirs = {
                key.removeprefix(_PREFIX).lower(): value
                for key, value in service["environment"].items()
                if key.startswith(_PREFIX) and "$" not in value
            }
            (command,) = service["command"]
            given = {**theirs, **variables}
            if "worker_port" in theirs:
                given["worker_port"] = str(PORTS[name])
            process = ServiceProcess(Path(folder) / name / "data", free_port(), command=command, **given)
            (Path(folder) / name).mkdir()
            running[name] = process.start()
            stack.callback(process.end)
        yield running


@pytest.fixture
def address(members: dict[str, ServiceProcess]) -> Iterator[str]:
    """nginx with the configuration of the compose file."""
    port = free_port()
    text = (DEPLOY / "nginx" / "nginx.conf").read_text().replace("listen 8000", f"listen 127.0.0.1:{port}")
    for name in ("api-1", "api-2"):
        text = text.replace(f"{name}:8000", members[name].url.removeprefix("http://"))
    with new_folder() as folder:
        user = "user root; " if os.getuid() == 0 else ""
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        paths = " ".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
        text = text.replace("/tmp/nginx.pid", f"{folder}/pid").replace(
            "http {", f"http {{ access_log off; {paths}"
        )
        configuration = Path(folder) / "nginx.conf"
        configuration.write_text(f"{user}daemon off; {text}")
        process = subprocess.Popen(["nginx", "-c", str(configuration), "-p", folder, "-e", f"{folder}/errors"])
        wait_for_port(port)
        yield f"http://127.0.0.1:{port}"
        process.terminate()
        process.wait(60)


def _probe(process: ServiceProcess) -> int:
    """The image's HEALTHCHECK."""
    found = re.search(r"HEALTHCHECK[^\[]*(\[.*\])", (DEPLOY / "Dockerfile").read_text())
    assert found
    words = shlex.split(found[1].strip("[]").replace(",", " "))
    code = found[1].partition('"-c", "')[2].removesuffix('"]').replace("http://127.0.0.1:8000", process.url)
    assert words[0] == "python"
    return subprocess.run([sys.executable, "-c", code], check=False, capture_output=True).returncode


def test_the_cluster_answers_with_a_key_and_ends_when_it_is_asked(
    members: dict[str, ServiceProcess], address: str, variables: dict[str, str], engines: Engines
) -> None:
    given = {f"{_PREFIX}{name.upper()}": value for name, value in variables.items()}
    migrated = run_command(
        "migrate", variables={**given, f"{_PREFIX}MIGRATION_DATABASE_URL": engines.owner_url or ""}
    )
    assert migrated.returncode == 0, migrated.stderr
    assert [_probe(members[name]) for name in ("api-1", "api-2")] == [0, 0]

    body = {"user_id": "u-1", "session_id": "s-1", "message": "My dog is called Bruno."}
    assert httpx.post(f"{address}/api/v1/chat/stream", json=body).status_code == 401
    made = run_command("keys", "create", "--name", "me", variables=given)
    headers = {"Authorization": f"Bearer {made.stdout.strip()}"}
    for number in range(4):
        asked = {**body, "session_id": f"s-{number}"}
        with httpx.stream("POST", f"{address}/api/v1/chat/stream", json=asked, headers=headers) as response:
            assert response.status_code == 200
            assert answer_of(list(events_of(response.iter_lines())))
    assert httpx.get(f"{address}/metrics").status_code == 404
    members["api-1"].send(signal.SIGSTOP)
    answers = [httpx.get(f"{address}/healthz", timeout=10) for _ in range(8)]
    members["api-1"].send(signal.SIGCONT)
    assert {each.status_code for each in answers} == {200}, "one that hangs is left alone"
    assert sum(each.elapsed > timedelta(seconds=1) for each in answers) <= 2
    made = run_command("keys", "create", "--name", "prometheus", "--scope", "admin", variables=given)
    headers = {"Authorization": f"Bearer {made.stdout.strip()}"}
    for url in (members["api-1"].url, f"http://127.0.0.1:{PORTS['worker-1']}"):
        assert httpx.get(f"{url}/metrics").status_code == 401
        assert "anamnesis_job_seconds" in httpx.get(f"{url}/metrics", headers=headers).raise_for_status().text
    assert [process.stop() for process in members.values()] == [0] * len(MEMBERS)
    assert _probe(members["api-1"]) != 0
