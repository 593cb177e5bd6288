"""Turns a client's request into a turn: finds the speaker, the conversation, and what is new in the request."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any
from uuid import UUID

import structlog

from api.access import StartsTurns
from api.end_user import NO_USER
from api.openai.attachments import CUT_HEADER, fitted, fitting_results
from api.openai.chat_schemas import ignored_header
from api.openai.messages import ClientRequest
from api.openai.models import ModelNotFound, expert_name
from api.openai.reconciliation import Reconciliation
from api.openai.sessions import SESSION_HEADER, TURN_HEADER, ClientIds, in_header_or_metadata
from api.streams import TurnEvents
from graph.turns.other_processes import end_paused
from services.bootstrap import Services
from services.conversations.speakers import names_of_user
from services.conversations.turn import TurnRequest
from services.conversations.values import check_length
from services.errors import Conflict, ConversationExists, InvalidInput, NotFound
from state.budget import RequestBudget, parse_budget
from state.client_tools import ClientTools, call_of
from state.events import PART
from state.turn import Sampling, TurnInput

log = structlog.get_logger(__name__)

MEMORY_HEADER = "X-Anamnesis-Memory"
BUDGET_HEADER = "X-Anamnesis-Budget"
"""Header with the limits of a turn, such as `model_calls=2, seconds=20, tokens=4000`."""
_TRIES = 4
"""Maximum number of attempts to begin a conversation that other requests are beginning at the same time."""
ANOTHER = (
    "The message's `name` is not the user's: it is what another participant says, and changes nothing that is "
    "remembered of the user. Leave `name` out of the user's own messages, or set their display name."
)
NOBODY = "-"
"""Name under which turns of requests without a user are counted."""


@dataclass(frozen=True)
class StartedTurn:
    """A turn that was started for a request."""

    tenant_id: UUID
    turn_id: UUID
    model: str
    events: TurnEvents
    stored: bool = False
    headers: dict[str, str] = field(default_factory=dict)
    note: dict[str, Any] | None = None
    """Why nothing is remembered, if that is so, and which parts of the request had no effect."""
    part: int = 0
    """Number of the turn's part to which the events belong, from 0."""
    abandon: Callable[[], Awaitable[object]] | None = None
    """Ends a temporary turn when its reader disconnects."""


