"""Plays a dialogue over HTTP, step by step, and says where it went otherwise than expected."""

import asyncio
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import httpx

from tests.scenarios.dialogue import KINDS, Answer, Dialogue, Expected, Past, Say, Step
from tests.scenarios.expectations import unmet
from tests.scenarios.outcome import Outcome, at_path
from tests.scenarios.script import Director
from tests.scenarios.stage import LARGE, SMALL, House, Stage
from tests.scenarios.steps import STEPS
from tests.scenarios.variables import Variables
from tests.support.model_server import Received

_TURN = "/api/v1/turns/{turn}"


class DialogueFailed(AssertionError):
    """A dialogue went otherwise than its file expects."""


class Player:
    """One playing of one file; tenants, users and sessions are its own."""

    def __init__(self, dialogue: Dialogue, name: str, stage: Stage, house: House) -> None:
        self.dialogue = dialogue
        self.stage = stage
        self.house = house
        self.names = Variables(dialogue.timezone)
        self._name = name
        self._tenants: dict[str, tuple[UUID, httpx.AsyncClient]] = {}
        self._stack = AsyncExitStack()

    async def play(self) -> None:
        """Play all of it. Raises `DialogueFailed` if a step did not do what its file expects."""
        self.stage.model.reset()
        self.stage.model.default = Director(self.dialogue)
        self.stage.model.input_tokens = _not_counted
        await self.tenant("main")
        try:
            for number, step in enumerate(self.dialogue.step, 1):
                await self._play(number, step)
        finally:
            await self._stack.aclose()
            self.stage.model.reset()
            self.stage.model.default = Director(self.dialogue)  # for jobs that have yet to end
            await self.house.clear([tenant_id for tenant_id, _ in self._tenants.values()])

    async def tenant(self, name: str) -> tuple[UUID, httpx.AsyncClient]:
        """A tenant of the file, and its own client."""
        if name not in self._tenants:
            tenant_id, key = await self.house.new_tenant()
            headers = {"Authorization": f"Bearer {key}"}
            opened = httpx.AsyncClient(base_url=self.house.url, headers=headers, timeout=120)
            self._tenants[name] = tenant_id, await self._stack.enter_async_context(opened)
        return self._tenants[name]

    def client(self, tenant: str) -> httpx.AsyncClient:
        return self._tenants[tenant][1]

    def filled(self, answers: Sequence[Answer]) -> list[Answer]:
        """What the model says, every place filled."""
        return [Answer.model_validate(self.names.fill(answer.model_dump())) for answer in answers]

    async def nightfall(self) -> None:
        """End visits that are idle, and have the days summarised that are over. They are summarised half an
        hour after midnight; here the half hour is over as well, whenever it runs."""
        now = datetime.now(UTC)
        await self.house.services.visits.end_idle(now)
        await self.house.services.daily_scheduler.find(now + timedelta(minutes=30))

    async def _play(self, number: int, step: Step) -> None:
        await self.tenant(step.tenant)
        asked = len(self.stage.model.requests)
        end = time.monotonic() + step.within_s
        while True:
            try:
                outcome = await STEPS[type(step)](self, step)
            except Exception as error:
                raise DialogueFailed(f"{self._where(number, step)}\n  {type(error).__name__}: {error}") from error
            await self._look(outcome, step, asked)
            wrong = self._wrong(step, outcome)
            if not wrong or time.monotonic() > end:
                break
            await asyncio.sleep(0.05)
        if wrong:
            raise DialogueFailed("\n  ".join([self._where(number, step), *wrong]))
        self._keep(step, outcome)

    async def _look(self, outcome: Outcome, step: Step, asked: int) -> None:
        """Note what the models were asked, and how the turn is stored."""
        requests = self.stage.model.requests
        begun = asked if outcome.asked_from is None else outcome.asked_from
        outcome.requests = [each for each in requests[begun:] if each.body.get("model") == LARGE]
        outcome.small_requests = [each for each in requests if each.body.get("model") == SMALL]
        turn = outcome.body.get("turn_id") if isinstance(outcome.body, dict) else None
        if turn and isinstance(step, Say):
            answer = await self.client(step.tenant).get(_TURN.format(turn=turn))
            outcome.turn = answer.json() if answer.status_code == httpx.codes.OK else None

    def _wrong(self, step: Step, outcome: Outcome) -> list[str]:
        expected = step.expect or Expected()
        expected = Expected.model_validate(self.names.fill(expected.model_dump()))
        wrong = unmet(expected, outcome)
        if outcome.answered and expected.status is None and expected.error is None:
            if outcome.status is None or outcome.status >= httpx.codes.BAD_REQUEST:
                wrong.append(f"it was answered {outcome.status}: {outcome.text[:500]}")
            elif outcome.error:
                wrong.append(f"it ended with {outcome.error}")
        if isinstance(step, Past) and (errors := at_path(outcome.body, "errors")):
            wrong.append(f"lines were refused: {errors}")
        if isinstance(step, Say) and (left := self.stage.model.unasked(LARGE)):
            wrong.append(f"the model was not asked for {left} of its answers")
        return wrong

    def _keep(self, step: Step, outcome: Outcome) -> None:
        if isinstance(outcome.body, dict):
            for name in ("turn_id", "conversation_id", "user_message_id", "message_id"):
                if name in outcome.body:
                    self.names.kept[name] = outcome.body[name]
        for name, path in step.keep.items():
            answered = outcome.rows if outcome.rows is not None else outcome.body
            self.names.kept[name] = outcome.text if path == "text" else at_path(answered, path)

    def _where(self, number: int, step: Step) -> str:
        told: dict[str, Any] = step.model_dump(exclude_unset=True, exclude={"expect"})
        kind, value = next((name, value) for name, value in told.items() if name in KINDS)
        return f"{self._name}, step {number} ({kind} {str(value)[:60]!r}){': ' + step.note if step.note else ''}"


def _not_counted(_: Received) -> int:
    """Tokens of a prompt that no service believes: what it learned would go into the dialogues after this one."""
    return 1
