"""Turns over HTTP whose answer comes as one JSON object."""

from typing import Any

import httpx


async def say(client: httpx.AsyncClient, message: str, session: str = "s-1", **more: Any) -> dict[str, Any]:
    """Say something as the user u-1; return the answer."""
    body = {"user_id": "u-1", "session_id": session, "message": message, **more}
    answer = await client.post("/api/v1/chat", json=body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found