@dataclass(frozen=True)
class ReadRequest:
    """A request as it was read."""

    model: str
    request: ClientRequest
    ids: ClientIds
    user_id: str | None
    keeps: bool
    """Whether the client allows the exchange to be stored."""
    ignored: Sequence[str] = ()
    """Parts of the request without effect."""
    tools: ClientTools | None = None
    """The tools that the client runs."""
    where: str = "messages"
    """The field that holds the messages."""
    sampling: Sampling = field(default_factory=Sampling)
    """Parameters that reach the model."""
    budget: RequestBudget = field(default_factory=RequestBudget)
    """Limits of the turn."""
    cut: dict[str, int] = field(default_factory=dict)
    """Number of characters that each cut part had before it was cut, as in `TurnInput`."""
    echo: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the request that are stored with its turn, for responses that repeat them."""


async def start_turn(starter: StartsTurns, asking: ReadRequest) -> StartedTurn:
    """Start the turn of a request, or find the turn that the request started before.

    Raises:
        ModelNotFound: There is no such model.
        RateLimited: The user or the tenant has started too many turns.
        Conflict, InvalidInput, DatabaseUnavailable: As `TurnRunner.start`.
    """
    check_length(asking.request.message, starter.services.settings.message_characters)
    user_id, runner = asking.user_id, starter.runner
    named = asking.request.names
    tenant_id = (await starter.caller_for(user_id or NOBODY)).tenant_id
    if user_id is not None and named:
        names = await names_of_user(starter.services.users, tenant_id, user_id, named)
        asking = replace(asking, request=asking.request.of_user(names))
    stored = user_id is not None and asking.keeps and not asking.ids.passing
    goes_on = user_id is not None and stored and bool(asking.request.rounds)
    if goes_on and (resumed := await _resume(starter, asking, tenant_id, user_id or NOBODY)) is not None:
        headers = {**ignored_header(asking.ignored), **resumed.headers}
        return replace(resumed, headers=headers, note=_note(asking) or None)
    if not asking.request.message:
        raise Conflict(
            "These results belong to no answer that waits for them: it has ended, or a newer message has taken "
            "its place. Send the whole exchange, from the user's message on."
        )
    fits = await fitted(starter.services, tenant_id, asking.request, asking.model, asking.budget)
    ignored = [*asking.ignored, *fits.ignored]
    asking = replace(asking, request=fits.request, cut=fits.cut, ignored=ignored)
    headers, note = {**ignored_header(ignored), **fits.headers}, _note(asking)
    try:
        if user_id is not None and stored:
            headers[SESSION_HEADER], turn_id = await _start_stored(starter, asking, tenant_id, user_id)
        else:
            turn_id = await runner.start(_turn(starter.services, asking, tenant_id, NOBODY, stored=False))
    except InvalidInput as error:
        if error.field == "expert":
            raise ModelNotFound(f"There is no model {asking.model!r}; GET /v1/models lists them.") from None
        raise
    headers[TURN_HEADER] = str(turn_id)
    if user_id is not None and not stored:
        reads = "off" if asking.ids.shared else starter.services.settings.temporary_memory
        headers[MEMORY_HEADER] = f"{reads}; nothing is kept"
    if user_id is None:
        log.warning("answered without memory", reason="the request names no user")
        headers[MEMORY_HEADER] = "off; no user named"
        note |= {"memory": "off", "reason": NO_USER}
    elif asking.request.speaker:
        headers.setdefault(MEMORY_HEADER, "on; the message is another participant's")
        note |= {"memory": headers[MEMORY_HEADER].partition(";")[0], "reason": ANOTHER}
    stop = None if stored else partial(runner.abandon, tenant_id, turn_id)
    events = runner.follow(tenant_id, turn_id)
    return StartedTurn(tenant_id, turn_id, asking.model, events, stored, headers, note or None, abandon=stop)


def _note(asking: ReadRequest) -> dict[str, Any]:
    return {"ignored": list(asking.ignored)} if asking.ignored else {}


async def _resume(starter: StartsTurns, asking: ReadRequest, tenant_id: UUID, user_id: str) -> StartedTurn | None:
    """Continue the turn that waits for the last results; None if it no longer waits for them. Raises
    `InvalidInput` if a call has no result."""
    services, runner = starter.services, starter.runner
    results = [(call_of(each["id"]), each) for each in asking.request.rounds[-1]["results"]]
    named = {(each[0], each[1]) for each, _ in results if each is not None}
    if len(named) != 1:
        return None
    turn_id, part = named.pop()
    try:
        stored = await services.turns.get(tenant_id, turn_id, user_id=user_id)
    except NotFound:
        return None
    conversation = await services.transcript.conversation(tenant_id, stored.conversation_id)
    rounds = (stored.context_report or {}).get("rounds", [])
    if part >= len(rounds):
        return None
    given = {each[2]: result for each, result in results if each is not None}
    cut: Mapping[str, str] = {}
    if stored.status == "paused" and part == len(rounds) - 1:
        calls = rounds[part]["calls"]
        if missing := [call["id"] for place, call in enumerate(calls) if place not in given]:
            reason = f"the call {missing[0]} has no result; send one for each call of a message"
            raise InvalidInput(asking.where, reason)
        fitting, header = await fitting_results(
            services, tenant_id, list(given.values()), calls, model=asking.model, message=asking.request.message
        )
        given, cut = dict(zip(given, fitting, strict=True)), {CUT_HEADER: header} if header else {}
        goes_on = await runner.resume(tenant_id, turn_id, user_id, given, _of_request(asking))
        if not goes_on:
            stored = await services.turns.get(tenant_id, turn_id)
            rounds = (stored.context_report or {}).get("rounds", [])
    else:
        goes_on = False
    # A request that was sent twice follows the turn of the first.
    if not goes_on and part + 1 >= len(rounds) and stored.status not in {"running", "completed"}:
        return None
    headers = {**cut, SESSION_HEADER: conversation.session_id, TURN_HEADER: str(turn_id)}
    events = runner.follow(tenant_id, turn_id, PART * (part + 1))
    return StartedTurn(tenant_id, turn_id, asking.model, events, stored=True, headers=headers, part=part + 1)


async def _start_stored(
    starter: StartsTurns, asking: ReadRequest, tenant_id: UUID, user_id: str
) -> tuple[str, UUID]:
    """Start the turn, or find it if the request started it before. Return the name of its conversation, and its
    id."""
    services, runner = starter.services, starter.runner
    expert = expert_name(services, asking.model)
    asking = await _after_left_open(starter, asking, tenant_id, user_id)
    reconciling = Reconciliation(services, runner, tenant_id, user_id, expert, asking.ids.space)
    place = reconciling.first_place(asking.request, asking.ids)
    for _ in range(_TRIES):
        place = place or await reconciling.place(asking.request, asking.ids)
        if place.follow is not None:
            return place.session, place.follow
        key = asking.ids.idempotency_key or place.key
        turn = _turn(services, asking, tenant_id, place.session, idempotency_key=key, must_begin=place.begins)
        try:
            return place.session, await runner.start(turn)
        except ConversationExists:
            place = None
    raise Conflict("The conversation changes while this message is looked at; try again.")


async def _after_left_open(
    starter: StartsTurns, asking: ReadRequest, tenant_id: UUID, user_id: str
) -> ReadRequest:
    """End the turn that the message leaves without results, so that the history is complete, and name its
    conversation."""
    if (turn_id := asking.request.left_open) is None:
        return asking
    services = starter.services
    try:
        left = await services.turns.get(tenant_id, turn_id, user_id=user_id)
        conversation = await services.transcript.conversation(tenant_id, left.conversation_id)
    except NotFound:
        return asking
    if left.status == "paused":
        await end_paused(services, tenant_id, turn_id)
    return replace(asking, ids=replace(asking.ids, session=asking.ids.session or conversation.session_id))


def _turn(
    services: Services, asking: ReadRequest, tenant_id: UUID, session: str, *, stored: bool = True, **more: Any
) -> TurnRequest:
    user_id = asking.user_id
    return TurnRequest(
        tenant_id,
        _input(services, asking, user_id or NOBODY, session, stored=stored),
        external_id=asking.ids.user_message,
        stored=stored,
        of_user=user_id is not None and not asking.ids.shared,
        echo=asking.echo,
        **more,
    )


def _input(services: Services, asking: ReadRequest, user_id: str, session: str, *, stored: bool) -> TurnInput:
    request = asking.request
    shown = TurnInput(
        user_id=user_id,
        session_id=session,
        message=request.message,
        images=request.images,
        agent_type="hybrid_agent",
        expert=expert_name(services, asking.model),
        space=asking.ids.space,
    )
    if request.instructions:
        shown["instructions"] = request.instructions
    if request.attached:
        shown["attached"] = request.attached
    if asking.cut:
        shown["cut"] = asking.cut
    if request.speaker:
        shown["speaker"] = request.speaker
    if asking.ids.answer is not None:
        shown["answer_external_id"] = asking.ids.answer
    shown |= _of_request(asking)
    if request.rounds:
        shown["rounds"] = request.rounds
    if "response_format" in asking.sampling:
        shown["compose"] = "single"  # an answer in two parts would not follow the format
    if not stored:
        shown["earlier"] = request.earlier
    return shown


def _of_request(asking: ReadRequest) -> TurnInput:
    """Return the fields that every request of one turn repeats."""
    asked = TurnInput()
    if asking.budget:
        asked["budget"] = asking.budget
    if asking.sampling:
        asked["sampling"] = asking.sampling
    if asking.tools is not None:
        asked["client_tools"] = asking.tools
    return asked


def budget_of(headers: Mapping[str, str], metadata: Mapping[str, Any] | None = None) -> RequestBudget:
    """Read the budget of a request, from its header or `metadata.budget`. Raises `InvalidInput` if it cannot be
    read."""
    return in_header_or_metadata(headers, BUDGET_HEADER, metadata, "budget", parse_budget) or RequestBudget()


def usage_of(content: Mapping[str, Any]) -> dict[str, int]:
    """The tokens of a turn that is done."""
    usage: dict[str, int] = content["usage"] or {}
    return {name: usage.get(name, 0) for name in ("input_tokens", "output_tokens", "cached_tokens")}
