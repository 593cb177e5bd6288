"""Lines for imports, and what an import and an export answer."""

import json
from typing import Any

import httpx

LINES = {"Content-Type": "application/x-ndjson"}


def message(number: int, **values: Any) -> dict[str, Any]:
    """A message of a conversation: the user speaks, then the assistant, a minute later."""
    usual = {
        "user_id": "u-1",
        "session_id": "s-1",
        "role": "user" if number % 2 else "assistant",
        "content": f"Message {number}",
        "created_at": f"2025-03-{1 + number // 1440:02}T{number // 60 % 24:02}:{number % 60:02}:00+00:00",
    }
    return {**usual, **values}


def ndjson(*lines: "dict[str, Any] | str | bytes") -> bytes:
    return b"".join(_bytes(line) + b"\n" for line in lines)


def _bytes(line: "dict[str, Any] | str | bytes") -> bytes:
    if isinstance(line, dict):
        line = json.dumps(line, ensure_ascii=False)
    return line.encode() if isinstance(line, str) else line


async def send(client: httpx.AsyncClient, body: bytes, **headers: str) -> dict[str, Any]:
    answer = await client.post("/api/v1/import", content=body, headers={**LINES, **headers})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def export(client: httpx.AsyncClient, user: str = "u-1", **headers: str) -> str:
    answer = await client.get(f"/api/v1/users/{user}/export", headers=headers)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("application/x-ndjson")
    return answer.text
