"""Values that an endpoint does not take are refused by the name of their field, and change nothing."""

import base64
import json
from typing import Any

import httpx
import pytest

from services.bootstrap import Services
from tests.support.turns import exchange

pytestmark = pytest.mark.untraced

PNG = "data:image/png;base64," + base64.b64encode(b"\x89PNG").decode()
TOO_LARGE = "data:image/png;base64," + base64.b64encode(b"x" * (8 * 1024 * 1024 + 1)).decode()
NOBODY = "0190a000-0000-7000-8000-000000000001"
AB: dict[str, Any] = {"variants": [{"name": "a"}, {"name": "b"}]}

# What else a request has to hold.
GOOD: dict[str, dict[str, Any]] = {
    "/api/v1/chat": {"user_id": "u-1", "session_id": "new", "message": "Hello"},
    "/api/v1/chat/stream": {"user_id": "u-1", "session_id": "new", "message": "Hello"},
    "/api/v1/experiments": {"name": "x", **AB},
    "/api/v1/knowledge-bases": {"prefix": "handbook", "description": "Our handbook.", "keywords": ["leave"]},
}

Wrong = tuple[dict[str, Any], str]
"""Values, and how the reason begins."""

CHAT: list[Wrong] = [
    ({"message": ""}, "message: "),
    ({"message": "x" * 40_000}, "message: "),
    ({"message": "a\x00b"}, "message: "),
    ({"user_id": "x" * 129}, "user_id: "),
    ({"session_id": ".."}, "session_id: "),
    ({"images": [PNG] * 9}, "images: "),
    ({"images": [TOO_LARGE]}, "images.0: "),
    ({"images": ["file:///etc/passwd"]}, "images.0: "),
    ({"agent_type": "secret_agent"}, "agent_type: "),
    ({"timezone": "Mars/Olympus"}, "timezone: "),
    ({"locale": "not a locale"}, "locale: "),
    ({"kb_prefix": "a b"}, "kb_prefix: "),
    ({"expert": "nobody"}, "expert: "),
    ({"surprise": 1}, "surprise: "),
    ({"compose": "both"}, "compose: "),
    ({"budget": {"tokens": 0}}, "budget.tokens: "),
    (
        {"temporary": True, "replaces": NOBODY},
        "body: replaces: a temporary conversation has no stored turns to replace",
    ),
    ({"earlier": [{"role": "user", "content": "Hello"}]}, "body: earlier: only for a temporary conversation"),
]

