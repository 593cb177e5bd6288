"""`anamnesis keys` and `anamnesis tenants`, beside a running service and with a database alone."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from services.engines import Engines
from tests.support.command import run_command
from tests.support.issuer import bearer
from tests.support.model_server import ModelServer
from tests.support.ports import free_port
from tests.support.service_process import ServiceProcess

pytestmark = [pytest.mark.slow, pytest.mark.traced]

ASK = {"user_id": "u-1", "session_id": "s-1", "message": "Hello"}


def _anamnesis(*arguments: str, types: str = "", **variables: str) -> "subprocess.CompletedProcess[str]":
    return run_command(*arguments, variables=variables, typed=types)


@pytest.fixture
def guarded_service(data_dir: Path, model_server: ModelServer) -> Iterator[ServiceProcess]:
    """The service as a process, embedded, with API keys, listening on every address."""
    process = ServiceProcess(
        data_dir,
        free_port(),
        auth="api_key",
        host="0.0.0.0",
        llm_model="scripted",
        llm_base_url=model_server.base_url,
    )
    yield process.start()
    if process.process and process.process.poll() is None:
        process.stop()


def test_a_key_made_beside_the_service_works_until_revoked_and_nothing_secret_is_logged(
    guarded_service: ServiceProcess, data_dir: Path
) -> None:
    embedded = {"ANAMNESIS_DATA_DIR": str(data_dir)}
    made = _anamnesis("keys", "create", "--name", "shop", **embedded)
    assert made.returncode == 0, made.stderr
    key = made.stdout.strip()
    key_id = key.split("_")[1]
    canary = "a very private canary"
    with httpx.Client(base_url=guarded_service.url, timeout=120) as client:
        body = {**ASK, "message": canary}
        assert client.post("/api/v1/chat", json=body, headers=bearer(key)).status_code == 200
        for wrong, headers, status in (
            (body, {}, 401),
            (body, bearer(key[:-1]), 401),
            (body, bearer(f"ank_{key_id}_{'canary-' * 6}c"), 401),
            ({**body, "surprise": canary}, bearer(key), 422),
            ({**body, "session_id": "new", "expert": "nobody"}, bearer(key), 422),
        ):
            assert client.post("/api/v1/chat", json=wrong, headers=headers).status_code == status
        assert client.post("/api/v1/chat", content=canary, headers=bearer(key)).status_code in {400, 422}
        address = {"ANAMNESIS_PORT": guarded_service.url.rsplit(":", 1)[1], "ANAMNESIS_KEY": key}
        talked = _anamnesis("chat", "--user", "ada", types=f"{canary}\n", **address)
        assert "Certainly, here is the answer." in talked.stdout, talked.stderr
        revoked = _anamnesis("keys", "revoke", key_id, **embedded)
        assert "(shop) is revoked" in revoked.stdout, revoked.stderr
        assert client.post("/api/v1/chat", json=body, headers=bearer(key)).status_code == 401
    guarded_service.stop()
    assert "turn_id=" in guarded_service.text
    for secret in ("canary", key, key.split("_", 2)[2], "Bearer ank"):
        assert secret not in guarded_service.text


def test_keys_and_tenants_are_made_and_listed(engines: Engines) -> None:
    here = {"ANAMNESIS_DATABASE_URL": engines.database_url}
    made = _anamnesis("tenants", "create", "shop", **here)
    assert made.returncode == 0, made.stderr
    found = json.loads(_anamnesis("tenants", "list", "--json", **here).stdout)
    assert [tenant["name"] for tenant in found] == ["default", "shop"]
    wanted = ("--name", "the till", "--tenant", "shop", "--scope", "chat", "--scope", "memory:read")
    key = json.loads(_anamnesis("keys", "create", *wanted, "--json", **here).stdout)
    assert (key["tenant"], key["scopes"]) == ("shop", ["chat", "memory:read"])
    listed = _anamnesis("keys", "list", **here).stdout
    assert key["id"] in listed
    assert "the till" in listed
    assert key["key"].split("_", 2)[2] not in listed
