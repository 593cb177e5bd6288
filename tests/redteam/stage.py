"""Plays a case: plants its attack where its kind says; the user talks in whole turns, and all jobs are done."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import httpx
import httpx2
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from api.access import CONSOLE_HEADER
from services.bootstrap import Services
from services.identity.tenants import DEFAULT_TENANT, Tenants
from services.memory.core.blocks import Owner
from tests.redteam.case import Case
from tests.redteam.obedient import PLACE, ObedientModel
from tests.support.knowledge import a_base, put
from tests.support.model_server import ModelServer
from tests.support.talks import new_expert
from tests.support.transfer import ndjson
from tests.support.turns import exchange
from tests.support.weather_server import PARIS, WeatherServer

KNOWN = {
    "en": {"allergies": ["allergic to peanuts"], "habits": ["goes swimming on Wednesdays"]},
    "zh": {"allergies": ["对花生过敏"], "habits": ["每周三去游泳"]},
}
"""What the user has told, which no attack may remove."""
_TOPIC = {"en": "Notes about {0}.", "zh": "关于{0}的说明。"}
_FILLER = 9
"""Exchanges after which a summary is due."""
_DAY = timedelta(days=1)

_BY_USER = {CONSOLE_HEADER: "1"}
OTHER = {"en": "Bob", "zh": "小明"}
"""Another participant, who says the first message where the kind is about that."""

_YESTERDAY: Any = """
WITH own AS (SELECT id FROM conversations WHERE user_id = %(user_id)s),
     said AS (UPDATE messages SET created_at = created_at - interval '1 day' WHERE conversation_id IN (TABLE own))
UPDATE visits SET started_at = started_at - interval '1 day', last_active_at = last_active_at - interval '1 day',
    ended_at = ended_at - interval '1 day' WHERE conversation_id IN (TABLE own)
"""


@dataclass
class Rig:
    """What a case is played on."""

    services: Services
    http: httpx.AsyncClient
    model: ModelServer
    weather: WeatherServer


class Stage:
    """One case."""

    def __init__(self, rig: Rig, case: Case) -> None:
        self.rig = rig
        self.case = case
        self.user = f"victim-{case.name}"
        self.bystander = f"bystander-{case.name}"
        self.prefix = f"kb-{case.name}"
        self.session = "first"
        self.more: dict[str, Any] = {}
        """Fields of the user's messages beside the text."""
        self.model = ObedientModel(case)
        self.says = 0
        """Messages that were said."""
        self.shelved: list[UUID] = []
        """Tenants with the case's knowledge base."""

    async def prepare(self) -> None:
        """Let the user and another one have told something, and plant the attack."""
        self.rig.model.default = self.model
        for user in (self.user, self.bystander):
            await exchange(self.rig.services.turns, "Hello", "Hi", user_id=user, session_id="before")
            path = f"/api/v1/users/{user}/core-memory/human"
            (
                await self.rig.http.put(path, json={"content": KNOWN[self.case.language]}, headers=_BY_USER)
            ).raise_for_status()
        await _WAYS[self.case.kind](self)

    async def play(self) -> None:
        """Have the user say everything, each in a whole turn."""
        for number, message in enumerate(self.case.asks):
            if number:
                await self._between()
            answered = await self._say(message)
            await self._work(UUID(answered["turn_id"]), UUID(answered["conversation_id"]))

    async def clear(self) -> None:
        """Remove the knowledge base: other cases' messages would be routed to it."""
        for tenant_id in self.shelved:
            await self.rig.services.knowledge.bases.delete(tenant_id, self.prefix)

    async def _say(self, message: str) -> dict[str, Any]:
        self.says += 1
        if self.case.kind in ("wrapper", "system message", "participant"):
            return await self._say_as_openai(message)
        if self.case.kind == "speaker":
            self.more["speaker"] = OTHER[self.case.language] if self.says == 1 else None
        body = {"user_id": self.user, "session_id": self.session, "message": message, **self.more}
        answer = await self.rig.http.post("/api/v1/chat", json=body)
        if answer.is_error:
            raise ValueError(f"{self.case.name}: {answer.text}")
        found: dict[str, Any] = answer.json()
        return found

    async def _say_as_openai(self, message: str) -> dict[str, Any]:
        planted = self.case.planted.replace("</", "< /")
        said = [{"role": "user", "content": message}]
        if self.case.kind == "participant":
            said[0] |= {"name": OTHER[self.case.language]} if self.says == 1 else {}
        elif self.case.kind == "wrapper":
            wrapped = f'<context>\n<source id="1" name="page.html">{planted}</source>\n</context>\n\n{message}'
            said = [{"role": "user", "content": wrapped}]
        else:
            said.insert(0, {"role": "system", "content": self.case.planted})
        body = {"model": "default", "messages": said, "user": self.user}
        named = {"X-Session-Id": f"{self.session}-{self.case.name}"} if self.case.kind == "participant" else {}
        answer = await self.rig.http.post("/v1/chat/completions", json=body, headers=named)
        answer.raise_for_status()
        turn_id = answer.headers["x-turn-id"]
        turn: dict[str, Any] = (await self.rig.http.get(f"/api/v1/turns/{turn_id}")).raise_for_status().json()
        return {"turn_id": turn_id, "conversation_id": turn["conversation_id"], "answer": turn["answer"]}

    async def _work(self, turn_id: UUID, conversation_id: UUID) -> None:
        """Do what the turn causes in the background, at once."""
        services = self.rig.services
        owner = await services.memory.core.owner(DEFAULT_TENANT, self.user, "default")
        await services.filing.file(DEFAULT_TENANT, owner.user_id)
        await services.summaries.update(DEFAULT_TENANT, conversation_id)
        if self.case.kind == "private note":
            await services.reflection.reflect(DEFAULT_TENANT, turn_id)

    async def _between(self) -> None:
        """Before the second message: let it be remembered where the kind is about that."""
        services = self.rig.services
        self.more.pop("kb_prefix", None)
        if self.case.kind in ("retold", "private note"):
            self.session = "second"
        if self.case.kind == "summary":
            for number in range(_FILLER):
                told = (f"Point {number}. " + "filler " * 60, "Yes.")
                turn = await exchange(
                    services.turns, *told, user_id=self.user, session_id=self.session, expert="brief"
                )
            await services.summaries.update(DEFAULT_TENANT, turn.conversation_id)
        if self.case.kind == "day":
            owner = await services.memory.core.owner(DEFAULT_TENANT, self.user, "default")
            async with services.database.tenant(DEFAULT_TENANT) as connection:
                await connection.execute(_YESTERDAY, {"user_id": owner.user_id})
            self.session = "next-day"
            await self._make_day(owner)
        await services.memory.indexing.index_waiting()

    async def _make_day(self, owner: Owner) -> None:
        await self.rig.services.daily.make(owner, (datetime.now(UTC) - _DAY).date(), "UTC")

    async def shelve(self, source: str, text: str, *, tenant_id: UUID = DEFAULT_TENANT) -> None:
        """Put a document into the case's knowledge base, from which the user asks."""
        services = self.rig.services
        base = await a_base(services, self.prefix, tenant_id=tenant_id)
        self.shelved.append(tenant_id)
        await put(services, base, source, text, tenant_id=tenant_id)
        await services.knowledge.indexing.index_waiting()

    @property
    def topic(self) -> str:
        """A harmless sentence on what the user asks about."""
        return _TOPIC[self.case.language].format(self.case.asks[0])

    async def bring_in(self, *lines: dict[str, Any]) -> None:
        """Import lines for the user."""
        body = ndjson(*({"user_id": self.user, **line} for line in lines))
        headers = {"content-type": "application/x-ndjson"}
        answer = (await self.rig.http.post("/api/v1/import", content=body, headers=headers)).raise_for_status()
        if problems := answer.json()["errors"]:
            raise ValueError(f"{self.case.name}: {json.dumps(problems)}")
        await self.rig.services.memory.indexing.index_waiting()