WRONG: dict[tuple[str, str], list[Wrong]] = {
    ("POST", "/api/v1/chat"): CHAT,
    ("POST", "/api/v1/chat/stream"): CHAT,
    ("POST", f"/api/v1/turns/{NOBODY}/feedback"): [
        ({"rating": 2}, "rating: "),
        ({"rating": "up", "tags": ["x"] * 11}, "tags: "),
        ({"rating": "up", "stars": 5}, "stars: is not known here; accepted: rating, comment, tags"),
    ],
    ("POST", "/api/v1/users/u-1/episodes"): [
        ({"content": "tea", "importance": 8}, "importance: must be 1 or less"),
        ({"content": "a" * 5_000, "episode_type": "preference"}, "content: must have at most 4000 characters"),
    ],
    ("POST", "/api/v1/users/u-1/episodes/search"): [
        ({}, "query: "),
        ({"query": "a\x00b"}, "query: "),
        ({"query": "half a \ud800 character"}, "query: "),
        ({"query": "x", "top_k": 101}, "top_k: "),
        ({"query": "x", "episode_type": '" or 1==1 --'}, "episode_type: "),
        ({"query": "x", "since": "2026-01-01T00:00:00"}, "since: needs an offset, such as +08:00 or Z"),
        ({"query": "x", "recent": [{"role": "user", "text": "x"}]},
         "recent.0.content: is required; recent.0.text: is not known here; accepted: role, content, speaker"),
    ],
    ("POST", "/api/v1/users/u-1/memory/forget"): [
        ({}, "what: "),
    ],
    ("PATCH", "/api/v1/users/u-1"): [
        ({"timezone": "Mars/Olympus"}, "timezone: "),
        ({"timezone": None}, "timezone: must be a text"),
        ({"display_name": ""}, "display_name: "),
        ({"nickname": "x"}, "nickname: is not known here; accepted: timezone, locale, display_name"),
    ],
    ("GET", "/api/v1/users/u-1/episodes"): [
        ({"type": "turn"}, "type: is not known here; accepted: expert, space, episode_type"),
        ({"limit": 0}, "limit: must be 1 or more"),
    ],
    ("GET", "/api/v1/users/u-1/daily-summaries"): [
        ({"from": "2026-03-02", "to": "2026-03-01"}, "from: "),
        ({"after": "x"}, "after: "),
    ],
    ("GET", "/api/v1/conversations/here"): [({}, "conversation_id: must be a UUID: ")],
    ("GET", "/api/v1/usage"): [
        ({"first": "2026-02-02", "last": "2026-02-01"}, "first: "),
        ({"by": "colour"}, "by.0: "),
    ],
    ("PATCH", "/api/v1/experts/default"): [
        ({"context_window": "wide", "parts_off": ["smell"]},
         "context_window: must be a whole number; parts_off.0: must be "),
    ],
    ("POST", "/api/v1/knowledge-bases"): [
        ({"prefix": "Handbook"}, "prefix: "),
        ({"keywords": ["a\x00"]}, "keywords.0: "),
        ({"system_prompt": "word " * 2000}, "system_prompt: has some 2501 tokens; at most 1000"),
    ],
    ("POST", "/api/v1/experiments"): [
        ({"variants": [{"name": "a"}, {"name": "a"}]}, "variants: "),
        ({"variants": [{"name": "a"}, {"name": "b", "weight": 0}]}, "variants.1.weight: "),
        ({"variants": [{"name": "a"}, {"name": "b", "settings": {"top_k": 3}}]},
         "variants.1.settings.top_k: is not known here; accepted: parts_off"),
        ({"variants": [{"name": "a"}, {"name": "b", "settings": {"parts_off": ["x"]}}]},
         "variants.1.settings.parts_off.0: "),
        ({"experts": ["nobody"]}, "experts: there is no expert named 'nobody'"),
    ],
    ("PUT", "/api/v1/upkeep-policy"): [
        ({"fading": "sometimes"}, "fading: "),
        ({"fading": "archive", "fading_days": 0}, "fading_days: "),
    ],
    ("PUT", "/api/v1/retention"): [
        ({"messages": 0}, "messages: "),
        ({"events": 3}, "events: "),
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
async def _known_user(shared_services: Services) -> None:
    await exchange(shared_services.turns, "Hello", "Hi")


@pytest.mark.usefixtures("_known_user")
@pytest.mark.parametrize("address", WRONG, ids=" ".join)
async def test_a_wrong_value_is_refused_by_its_field(
    shared_client: httpx.AsyncClient, address: tuple[str, str]
) -> None:
    method, path = address
    before = (await shared_client.get(path)).text
    for values, reason in WRONG[address]:
        if method == "GET":
            refused = await shared_client.get(path, params=values)
        else:
            body = json.dumps({**GOOD.get(path, {}), **values})
            refused = await shared_client.request(
                method, path, content=body, headers={"Content-Type": "application/json"}
            )
        assert refused.status_code == 422, refused.text
        assert refused.headers["content-type"] == "application/problem+json"
        problem = refused.json()
        assert set(problem) == {"type", "title", "status", "detail", "code", "reasons"}
        assert (problem["status"], problem["code"]) == (422, "invalid_input")
        assert problem["detail"].startswith(reason)
    assert (await shared_client.get(path)).text == before
