"""`search_memory`: the model searches what was said and remembered, by words and dates."""

from datetime import UTC, date, datetime, timedelta
from typing import Annotated

from langchain_core.tools import BaseTool, ToolException
from langgraph.prebuilt import ToolRuntime
from pydantic import Field

from services.errors import AnamnesisError
from services.memory.archive import Archive, FoundEpisode
from services.memory.episodes.scope import Scope
from services.text.language import Language, language_of
from services.text.mentions import Subject
from services.time_reference.local_days import bounds, local_day
from services.time_reference.zones import time_zone
from services.tools.actor import note_search, owner_of
from services.tools.tool import RegisteredTool, ToolServices, service_tool
from state.context import TurnContext

Query = Annotated[str, Field(description="Words of what is sought")]
Days = Annotated[int, Field(description="Only the last days; 0 = all")]
Day = Annotated[str, Field(description="YYYY-MM-DD")]

_MOST = 8
_GATHERED = 20
_LONGEST = 300
_LONGEST_QUERY = 1000
_MOST_DAYS = 3660
_SPEAKERS: dict[Language, dict[str, str]] = {
    "en": {"user": "user", "assistant": "you"},
    "zh": {"user": "用户", "assistant": "你"},
}
_NOTHING: dict[Language, str] = {
    "en": "Nothing in memory matches.",
    "zh": "记忆里没有相符的内容。",
}


def make_tool(services: ToolServices) -> RegisteredTool | None:
    """The tool, if episodes are on."""
    return RegisteredTool(_over(services.archive), timeout_s=10.0, feature="recall") if services.archive else None


def _over(archive: Archive) -> BaseTool:
    @service_tool
    async def search_memory(
        query: Query,
        runtime: ToolRuntime[TurnContext],
        days: Days = 0,
        since: Day = "",
        until: Day = "",
    ) -> str:
        """Search earlier conversations and memories, beyond what the prompt shows."""
        context, now = runtime.context, datetime.now(UTC)
        owner = owner_of(context)
        lower, upper = _between(days, since, until, now, context.timezone)
        scope = Scope.of(owner, since=lower, until=upper, without=context.not_recalled)
        try:
            text = query.replace("\x00", "")[:_LONGEST_QUERY]
            found = await archive.search(scope, text, top_k=_GATHERED, now=now, timezone=context.timezone)
            matching = _matching(found.items, text)[:_MOST]
            await note_search(archive, runtime, query, matching)
        except AnamnesisError as error:
            raise ToolException(f"Nothing was searched: {error.message}") from error
        language = language_of([query])
        if not matching:
            return _NOTHING[language]
        return "\n".join(_line(each, language, context.timezone) for each in matching)

    return search_memory


def _between(
    days: int, since: str, until: str, now: datetime, timezone: str
) -> tuple[datetime | None, datetime | None]:
    today = local_day(now, timezone)
    try:
        first = (
            date.fromisoformat(since)
            if since
            else today - timedelta(days=min(days, _MOST_DAYS))
            if days > 0
            else None
        )
        last = date.fromisoformat(until) if until else None
    except ValueError as error:
        raise ToolException("Dates are written as 2026-12-24.") from error
    if first is not None and last is not None and last < first:
        raise ToolException("until is before since.")
    lower = bounds(first, first, timezone)[0] if first else None
    upper = bounds(last, last, timezone)[1] if last else None
    return lower, upper


def _matching(found: list[FoundEpisode], query: str) -> list[FoundEpisode]:
    """The items that share an informative word with the query; all if it has none."""
    subject = Subject.of(query)
    if not subject.terms:
        return found
    return [each for each in found if subject.shares_with(each.content)]


def _line(episode: FoundEpisode, language: Language, timezone: str) -> str:
    said = [
        f"{source.speaker or _SPEAKERS[language][source.role]}: {source.content}"
        for source in episode.sources
        if episode.episode_type == "turn"
    ] or [episode.content]
    # A text of several lines could imitate a line of the result.
    text = " / ".join(" ".join(line.split()) for line in said)
    day = episode.created_at.astimezone(time_zone(timezone)).strftime("%Y-%m-%d")
    return f"- [{day}] {text[:_LONGEST]}{'…' if len(text) > _LONGEST else ''} (id {episode.id})"


TOOL = make_tool