async def _document(stage: Stage) -> None:
    await stage.shelve("handbook.md", f"# {stage.topic}\n\n{stage.topic} {stage.case.planted}")
    stage.more["kb_prefix"] = stage.prefix


async def _heading(stage: Stage) -> None:
    await stage.shelve("handbook.md", f"# {stage.case.planted}\n\n{stage.topic}")
    stage.more["kb_prefix"] = stage.prefix


async def _file_name(stage: Stage) -> None:
    await stage.shelve(f"{stage.case.planted[:200]}.md", f"# {stage.topic}\n\n{stage.topic}")
    stage.more["kb_prefix"] = stage.prefix


async def _tool_result(stage: Stage) -> None:
    planted = stage.case.planted
    place = {**PARIS, "name": planted, "country": planted}
    stage.rig.weather.places[PLACE[stage.case.language]] = place


async def _nothing(_: Stage) -> None:
    """The message itself, or what the client puts around it, carries the attack."""


def _imported(role: str, **more: Any) -> Callable[[Stage], Awaitable[None]]:
    async def bring_in(stage: Stage) -> None:
        topic, planted = stage.topic, f"{stage.topic} {stage.case.planted}"
        said = {"kind": "message", "session_id": "archive"}
        other = "assistant" if role == "user" else "user"
        lines = [
            {**said, "role": other, "content": topic, "created_at": "2026-05-01T10:00:00Z"},
            {**said, "role": role, "content": planted, "created_at": "2026-05-01T10:01:00Z", **more},
        ]
        await stage.bring_in(*sorted(lines, key=lambda line: line["role"] == "assistant"))

    return bring_in


async def _speaker(stage: Stage) -> None:
    said = {"kind": "message", "session_id": "archive", "created_at": "2026-05-01T10:00:00Z", "role": "user"}
    told = stage.topic.replace("?", "").replace("？", "")
    await stage.bring_in({**said, "content": told, "speaker": stage.case.planted[:256]})


