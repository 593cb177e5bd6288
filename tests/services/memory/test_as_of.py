"""What memory knew at a moment is what a copy taken then shows, in whatever order it was changed since."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from services.bootstrap import Services
from services.errors import AnamnesisError
from services.identity.tenants import DEFAULT_TENANT
from services.memory.blocks import Owner
from services.memory.model import ChangeRequest
from services.memory.operations import Trigger
from tests.support.model_server import ModelServer
from tests.support.moments import known
from tests.support.retracting import retelling
from tests.support.single_changes import supersede
from tests.support.turns import exchange
from tests.support.upkeep import keep_up, write

pytestmark = [pytest.mark.anyio, pytest.mark.untraced]

_SAID = (
    "My cat is called Milo.",
    "I live in Berlin.",
    "I am allergic to kiwi.",
    "My brother Tom lives in Oslo.",
    "我对花生过敏。",
    "我住在杭州。",
    "我的猫叫咪咪。",
    "My train leaves at 9.",
)
_CORRECTED = ("My cat is called Bella.", "I live in Lisbon.", "我住在上海。", "我的猫叫豆豆。")
_NAMED = ("my cat", "Berlin", "kiwi", "my brother Tom", "花生", "我住在杭州", "我的猫")
_ACTIONS = st.sampled_from(
    [
        *("tell", "remember", "remember", "correct", "correct", "forget", "forget", "undo", "edit", "supersede"),
        *("merge", "summarise", "space", "replace", "roll back", "copy", "copy"),
    ]
)
_STEPS = st.lists(st.tuples(_ACTIONS, st.integers(0, 7)), min_size=4, max_size=14)
TEA = ["Drinks green tea", "drinks green tea.", "Drinks  green tea!", "DRINKS GREEN TEA"]
_BY_USER = Trigger("user")


class RememberedUser:
    """A user whose memory is changed step by step, and copies of what it showed."""

    def __init__(self, services: Services, model_server: ModelServer) -> None:
        self._services = services
        self._model_server = model_server
        self.user = f"u-{uuid4().hex}"
        self.copies: list[tuple[datetime, list[Owner], dict[str, Any]]] = []
        self._owners: list[Owner] = []

    async def begin(self) -> None:
        """Say something, so that the user is there."""
        turn = await exchange(self._services.turns, "Hello, I like hiking.", "Nice.", external_user_id=self.user)
        self._owners.append(Owner(turn.tenant_id, turn.user_id, turn.expert_id))

    async def step(self, action: str, number: int) -> None:
        """Change memory; what cannot be done at the moment is left."""
        memory, owner = self._services.memory, self._owners[number % len(self._owners)]
        request = ChangeRequest.outside_of_turns(owner, _BY_USER)
        match action:
            case "tell":
                space = "trip" if owner.space_id else None
                await exchange(
                    self._services.turns,
                    _SAID[number % len(_SAID)],
                    "Noted.",
                    external_user_id=self.user,
                    session_key=f"s-{number}-{space}",
                    space=space,
                )
            case "remember":
                await memory.changes.remember(request, _SAID[number % len(_SAID)])
            case "correct":
                await memory.changes.correct(
                    request, _NAMED[number % len(_NAMED)], _CORRECTED[number % len(_CORRECTED)]
                )
            case "forget":
                await memory.changes.forget(request, _NAMED[number % len(_NAMED)])
            case "undo":
                await self._undo(number)
            case "copy":
                await self.copy()
            case _:
                await self._rework(action, number, owner)

    async def _rework(self, action: str, number: int, owner: Owner) -> None:
        memory = self._services.memory
        match action:
            case "edit":
                for each in (await memory.episodes.written(owner, limit=20))[number % 3 : number % 3 + 1]:
                    await memory.catalog.edit(
                        DEFAULT_TENANT, self.user, each.id, _BY_USER, content=f"{each.content} ({number})"
                    )
            case "supersede":
                written = await memory.episodes.written(owner, limit=20)
                if len(written) > 1:
                    await supersede(self._services, owner, written[-1].id, written[0].id, _BY_USER)
            case "merge":
                await write(self._services, owner, *TEA)
                await keep_up(self._services, self.user)
            case "summarise":
                self._model_server.default = retelling
                await self._services.daily.make(owner, datetime.now(UTC).date(), "UTC")
            case "space":
                space_owner = await memory.core.owner(
                    DEFAULT_TENANT, self.user, "default", "trip", make_space=True
                )
                self._owners = [self._owners[0], space_owner]
            case "replace":
                await memory.core.replace(owner, "human", {"home": _SAID[number % 8]}, _BY_USER)
            case "roll back":
                await memory.core.rollback(owner, "human", 1 + number % 2, _BY_USER)

    async def copy(self) -> None:
        """Take a copy."""
        shown = await self._known(self._owners)
        self.copies.append((datetime.now(UTC), list(self._owners), shown))

    async def check(self) -> None:
        """Compare what was known at each copy."""
        for at, owners, shown in self.copies:
            assert await self._known(owners, at) == shown

    async def _known(self, owners: list[Owner], at: datetime | None = None) -> dict[str, Any]:
        return await known(self._services, self.user, owners, "cat Berlin kiwi tea 猫 花生 hiking", at)

    async def _undo(self, number: int) -> None:
        operations = await self._services.memory.operations.list(DEFAULT_TENANT, self.user, space="trip", limit=20)
        changes = [each for each in operations if each.undone_at is None and each.type != "memory_undo"]
        ids: list[UUID] = [each.id for each in changes[number % 3 : number % 3 + 1]]
        for operation_id in ids:
            await self._services.memory.undo.undo(DEFAULT_TENANT, self.user, operation_id)


async def _play(services: Services, model_server: ModelServer, steps: Sequence[tuple[str, int]]) -> None:
    remembered = RememberedUser(services, model_server)
    await remembered.begin()
    await remembered.copy()
    for step in steps:
        try:
            await remembered.step(*step)
        except AnamnesisError:  # it cannot be undone any more, or there is nothing of the kind
            continue
    await remembered.copy()
    await remembered.check()


@given(steps=_STEPS)
@hypothesis_settings(max_examples=6, database=None)
async def test_a_moment_shows_what_a_copy_taken_then_showed(
    services: Services, model_server: ModelServer, steps: Sequence[tuple[str, int]]
) -> None:
    await _play(services, model_server, steps)
