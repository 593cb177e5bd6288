"""The demo: a month of a made-up user, up to yesterday, played through turns with a recorded model.

Every answer is complete: it has its prompt, what was recalled, and what it changed. The clock of a turn shows the
made-up moment, and the turn's rows are dated back to it. What a model would make of it afterwards, the summaries
of visits and days, is recorded as well: no model is asked.
"""

import tomllib
from contextlib import suppress
from datetime import UTC, datetime, time, timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Any, LiteralString
from uuid import UUID
from zoneinfo import ZoneInfo

from fastapi import APIRouter
from pydantic import BaseModel, Field

from api.access import Admin
from api.console.demo_player import DEMO_EXPERT, DEMO_USER, DemoPlayer
from api.paging import NO_CONTENT
from api.problems import CONFLICT, NOT_FOUND, documented
from api.request_bodies import JsonRoute
from services.bootstrap import Services
from services.conversations.experts import NewExpert
from services.errors import Conflict, NotFound
from services.experiments.experiments import NewExperiment
from services.memory.episodes.episode import NewEpisode
from services.memory.model import ChangeRequest
from services.memory.operations import Trigger

_FILE = Path(__file__).with_name("demo.toml")
_WINDOW = 32_000
_IMPORTANCE = 0.7

_MEMORY_DATED: LiteralString = """
UPDATE episodes SET created_at = %(at)s, learned_at = %(at)s, indexed_at = NULL
WHERE id = %(id)s AND tenant_id = %(tenant_id)s
"""

_LOOKED_THROUGH: LiteralString = """
INSERT INTO upkeep_nights (user_id, tenant_id, at)
SELECT id, tenant_id, greatest(%(at)s, now()) FROM users
WHERE external_id = %(user)s AND tenant_id = %(tenant_id)s
"""


