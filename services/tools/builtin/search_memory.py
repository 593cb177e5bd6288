"""`search_memory`: the model searches what was said and remembered, by words and dates."""

from datetime import UTC, date, datetime
from typing import Annotated

from langchain_core.tools import ToolException
from langgraph.prebuilt import ToolRuntime
from pydantic import Field

from services.errors import AnamnesisError
from services.memory.archive import FoundEpisode
from services.memory.changes import Changes
from services.memory.core.blocks import Owner
from services.memory.episodes.episode import Scope
from services.memory.finding.finder import is_id
from services.text.language import Language, language_of
from services.time_reference.local_days import bounds, time_zone
from services.tools.actor import note_search, request_of
from services.tools.tool import RegisteredTool, ToolServices, service_tool
from state.turn import OpenTurn

Query = Annotated[str, Field(description="What is sought")]
After = Annotated[str, Field(description="Place from which to read on")]
Day = Annotated[str, Field(description="YYYY-MM-DD")]

_MOST = 8
_GATHERED = 20
_LONGEST = 300
_LONGEST_QUERY = 1000
_OVERLAP = 20
"""Number of characters that are shown twice when a text is continued: the result names speakers, which the stored
text does not."""
_LONGEST_READ = 2000
"""Maximum number of characters shown when a text is continued."""
_SPEAKERS: dict[Language, dict[str, str]] = {
    "en": {"user": "user", "assistant": "you"},
    "zh": {"user": "用户", "assistant": "你"},
}
_NOTHING: dict[Language, str] = {"en": "Nothing in memory matches.", "zh": "记忆里没有相符的内容。"}
_WEAK: dict[Language, str] = {"en": ", weak match", "zh": "，只是最接近的"}


def make_tool(services: ToolServices) -> RegisteredTool | None:
    """The tool, if episodes are on."""
    archive, changes = services.archive, services.changes
    if archive is None or changes is None:
        return None

    @service_tool
    async def search_memory(
        runtime: ToolRuntime[OpenTurn], query: Query = "", since: Day = "", until: Day = "", after: After = ""
    ) -> str:
        """Search earlier conversations and memories beyond what the prompt shows."""
        turn, now = runtime.context, datetime.now(UTC)
        owner = Owner.of_turn(turn)
        if after.strip():
            return await _read_on(changes, runtime, after.strip())
        lower, upper = _between(since, until, turn.timezone)
        scope = Scope.of(owner, since=lower, until=upper, without=turn.not_recalled)
        try:
            text = query.replace("\x00", "")[:_LONGEST_QUERY]
            found = await archive.search(scope, text, top_k=_GATHERED, now=now, timezone=turn.timezone)
            matching = found.items[:_MOST]
            await note_search(archive, runtime, query, matching)
        except AnamnesisError as error:
            raise ToolException(f"Nothing was searched: {error.message}") from error
        language = language_of([query])
        if not matching:
            return _NOTHING[language]
        return "\n".join(_line(each, language, turn.timezone) for each in matching)

    return RegisteredTool(search_memory, timeout_s=10.0, feature="recall")


async def _read_on(changes: Changes, runtime: ToolRuntime[OpenTurn], place: str) -> str:
    """Return what follows in a text that was cut."""
    memory_id, _, start = place.partition("+")
    if not is_id(memory_id) or not start.isdecimal():
        raise ToolException(f"{place} is no place in a memory; use one that a result names.")
    try:
        memory = await changes.finder.by_id(request_of(runtime).owner, memory_id)
    except AnamnesisError as error:
        raise ToolException(f"Nothing was read: {error.message}") from error
    text = " ".join(memory.text.split()) if memory else ""
    begin = int(start)
    end = begin + _LONGEST_READ
    if begin >= len(text):
        return _NOTHING[language_of([text])]
    return text[begin:end] + (f"… (after={memory_id}+{end})" if end < len(text) else "")


def _between(since: str, until: str, timezone: str) -> tuple[datetime | None, datetime | None]:
    try:
        first = date.fromisoformat(since) if since else None
        last = date.fromisoformat(until) if until else None
    except ValueError as error:
        raise ToolException("Dates are written as 2026-12-24.") from error
    if first is not None and last is not None and last < first:
        raise ToolException("until is before since.")
    lower = bounds(first, first, timezone)[0] if first else None
    upper = bounds(last, last, timezone)[1] if last else None
    return lower, upper


def _line(episode: FoundEpisode, language: Language, timezone: str) -> str:
    said = [
        f"{source.speaker or _SPEAKERS[language][source.role]}: {source.content}"
        for source in episode.sources
        if episode.episode_type == "turn"
    ] or [episode.content]
    # A text of several lines could imitate a line of the result.
    text = " / ".join(" ".join(line.split()) for line in said)
    day = episode.created_at.astimezone(time_zone(timezone)).strftime("%Y-%m-%d")
    cut = f"… (after={episode.id}+{_LONGEST - _OVERLAP})" if len(text) > _LONGEST else ""
    weak = _WEAK[language] if episode.weak else ""
    return f"- [{day}] {text[:_LONGEST]}{cut} (id {episode.id}{weak})"


TOOL = make_tool