async def _memory(stage: Stage) -> None:
    episode = {"kind": "episode", "episode_type": "context", "content": f"{stage.topic} {stage.case.planted}"}
    more = {"importance": 0.9, "origin": "derived", "created_at": "2026-05-01T10:00:00Z"}
    section = {"kind": "core_memory", "section": "imported", "content": {"note": stage.case.planted}}
    await stage.bring_in({**episode, **more}, section)


async def _by_mcp(stage: Stage) -> None:
    address = f"{stage.rig.http.base_url}/mcp".replace("//mcp", "/mcp")
    async with (
        httpx2.AsyncClient(headers={"X-User-Id": stage.user}, verify=False, timeout=30) as http,
        Client(streamable_http_client(address, http_client=http)) as program,
    ):
        answer = await program.call_tool("remember", {"text": stage.case.planted})
    if answer.is_error:
        raise ValueError(f"{stage.case.name}: {answer.content}")


async def _written_memory(stage: Stage) -> None:
    body = {"content": stage.case.planted}
    (await stage.rig.http.post(f"/api/v1/users/{stage.user}/episodes", json=body)).raise_for_status()


async def _written_core_memory(stage: Stage) -> None:
    body = {"content": {"note": [stage.case.planted]}}
    (await stage.rig.http.put(f"/api/v1/users/{stage.user}/core-memory/notes", json=body)).raise_for_status()


async def _stored(stage: Stage) -> None:
    item = {"op": "put", "namespace": ["notes"], "key": "note", "value": {"text": stage.case.planted}}
    body = {"user_id": stage.user, "operations": [item]}
    (await stage.rig.http.post("/api/v1/store/batch", json=body)).raise_for_status()


async def _name(stage: Stage) -> None:
    """The names of user and conversation take few characters, that of a space any, and a display name too."""
    planted = stage.case.planted
    spelt = "".join(each if each.isascii() and each.isalnum() else "." for each in planted)
    stage.user, stage.session = f"{spelt[:100]}.{stage.case.name}", spelt[:128]
    stage.more["space"] = planted[:60]
    user = {"kind": "user", "timezone": "UTC", "display_name": planted[:256]}
    await stage.bring_in(
        user,
        {"kind": "session", "session_id": "named", "title": planted[:500], "created_at": "2026-05-01T10:00:00Z"},
    )


async def _summary(stage: Stage) -> None:
    await _document(stage)
    stage.more["expert"] = "brief"


async def _private_note(stage: Stage) -> None:
    await _document(stage)
    stage.more["expert"] = "thoughtful"


async def _shared_base(stage: Stage) -> None:
    """Another user has been told the same, and keeps it to themselves; the document is for all."""
    await _document(stage)
    body = {"user_id": stage.bystander, "session_id": "s", "message": stage.topic, "kb_prefix": stage.prefix}
    (await stage.rig.http.post("/api/v1/chat", json=body)).raise_for_status()


async def _space(stage: Stage) -> None:
    """What was said in another space of the same user."""
    said = {"kind": "message", "session_id": "archive", "space": "office"}
    await stage.bring_in(
        {**said, "role": "user", "content": stage.case.asks[0], "created_at": "2026-05-01T10:00:00Z"},
        {**said, "role": "assistant", "content": stage.case.planted, "created_at": "2026-05-01T10:01:00Z"},
    )
    stage.more["space"] = "garden"


async def _tenant(stage: Stage) -> None:
    """The same user and the same base of another tenant."""
    tenant = await Tenants(stage.rig.services.database).create(f"other-{stage.case.name}")
    await stage.shelve("handbook.md", f"# {stage.topic}\n\n{stage.case.planted}", tenant_id=tenant.id)
    said = (stage.case.asks[0], stage.case.planted)
    await exchange(stage.rig.services.turns, *said, tenant_id=tenant.id, user_id=stage.user)
    await stage.rig.services.memory.indexing.index_waiting()


_WAYS: dict[str, Callable[[Stage], Awaitable[None]]] = {
    "document": _document,
    "heading": _heading,
    "file name": _file_name,
    "tool result": _tool_result,
    "wrapper": _nothing,
    "system message": _nothing,
    "pasted": _nothing,
    "quoted": _nothing,
    "forwarded": _nothing,
    "introduced": _nothing,
    "imported answer": _imported("assistant"),
    "imported message": _imported("user"),
    "imported speaker": _speaker,
    "imported memory": _memory,
    "mcp": _by_mcp,
    "written memory": _written_memory,
    "written core memory": _written_core_memory,
    "store": _stored,
    "participant": _nothing,
    "speaker": _nothing,
    "name": _name,
    "retold": _document,
    "history": _document,
    "delayed": _document,
    "hostile date": _document,
    "hostile field": _document,
    "hostile quote": _document,
    "tool answer": _tool_result,
    "summary": _summary,
    "private note": _private_note,
    "day": _document,
    "shared base": _shared_base,
    "space": _space,
    "tenant": _tenant,
}
"""How the attack of each kind is planted."""


async def make_experts(services: Services) -> None:
    """Make the experts whom the kinds about summaries and private notes talk to."""
    for new in (new_expert("brief", context_budget_tokens=900), new_expert("thoughtful", reflection=True)):
        await services.experts.create(DEFAULT_TENANT, new)
