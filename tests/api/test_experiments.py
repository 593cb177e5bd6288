"""Experiments over HTTP: drafted, run, tagged, measured and stopped."""

import json
from typing import Any

import httpx
from prometheus_client import REGISTRY

from tests.support.model_server import ModelServer

EXPERIMENTS = "/api/v1/experiments"
BRIEF = {"name": "brief", "settings": {"system_prompt": "Answer in one sentence.", "model": "tiny",
                                       "parts_off": ["time"], "recall_items": 1, "recall_tokens": 50,
                                       "context_budget_tokens": 900}}  # fmt: skip


async def _make(client: httpx.AsyncClient, name: str = "style", **values: Any) -> None:
    body = {"name": name, "variants": [{"name": "usual"}, BRIEF], **values}
    made = await client.post(EXPERIMENTS, json=body)
    assert made.status_code == 201, made.text
    assert (made.json()["status"], made.json()["started_at"]) == ("draft", None)


async def _set(client: httpx.AsyncClient, status: str, name: str = "style") -> httpx.Response:
    return await client.patch(f"{EXPERIMENTS}/{name}", json={"status": status})


async def _chat(client: httpx.AsyncClient, user: str, session: str = "s", **values: Any) -> dict[str, Any]:
    body = {"user_id": user, "session_id": session, "message": "Hello", "debug": True, **values}
    answer = await client.post("/api/v1/chat", json=body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def _turn(client: httpx.AsyncClient, chatted: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = (await client.get(f"/api/v1/turns/{chatted['turn_id']}")).json()
    return found


async def test_users_get_their_variants_and_a_stopped_experiment_changes_nothing(
    client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    await _make(client)
    assert (await _turn(client, await _chat(client, "u-0")))["experiments"] is None
    assert (await _set(client, "running")).json()["status"] == "running"
    variants: dict[str, str] = {}
    number = 0
    # Who gets which variant follows from random ids.
    while number < 8 or len(set(variants.values())) < 2:
        number += 1
        model_server.requests.clear()
        chatted = await _chat(client, f"u-{number}", f"new-{number}")
        variant = (await _turn(client, chatted))["experiments"]["style"]
        variants[f"u-{number}"] = variant
        report, asked = chatted["context_report"], model_server.requests[-1]
        assert ("Answer in one sentence." in json.dumps(asked.body)) == (variant == "brief")
        assert (asked.body["model"] == "tiny") == (variant == "brief")
        assert (report["budget"] == 900) == (variant == "brief")
        assert ("time" in report["parts"]) == (variant == "usual")
    assert set(variants.values()) == {"usual", "brief"}
    for user, variant in variants.items():
        assert (await _turn(client, await _chat(client, user, "again")))["experiments"] == {"style": variant}
    assert _counted("brief") > 0
    assert (await _set(client, "stopped")).json()["stopped_at"]
    brief = next(user for user, variant in variants.items() if variant == "brief")
    after = await _chat(client, brief)
    assert (await _turn(client, after))["experiments"] is None
    assert after["context_report"]["budget"] != 900


def _counted(variant: str) -> float:
    labels = {"experiment": "style", "variant": variant, "status": "completed"}
    return REGISTRY.get_sample_value("anamnesis_experiment_turns_total", labels) or 0


async def test_a_started_experiment_keeps_what_users_were_assigned_by(client: httpx.AsyncClient) -> None:
    await _make(client)
    assert (await client.patch(f"{EXPERIMENTS}/style", json={"share": 0.5})).json()["share"] == 0.5
    drafted = await client.patch(f"{EXPERIMENTS}/style", json={"variants": [{"name": "usual"}, BRIEF]})
    assert drafted.json()["variants"] == [
        {"name": "usual", "weight": 1.0, "settings": {}},
        {"weight": 1.0, **BRIEF},
    ], drafted.text
    assert (await _set(client, "stopped")).status_code == 409
    await _set(client, "running")
    for change in ({"share": 0.9}, {"experts": ["default"]}, {"variants": [{"name": "a"}, {"name": "b"}]}):
        refused = await client.patch(f"{EXPERIMENTS}/style", json=change)
        assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
    assert (await client.patch(f"{EXPERIMENTS}/style", json={"description": "Of style."})).status_code == 200
    assert (await client.delete(f"{EXPERIMENTS}/style")).status_code == 409
    await _make(client, "rival")
    overlap = await _set(client, "running", "rival")
    assert (overlap.status_code, "'style'" in overlap.json()["detail"]) == (409, True)
    await _set(client, "stopped")
    assert (await _set(client, "draft")).status_code == 409
    assert (await _set(client, "running", "rival")).status_code == 200
    assert (await client.delete(f"{EXPERIMENTS}/style")).status_code == 204
    assert (await client.get(f"{EXPERIMENTS}/style")).status_code == 404
    assert [item["name"] for item in (await client.get(EXPERIMENTS)).json()["items"]] == ["rival"]
    assert (await client.post(EXPERIMENTS, json={"name": "rival", "variants": [{"name": "a"}, {"name": "b"}]})
            ).status_code == 409  # fmt: skip


async def test_the_report_compares_variants_by_users(client: httpx.AsyncClient) -> None:
    await _make(client)
    await _set(client, "running")
    variants: dict[str, list[str]] = {"usual": [], "brief": []}
    number = 0
    # Who gets which variant follows from random ids: an interval needs some users on each side.
    while min(len(turns) for turns in variants.values()) < 3:
        number += 1
        chatted = await _chat(client, f"u-{number}")
        turn = await _turn(client, chatted)
        variant = turn["experiments"]["style"]
        variants[variant].append(chatted["turn_id"])
        rating = "up" if variant == "brief" else "down"
        await client.post(f"/api/v1/turns/{chatted['turn_id']}/feedback", json={"rating": rating})
    report = (await client.get(f"{EXPERIMENTS}/style/report")).json()
    control, brief = report["variants"]
    assert (control["name"], control["turns"], control["users"]) == ("usual", *[len(variants["usual"])] * 2)
    assert (brief["turns"], brief["rated"]) == (len(variants["brief"]),) * 2
    assert control["differences"] == {}
    assert (control["measures"]["feedback_up"]["value"], brief["measures"]["feedback_up"]["value"]) == (0, 1)
    difference = brief["differences"]["feedback_up"]
    assert difference["value"] == 1
    assert difference["low"] < 1 == difference["high"]
    assert brief["measures"]["errors"]["value"] == 0
    assert 0 < control["measures"]["first_token_ms"]["value"] <= control["measures"]["total_ms"]["value"]
    assert control["measures"]["tokens"]["low"] is not None
