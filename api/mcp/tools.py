"""The six memory tools for assistants, over the services that turns and the API use."""

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Any, Literal
from uuid import UUID, uuid4

from mcp.server.elicitation import AcceptedElicitation, ElicitationResult
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.resolve import Elicit, Resolve
from mcp.types import ToolAnnotations
from pydantic import BaseModel, Field

from api.mcp.acting import Acting, as_tool_errors
from api.mcp.views import ChangedView, DayView, HappenedView, MemoryView, ProfileView, RecalledView, SaidView
from services.conversations.values import Id as Name
from services.conversations.values import SpaceName
from services.memory.episodes.episode import Scope
from services.memory.planning.planner import LONGEST_ITEM, LONGEST_WRITTEN, Kept
from services.summaries.past_days import DaysQuery, ToldDay
from services.time_reference.local_days import bounds
from state.memory import MemoryChange
from state.prompt import TimeReference

ActingOf = Callable[[Context], Acting]
"""Function from a request to the user for whom it acts."""

MOST_DAYS = 366
_LONGEST_SAID = 500
"""Maximum characters of a message that is shown of a day."""

_MOST_CHARACTERS = 1_000
"""Maximum characters of a question, and of words that name a memory."""

Expert = Annotated[Name, Field(description="Name of the expert who remembers.")]
Space = Annotated[
    SpaceName | None,
    Field(description="Name of a space of the user; unset = the connection's, or what all share."),
]
Query = Annotated[str, Field(min_length=1, max_length=_MOST_CHARACTERS, description="A question, or words of it.")]
Statement = Annotated[
    str, Field(min_length=1, max_length=LONGEST_ITEM, description="One short sentence, in the user's words.")
]
Remembered = Annotated[
    str, Field(min_length=1, max_length=LONGEST_WRITTEN, description="Short sentences, in the user's words.")
]
Id = Annotated[UUID | None, Field(description="Id of a memory, as `recall` shows it.")]
Described = Annotated[
    str | None,
    Field(min_length=1, max_length=_MOST_CHARACTERS, description="The memory in words, in place of its id."),
]

_READS = {"read_only_hint": True, "open_world_hint": False}
_ADDS = {"read_only_hint": False, "destructive_hint": False, "idempotent_hint": True, "open_world_hint": False}
_REMOVES = {"read_only_hint": False, "destructive_hint": True, "idempotent_hint": True, "open_world_hint": False}


class Confirmation(BaseModel):
    """The user's decision on a removal."""

    forget: bool = Field(description="Forget it")


async def confirmed(ctx: Context, id: Id = None, query: Described = None) -> Confirmation | Elicit[Confirmation]:
    """Ask the user if the client supports it; otherwise the client asks, because the tool is destructive."""
    request: Any = ctx.request_context.request
    if request is not None and getattr(request.state, "asks_elsewhere", False):
        raise ToolError("The user must be asked first, and this session has ended here. Connect again.")
    capabilities = ctx.client_capabilities
    asks = capabilities.elicitation if capabilities else None
    if asks is None or (asks.form is None and asks.url is not None):
        return Confirmation(forget=True)
    return Elicit(f"Forget {query or f'the memory {id}'}?", Confirmation)