class Demo:
    """Loads the demo for a tenant, and removes it."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._demo: dict[str, Any] = tomllib.loads(_FILE.read_text("utf-8"))

    async def load(self, tenant_id: UUID, now: datetime) -> int:
        """Play the month that ends the day before `now`, which has a time zone; return the number of turns.

        Raises:
            Conflict: The demo is already loaded.
            DatabaseUnavailable: The database does not answer; what was played stays until it is removed.
        """
        services, demo = self._services, self._demo
        with suppress(NotFound):
            await services.users.get(tenant_id, DEMO_USER)
            raise Conflict("The demo is loaded already; remove it first.")
        await services.users.make(tenant_id, DEMO_USER)
        about = {"timezone": demo["timezone"], "locale": "en", "display_name": demo["name"]}
        await services.users.change(tenant_id, DEMO_USER, about)
        await self._set_up(tenant_id)
        player = DemoPlayer(services, tenant_id, demo)
        today = now.astimezone(ZoneInfo(demo["timezone"])).date()
        encrypted = services.database.vault is not None
        for conversation in sorted(demo["conversation"], key=lambda each: (-each["days_ago"], each["at"])):
            if "document" in conversation:
                if encrypted:  # conversations then take no documents
                    continue
                await self._give_document(tenant_id, player.session(conversation))
            day, clock = today - timedelta(days=conversation["days_ago"]), time.fromisoformat(conversation["at"])
            await player.play(conversation, datetime.combine(day, clock, ZoneInfo(demo["timezone"])))
        await services.experiments.change(tenant_id, demo["experiment"]["name"], {"status": "stopped"})
        await self._remember(tenant_id, now)
        for expert in ("default", DEMO_EXPERT):
            owner = await services.memory.core.owner(tenant_id, DEMO_USER, expert)
            days = {today - timedelta(days=day["days_ago"]): day for day in demo["day"] if day["expert"] == expert}
            await player.summarise(owner, days, today)
        await self._looked_through(tenant_id, now)
        return player.turns

    async def remove(self, tenant_id: UUID) -> None:
        """Remove the whole demo, or what is left of it. Raises `NotFound` if the demo is not loaded."""
        services, demo = self._services, self._demo
        found = False
        with suppress(NotFound):
            await services.erasure.user(tenant_id, DEMO_USER)
            found = True
        with suppress(NotFound, Conflict):
            await services.experiments.change(tenant_id, demo["experiment"]["name"], {"status": "stopped"})
        for remove, name in (
            (services.experiments.delete, demo["experiment"]["name"]),
            (services.experts.delete, DEMO_EXPERT),
        ):
            with suppress(NotFound, Conflict):
                await remove(tenant_id, name)
                found = True
        if not found:
            raise NotFound("The demo is not loaded.")

    async def _set_up(self, tenant_id: UUID) -> None:
        """Create the expert, the knowledge base and the experiment; what an interrupted load has left stays."""
        services, demo = self._services, self._demo
        expert, experiment = demo["expert"], demo["experiment"]
        with suppress(Conflict):
            new = NewExpert(DEMO_EXPERT, expert["system_prompt"], context_window=_WINDOW)
            await services.experts.create(tenant_id, new)
        variants = [
            {"name": "five", "weight": 1.0, "settings": {}},
            {"name": "ten", "weight": 1.0, "settings": {"recall_items": 10}},
        ]
        with suppress(Conflict):
            await services.experiments.create(
                tenant_id,
                NewExperiment(experiment["name"], variants, experiment["description"], [DEMO_EXPERT]),  # type: ignore[arg-type]
            )
        with suppress(Conflict):
            await services.experiments.change(tenant_id, experiment["name"], {"status": "running"})

    async def _give_document(self, tenant_id: UUID, session: str) -> None:
        document = self._demo["document"]
        await self._services.knowledge.of_conversations.add(
            tenant_id, DEMO_USER, session, document["source"], document["text"].encode(), content_type=""
        )

    async def _remember(self, tenant_id: UUID, now: datetime) -> None:
        """Add memories that were written by hand, and a change that waits for the user."""
        memory = self._services.memory
        owner = await memory.core.owner(tenant_id, DEMO_USER, "default")
        await memory.core.replace(owner, "persona", self._demo["persona"], Trigger("user"))
        for each in self._demo["memory"]:
            new = NewEpisode(each["text"], each["type"], _IMPORTANCE, "user_said")
            values = {
                "id": await memory.archive.insert(owner, new, Trigger("user")),
                "tenant_id": tenant_id,
                "at": now - timedelta(days=each["days_ago"]),
            }
            async with self._services.database.tenant(tenant_id) as connection:
                await connection.execute(_MEMORY_DATED, values)
        request = ChangeRequest.outside_of_turns(owner, Trigger("model"))
        await memory.proposals.add(request, "remember", self._demo["proposal"]["text"])

    async def _looked_through(self, tenant_id: UUID, now: datetime) -> None:
        """Mark everything as looked through, because the nightly upkeep would ask the service's model."""
        values = {"tenant_id": tenant_id, "user": DEMO_USER, "at": now}
        async with self._services.database.tenant(tenant_id) as connection:
            await connection.execute(_LOOKED_THROUGH, values)


router = APIRouter(
    route_class=JsonRoute,
    prefix="/api/v1/demo",
    include_in_schema=False,  # for the console and the command, not for programs
    responses=documented(HTTPStatus.SERVICE_UNAVAILABLE),
)


class DemoView(BaseModel):
    """The demo that was loaded."""

    user_id: str
    turns: int = Field(description="That were played.")


@router.post("", response_model=DemoView, status_code=HTTPStatus.CREATED, responses=CONFLICT)
async def load(caller: Admin) -> Any:
    """Load a month of made-up conversations for a separate demo user, without a model. 409 if they are loaded."""
    turns = await Demo(caller.services).load(caller.tenant_id, datetime.now(UTC))
    return {"user_id": DEMO_USER, "turns": turns}


@router.delete("", **NO_CONTENT, responses=NOT_FOUND)
async def remove(caller: Admin) -> None:
    """Remove the demo with all that came with it."""
    await Demo(caller.services).remove(caller.tenant_id)
