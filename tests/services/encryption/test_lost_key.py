"""A user whose words cannot be opened any more, as after a backup from before their key was renewed, goes on."""

from pathlib import Path

import httpx
import pytest

from services.backup.restore import users_without_their_words
from services.bootstrap import Services
from services.encryption.data_key import UNREADABLE
from services.identity.tenants import DEFAULT_TENANT
from services.platform.settings import Settings
from tests.support.derived import derive_everything, maintain_everything
from tests.support.model_server import ModelServer, Reply

pytestmark = pytest.mark.indexed

USER = "/api/v1/users/u-1"
READS = (
    USER,
    f"{USER}/export",
    f"{USER}/core-memory",
    f"{USER}/core-memory/history",
    f"{USER}/episodes",
    f"{USER}/memories",
    f"{USER}/memory-operations",
    f"{USER}/memory-proposals",
    f"{USER}/erasures",
    f"{USER}/visits",
    f"{USER}/daily-summaries",
    f"{USER}/topics",
    f"{USER}/spaces",
    f"{USER}/conversations",
    f"{USER}/upkeep/runs",
    "/api/v1/conversations?user_id=u-1",
)


@pytest.fixture
def settings(settings: Settings, tmp_path: Path) -> Settings:
    """With encryption."""
    return settings.model_copy(update={"encryption": True, "encryption_keys_dir": tmp_path / "keys"})


async def test_everything_is_shown_and_said_as_of_nothing_that_cannot_be_read(
    services: Services, client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    owner = await derive_everything(services, client, model_server)
    await maintain_everything(services, client, owner)
    vault = services.database.vault
    assert vault is not None
    assert await users_without_their_words(services.database) == []
    before = {path: (await client.get(path)).status_code for path in READS}
    vault.keys.renew(DEFAULT_TENANT, "u-1")
    for lost in vault.keys.renewed(DEFAULT_TENANT, "u-1", before_s=0):
        assert vault.keys.destroy_renewed(lost)
    vault.keys.drop_cached()
    services.memory.drop_cached(owner.user_id)
    assert await users_without_their_words(services.database) == ["u-1"]
    answers = {path: await client.get(path) for path in READS}
    assert {path: answer.status_code for path, answer in answers.items()} == before
    for session in ("s-1", "long", "new"):
        model_server.script(Reply(["Good day."]))
        body = {"user_id": "u-1", "session_id": session, "message": "Do you know what I like?"}
        answer = await client.post("/api/v1/chat", json=body)
        assert (answer.status_code, answer.json().get("answer")) == (200, "Good day."), answer.text
        assert answer.json()["degraded"] == []
        if session == "new":
            assert UNREADABLE not in str(model_server.requests[-1].body)
    searched = await client.post(f"{USER}/episodes/search", json={"query": "What do I like?"})
    assert searched.status_code == 200
    assert UNREADABLE not in searched.text
    told = {"user_id": "u-1", "session_id": "newer", "message": "I like skiing."}
    assert (await client.post("/api/v1/chat", json=told)).status_code == 200
    searched = await client.post(f"{USER}/episodes/search", json={"query": "What do I like?"})
    assert "I like skiing." in searched.text
