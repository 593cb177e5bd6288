"""What each kind of step does. None of them judges: they tell what came about."""

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import httpx
from psycopg.rows import tuple_row

from tests.scenarios.dialogue import Call, Past, Run, Say, Settle, Sql, Wait
from tests.scenarios.outcome import Outcome
from tests.scenarios.passing import let_pass
from tests.scenarios.script import reply_of
from tests.scenarios.stage import LARGE
from tests.scenarios.variables import duration
from tests.support.service_process import events_of
from tests.support.transfer import LINES, ndjson

if TYPE_CHECKING:
    from tests.scenarios.player import Player


async def say(player: "Player", step: Say) -> Outcome:
    """Send a message; `times` over, the last being told of."""
    outcome = Outcome()
    for number in range(1, step.times + 1):
        player.names.kept["n"] = number
        asked = len(player.stage.model.requests)
        outcome = await _say_once(player, step)
        outcome.asked_from = asked
    return outcome


async def _say_once(player: "Player", step: Say) -> Outcome:
    player.stage.model.script(*(reply_of(answer) for answer in player.filled(step.model)), model=LARGE)
    zone = {"timezone": player.dialogue.timezone} if player.dialogue.timezone else {}
    body = {"user_id": step.user, "session_id": step.session, "message": step.say, **zone, **step.fields}
    # Not every string is valid UTF-8; JSON can say them all the same.
    content = json.dumps(player.names.fill(body)).encode()
    headers = {"Content-Type": "application/json"}
    request = player.client(step.tenant).stream("POST", "/api/v1/chat/stream", content=content, headers=headers)
    async with request as response:
        if response.status_code != httpx.codes.OK:
            await response.aread()
            return _told(response)
        lines = [line async for line in response.aiter_lines()]
    events = list(events_of(iter(lines)))
    told: dict[str, Any] = {}
    for _, kind, body in events:
        if kind in {"turn", "done", "error"}:
            told |= body
    return Outcome(status=response.status_code, body=told, events=events, answered=True)


async def call(player: "Player", step: Call) -> Outcome:
    """Make a request."""
    method, _, path = player.names.fill(step.call).partition(" ")
    request: dict[str, Any] = {"headers": player.names.fill(step.headers)}
    if step.lines is not None:
        request = {"content": ndjson(*player.names.fill(step.lines)), "headers": {**LINES, **request["headers"]}}
    elif step.raw is not None:
        request["content"] = player.names.fill(step.raw).encode()
    elif step.json_ is not None:
        request["json"] = player.names.fill(step.json_)
    return _told(await player.client(step.tenant).request(method, path, **request))


async def past(player: "Player", step: Past) -> Outcome:
    """Import what was said at a time, a minute between two messages."""
    at = player.names.moment(step.past)
    zone = {"timezone": player.dialogue.timezone} if player.dialogue.timezone else {}
    lines: list[dict[str, Any]] = []
    if zone:
        lines.append({"kind": "user", "user_id": step.user, **zone, "created_at": at.isoformat()})
    said = [(role, text) for pair in step.talk for role, text in zip(("user", "assistant"), pair, strict=True)]
    lines += [
        {
            "user_id": step.user,
            "session_id": step.session,
            "role": role,
            "content": player.names.fill(text),
            "created_at": (at + timedelta(minutes=number)).isoformat(),
            **step.fields,
        }
        for number, (role, text) in enumerate(said)
    ]
    answer = await player.client(step.tenant).post("/api/v1/import", content=ndjson(*lines), headers=LINES)
    return _told(answer)


async def wait(player: "Player", step: Wait) -> Outcome:
    """Let time pass."""
    tenant_id, _ = await player.tenant(step.tenant)
    await player.house.settled(tenant_id)
    await let_pass(player.house.superuser_url, tenant_id, duration(step.wait))
    return Outcome()


async def settle(player: "Player", step: Settle) -> Outcome:
    """Let what goes on in the background come to its end; at night visits end and days are summarised, too."""
    services, (tenant_id, _) = player.house.services, await player.tenant(step.tenant)
    await player.house.settled(tenant_id)
    if step.settle == "night":
        await player.nightfall()
        await player.house.settled(tenant_id)
    elif step.settle == "index":
        await services.memory.indexing.index_waiting()
    return Outcome()


async def run(player: "Player", step: Run) -> Outcome:
    """Run a background job."""
    tenant_id, _ = await player.tenant(step.tenant)
    status = await player.house.run(step.run)
    await player.house.settled(tenant_id)
    return Outcome(body={"job": status})


async def sql(player: "Player", step: Sql) -> Outcome:
    """Read what is stored of the tenant."""
    tenant_id, _ = await player.tenant(step.tenant)
    async with player.house.services.database.tenant(tenant_id) as connection:
        await connection.execute("SET TRANSACTION READ ONLY")
        async with connection.cursor(row_factory=tuple_row) as cursor:
            await cursor.execute(player.names.fill(step.sql))
            rows = [
                [str(each) if hasattr(each, "hex") else each for each in row] for row in await cursor.fetchall()
            ]
    return Outcome(rows=rows)


def _told(answer: httpx.Response) -> Outcome:
    is_json = "json" in answer.headers.get("content-type", "") and "ndjson" not in answer.headers["content-type"]
    body = answer.json() if is_json and answer.content else None
    return Outcome(status=answer.status_code, text=answer.text, body=body, answered=True)


STEPS: dict[type, Any] = {Say: say, Call: call, Past: past, Wait: wait, Settle: settle, Run: run, Sql: sql}
