"""Another product's archive over HTTP."""

import json
from pathlib import Path
from typing import Any

import httpx

from api.schemas import MAX_BODY_BYTES
from tests.services.transfer.exports import EXPORTS, written

_PATH = "/api/v1/users/u-1/archive-imports"


async def _bring(client: httpx.AsyncClient, vendor: str, content: bytes) -> list[dict[str, Any]]:
    answer = await client.post(_PATH, params={"vendor": vendor}, content=content)
    assert answer.status_code == 200, answer.text
    return [json.loads(line) for line in answer.text.splitlines()]


async def test_an_archive_becomes_the_users_and_is_known_when_it_comes_again(
    client: httpx.AsyncClient, tmp_path: Path
) -> None:
    for vendor, content in EXPORTS.items():
        archive = written(tmp_path, vendor, content, zipped=vendor in {"chatgpt", "claude"}).read_bytes()
        first, again = (await _bring(client, vendor, archive))[-1], (await _bring(client, vendor, archive))[-1]
        assert first["done"]
        assert first["read"] == first["size"] > 0
        assert (first["refused"], first["problem"], first["errors"]) == (0, None, [])
        assert first["imported"] == first["conversations"] + first["messages"] + first["memories"] > 0
        assert (again["imported"], again["skipped"]) == (0, first["imported"])
    (user,) = (await client.get("/api/v1/users")).json()["items"]
    assert user["user_id"] == "u-1"


async def test_what_is_no_archive_is_refused_and_what_breaks_off_is_told(client: httpx.AsyncClient) -> None:
    refused = await client.post(_PATH, params={"vendor": "chatgpt"}, content=b"PK no archive")
    assert refused.status_code == 422
    assert "the file is a damaged ZIP archive" in refused.json()["detail"]
    assert (await client.post(_PATH, params={"vendor": "other"}, content=b"[]")).status_code == 422
    broken = (await _bring(client, "librechat", b'[{"conversationId": "1", "messages": ['))[-1]
    assert "breaks off" in broken["problem"]
    assert broken["done"]


async def test_an_archive_may_be_larger_than_other_bodies(client: httpx.AsyncClient) -> None:
    spaces = b" " * (MAX_BODY_BYTES + 1)
    last = (await _bring(client, "librechat", spaces + b"[]"))[-1]
    assert (last["done"], last["problem"], last["conversations"]) == (True, None, 0)