class MemoryTools:
    """Operations of assistants on memory."""

    def __init__(self, acting_of: ActingOf) -> None:
        self._acting_of = acting_of

    def add_to(self, server: MCPServer[Any]) -> None:
        """Offer the tools."""
        for tool, title, hints in (
            (self.recall, "Recall", _READS),
            (self.remember, "Remember", _ADDS),
            (self.correct, "Correct a memory", _REMOVES),
            (self.forget, "Forget", _REMOVES),
            (self.profile, "Profile", _READS),
            (self.what_happened, "What happened", _READS),
        ):
            annotations = ToolAnnotations.model_validate({"title": title, **hints})
            server.add_tool(tool, title=title, annotations=annotations, structured_output=True)

    async def recall(
        self,
        ctx: Context,
        query: Query,
        since: Annotated[date | None, Field(description="First local day to search.")] = None,
        until: Annotated[date | None, Field(description="Last local day to search.")] = None,
        expert: Expert = "default",
        space: Space = None,
        limit: Annotated[int, Field(ge=1, le=20, description="Memories to show at most.")] = 8,
    ) -> RecalledView:
        """Search what the user has said and what is known of them, in this and in all earlier conversations."""
        if since and until and until < since:
            raise ToolError("`since` is after `until`.")
        with as_tool_errors():
            acting = self._acting_of(ctx)
            owner = await acting.reads(expert, space)
            if owner is None:
                return RecalledView(memories=[], degraded=[])
            user = await acting.services.users.get(owner.tenant_id, acting.user("memory:read"))
            lower = bounds(since, since, user.timezone)[0] if since else None
            upper = bounds(until, until, user.timezone)[1] if until else None
            query = query.replace("\x00", "")
            facts = [] if since or until else await acting.services.memory.known.bearing_on(owner, query)
            scope = Scope.of(owner, since=lower, until=upper)
            found = await acting.services.memory.archive.search(
                scope, query, top_k=limit, now=datetime.now(UTC), timezone=user.timezone
            )
        memories = [MemoryView(id=None, kind="fact", text=each.text, said_at=each.at) for each in facts]
        memories += [
            MemoryView(
                id=each.id, kind=each.episode_type, text=each.content, said_at=each.created_at, weak=each.weak
            )
            for each in found.items
        ]
        return RecalledView(memories=memories[:limit], degraded=found.degraded)

    async def remember(
        self,
        ctx: Context,
        text: Remembered,
        kind: Annotated[
            Literal["fact", "wish"],
            Field(description="`wish` only if the user asked for it: it guides all answers from now on."),
        ] = "fact",
        expert: Expert = "default",
        space: Space = None,
    ) -> ChangedView:
        """Keep a lasting fact, preference or wish that the user states, for all conversations."""
        stated = _stated(text)
        kept: Kept = "standing" if kind == "wish" else "remember"
        if kept == "standing" and len(stated) > LONGEST_ITEM:
            raise ToolError(f"A wish has at most {LONGEST_ITEM} characters; nothing was changed.")
        with as_tool_errors():
            changes, request = await self._acting_of(ctx).changes(expert, space)
            change = await changes.remember(request, stated, kind=kept)
        return _changed(change, retired=[])

    async def correct(
        self,
        ctx: Context,
        text: Statement,
        id: Id = None,
        query: Described = None,
        expert: Expert = "default",
        space: Space = None,
    ) -> ChangedView:
        """Replace a memory that does not hold any more by what holds; both at once, or nothing.

        Give `id` or `query`. `retired` says what was replaced; without a match nothing is changed.
        """
        named, stated = _named(id, query), _stated(text)
        with as_tool_errors():
            changes, request = await self._acting_of(ctx).changes(expert, space)
            change = await changes.correct(request, named, stated)
        return _changed(change, retired=change["items"])

    async def forget(
        self,
        ctx: Context,
        confirmation: Annotated[ElicitationResult[Confirmation], Resolve(confirmed)],
        id: Id = None,
        query: Described = None,
        keep: Annotated[str, Field(description="What is to stay of a sentence in `also_said`.")] = "",
        all: Annotated[
            bool, Field(description="Whether sentences in `also_said`, and all `candidates` with the words, go.")
        ] = False,
        expert: Expert = "default",
        space: Space = None,
    ) -> ChangedView:
        """Remove a memory, wherever it is remembered; only when the user asks for it. Give `id` or `query`.

        If `also_said` is not empty and nothing was changed, call it again with `keep` or `all`.
        """
        named = _named(id, query)
        if not (isinstance(confirmation, AcceptedElicitation) and confirmation.data.forget):
            raise ToolError("The user said no; nothing was changed.")
        with as_tool_errors():
            changes, request = await self._acting_of(ctx).changes(expert, space)
            change = await changes.forget(request, named, takes_all=all, keep=keep)
        return _changed(change, retired=change["items"])

    async def profile(self, ctx: Context, expert: Expert = "default", space: Space = None) -> ProfileView:
        """Everything that is known of the user for certain: name, home, work, preferences, wishes, people."""
        with as_tool_errors():
            return await profile_of(self._acting_of(ctx), expert, space)

    async def what_happened(
        self,
        ctx: Context,
        since: Annotated[date, Field(validation_alias="from", description="First local day.")],
        until: Annotated[
            date | None, Field(validation_alias="to", description="Last local day; unset = the first.")
        ] = None,
        expert: Expert = "default",
        space: Space = None,
    ) -> HappenedView:
        """Return what was talked about on past days, by days: summaries, or the messages."""
        with as_tool_errors():
            return await happened(self._acting_of(ctx), since, until or since, expert, space)


async def profile_of(acting: Acting, expert: str, space: str | None = None) -> ProfileView:
    """Return the user's core memory."""
    owner = await acting.reads(expert, space)
    name = acting.user("memory:read")
    if owner is None:
        return ProfileView(user_id=name, sections={})
    user = await acting.services.users.get(owner.tenant_id, name)
    sections = await acting.services.memory.core.known(owner)
    return ProfileView(
        user_id=name, display_name=user.display_name, timezone=user.timezone, locale=user.locale, sections=sections
    )


async def happened(
    acting: Acting, since: date, until: date, expert: str, space: str | None = None
) -> HappenedView:
    """Return the messages of local days, without asking a model. Raises `ToolError` if the days are in the
    wrong order, or too many."""
    if until < since:
        raise ToolError("`from` is after `to`.")
    if until - since >= timedelta(days=MOST_DAYS):
        raise ToolError(f"At most {MOST_DAYS} days can be asked for at once.")
    owner = await acting.reads(expert, space)
    if owner is None:
        return HappenedView(days=[], closest=[])
    user = await acting.services.users.get(owner.tenant_id, acting.user("memory:read"))
    reference = TimeReference(
        kind="days", start_date=since, end_date=until, hours=None, matched_text="", detail=False, plain=False
    )
    asked = DaysQuery(owner, uuid4(), uuid4(), reference, "", datetime.now(UTC), user.timezone)
    found = await acting.services.past_days.read(asked)
    return HappenedView(days=[_day(each) for each in found.days], closest=list(found.closest))


def _day(day: ToldDay) -> DayView:
    said = [
        SaidView(at=each.created_at, role=each.speaker or each.role, text=each.content[:_LONGEST_SAID])
        for each in day.said
    ]
    return DayView(date=day.date, summary=day.text, key_topics=list(day.key_topics), said=said)


def _stated(text: str) -> str:
    text = text.replace("\x00", "").strip()
    if not text:
        raise ToolError("`text` is empty; nothing was changed.")
    return text


def _named(id: UUID | None, query: str | None) -> str:
    if (id is None) == (query is None or not query.strip()):
        raise ToolError("Give either `id` or `query`; nothing was changed.")
    return str(id) if id else str(query)


def _changed(change: MemoryChange, *, retired: Sequence[str]) -> ChangedView:
    done = change["operation_id"] is not None
    return ChangedView(
        changed=done,
        summary=change["summary"],
        retired=list(retired) if done else [],
        operation_id=change["operation_id"],
        also_said=change.get("also_said", []),
    )
