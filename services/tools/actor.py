"""The user and turn for which a tool changes memory, and the texts of others that its model has read."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from langchain_core.messages import AnyMessage, ToolMessage
from langgraph.prebuilt import ToolRuntime

from services.errors import DatabaseUnavailable
from services.llm.shorter_prompts import images_of
from services.memory.archive import Archive, FoundEpisode
from services.memory.core.blocks import Owner
from services.memory.model import ChangeRequest
from services.memory.operations import Trigger
from services.memory.proposals.settling import EditKind, Proposals
from services.memory.reading.foreign_words import foreign_text, own_text
from services.memory.reading.repeated import repeated_spans
from services.memory.reading.trust import AN_IMAGE, ForeignItems, ForeignOrigins, asks_to_remove, rests_on_user
from services.platform.patience import beside_the_loop
from services.text.language import Language, language_of
from services.tools.aliases import named
from services.validation import without_nul
from state.conversation import ConversationState, section_named
from state.memory import ForeignOrigin
from state.prompt import HistoryMessage
from state.section import Item, Section
from state.turn import OpenTurn

_LONG = 5_000
"""Number of characters from which the comparison of an answer with its prompt runs in a thread."""
_SEARCHES = frozenset(named("search_memory"))
"""Tools whose results show what is remembered."""
MEMORY_TOOLS = frozenset({*named("remember"), "forget", "leave_out", "core_memory_update"})
_OF_SERVICE = frozenset({"get_current_time", *MEMORY_TOOLS, *_SEARCHES})
"""Tools whose results hold words of others only if these were remembered."""
_OF_CONVERSATION = frozenset({"summary", "topics", "cut_off"})
"""Sections made from the conversation."""
_OF_USER = frozenset({"days", "private_note"})
"""Sections made from any conversation of the user."""
_OF_CORE_MEMORY = frozenset({"core_memory", "core_memory_changes"})
"""Sections that show core memory."""
_OF_APPLICATION, _A_QUESTION = "instructions", "open_question"
"""Sections that hold words of others whatever the conversation holds."""


def request_of(runtime: "ToolRuntime[OpenTurn, Any]") -> ChangeRequest:
    """Return the request of a tool that changes memory: its user, and its turn."""
    turn = runtime.context
    return ChangeRequest.of_turn(turn, "model", language_of(turn.read.said[-1:]) if turn.read.said else None)


async def note_search(
    archive: Archive, runtime: "ToolRuntime[OpenTurn, Any]", query: str, found: Sequence[FoundEpisode]
) -> None:
    """Log that the turn searched, unless it is temporary. Raises `NotFound` if the user, or the conversation,
    was erased."""
    turn = runtime.context
    if turn.stored:
        ids = [each.id for each in found]
        await archive.note_search(Owner.of_turn(turn), query, ids, Trigger.of_turn(turn, "model"))


_WAITS: dict[Language, str] = {
    "en": "Nothing was changed: these are not the user's own words. It waits as {id}; ask the user about it.",
    "zh": "没有改动：这不是用户自己说的话。已作为待确认事项 {id} 留存，请问一问用户。",
}


async def proposed(
    proposals: Proposals | None,
    runtime: "ToolRuntime[OpenTurn, Any]",
    kind: EditKind,
    text: str,
    replaces: str = "",
    *,
    removes: Sequence[str] = (),
) -> str:
    """Make a change a proposal unless the user's own words ask for it; return the note for the model, or nothing.

    `removes` are the texts of the memories that would go.
    """
    read = runtime.context.read
    rests = asks_to_remove(removes or [text], read) if kind == "forget" else rests_on_user(text, read)
    if proposals is None or rests:
        return ""
    proposal_id = await proposals.add(request_of(runtime), kind, text, replaces)
    return _WAITS[language_of([*read.said[-1:], text])].format(id=proposal_id)


def foreign_texts(turn: OpenTurn, state: ConversationState) -> tuple[str, ...]:
    """Return the words of others that the model read in the turn itself: results, documents, notes, pasted texts,
    and messages of other participants.

    The words in an image are unknown, so a mark stands for them.
    """
    answers, passages = state.get("messages", []), state.get("retrieval_results", [])
    results = [each.text for each in answers if isinstance(each, ToolMessage) and each.name not in _OF_SERVICE]
    documents = [f"{each['document']}\n{each['heading']}\n{each['text']}" for each in passages]
    pasted = turn.message if turn.speaker else foreign_text(turn.message)
    images = [AN_IMAGE] if turn.images or any(map(images_of, answers)) else []
    return (*results, *documents, *turn.input.get("attached", []), *([pasted] if pasted else []), *images)


def is_users(said: HistoryMessage) -> bool:
    """Return whether a message of the conversation was said by the user and by no other participant."""
    return said["role"] == "user" and not said.get("speaker")


async def foreign_items(origins: ForeignOrigins, turn: OpenTurn, state: ConversationState) -> ForeignItems:
    """Find out which of the messages and memories in the prompt hold words of others."""
    sections = state.get("sections", [])
    history, recall = section_named(sections, "history"), section_named(sections, "recall")
    messages = [each.about["message_id"] for each in history.items] if history else []
    episodes = [each.about["episode_id"] for each in recall.items] if recall else []
    try:
        return await origins.among(
            turn.tenant_id,
            turn.user_id,
            conversation_id=turn.conversation_id,
            messages=messages,
            episodes=episodes,
            core_memory=any(each.name in _OF_CORE_MEMORY for each in sections),
        )
    except DatabaseUnavailable:  # without the database everything counts as foreign, and waits
        whole = dict.fromkeys(messages), dict.fromkeys(episodes)
        return ForeignItems(*whole, of_conversation=True, of_user=True, core_memory=None)


def texts_read(
    turn: OpenTurn, state: ConversationState, found: ForeignItems
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the words of others that the model read in the turn itself, and texts made from such words
    earlier."""
    sections = state.get("sections", [])
    history = section_named(sections, "history")
    shown = history.items if history else ()
    return foreign_texts(turn, state), remembered_texts(sections, shown, state.get("messages", []), found)


async def note_repeated(origins: ForeignOrigins, turn: OpenTurn, state: ConversationState) -> None:
    """Note which sentences of the turn's stored answer repeat words of others that its prompt showed. Until this
    is done the whole answer counts as words of others; it also does if the prompt had an image, whose words are
    unknown. Raises `DatabaseUnavailable` if nothing was noted."""
    if state.get("answer_origin") in {None, "operator"}:
        return
    found = await foreign_items(origins, turn, state)
    texts = [each for of in texts_read(turn, state, found) for each in of]
    if AN_IMAGE in texts:
        return
    sections = state.get("sections", [])
    recall = section_named(sections, "recall")
    said = [
        *(own_text(each["content"]) for each in state.get("history", []) if is_users(each)),
        "" if turn.speaker else own_text(turn.message),
        *(_own_of(each, found) for each in sections if each.name in _OF_CORE_MEMORY),
        *(
            item.text
            for item in (recall.items if recall else ())
            if item.about["episode_id"] not in found.episodes
        ),
    ]
    answer, own = without_nul(state["answer"]), foreign_origin(turn, state)
    characters = len(answer) + sum(map(len, texts))
    spans = await beside_the_loop(partial(repeated_spans, answer, texts, said), characters=characters, most=_LONG)
    if spans or own not in {None, "operator"}:
        await origins.note_spans(turn.tenant_id, turn.answer_message_id, spans)
    else:
        await origins.note_origin(turn.tenant_id, turn.answer_message_id, own)


def foreign_origin(turn: OpenTurn, state: ConversationState) -> ForeignOrigin | None:
    """Return the least trusted origin of what the model read in the turn itself; None = nothing foreign."""
    if (
        state.get("retrieval_results")
        or turn.input.get("attached")
        or turn.images
        or section_named(state.get("sections", []), _A_QUESTION)
        or turn.speaker
        or foreign_text(turn.message)
    ):
        return "document"
    if (read := turn.input.get("answer_from")) is not None:
        return read
    answers = state.get("messages", [])
    if any(isinstance(each, ToolMessage) and each.name not in _OF_SERVICE for each in answers):
        return "tool"
    return "operator" if turn.input.get("instructions") else None


def reads_days(state: ConversationState) -> bool:
    """Return whether the model read records of days, or searched what was said; both may hold anything that the
    user ever said."""
    days = state.get("asked_days")
    shown = days is not None and bool(days["summaries"] or days["said"])
    return shown or any(
        isinstance(each, ToolMessage) and each.name in _SEARCHES for each in state.get("messages", [])
    )


def reads_note(state: ConversationState) -> bool:
    """Return whether the model read the expert's last private note, which may repeat words of others."""
    return section_named(state.get("sections", []), "private_note") is not None


def remembered_texts(
    sections: Iterable[Section], history: Sequence[Item], answers: Iterable[AnyMessage], found: ForeignItems
) -> tuple[str, ...]:
    """Return the texts in the prompt that were made from words of others earlier, and the client's own
    instructions.

    Args:
        answers: what the model and its tools have said in this turn.
        found: which of these hold foreign words.
    """
    texts = [_foreign_of(each, each.about["message_id"], found.messages) or _pasted(each) for each in history]
    for section in sections:
        if section.name == "recall":
            texts += [_foreign_of(each, each.about["episode_id"], found.episodes) for each in section.items]
        elif _holds_foreign(section.name, found):
            texts.append("\n".join((section.text, *(each.text for each in section.items))))
    texts += found.core_memory or ()
    if any(_shows_image(each) for each in history):
        texts.append(AN_IMAGE)
    if found.of_user:
        texts += [each.text for each in answers if isinstance(each, ToolMessage) and each.name in _SEARCHES]
    return tuple(filter(None, texts))


def _foreign_of(item: Item, item_id: str, found: Mapping[str, str | None]) -> str:
    """Return the foreign sentences of an item that is shown."""
    if item_id not in found:
        return ""
    whole = item.message.text if item.message is not None else item.text
    return str(found[item_id] or whole)


def _own_of(core_memory: Section, found: ForeignItems) -> str:
    """Return what a section of core memory says without the values that others wrote."""
    text = core_memory.text if found.core_memory is not None else ""
    for each in found.core_memory or ():
        text = text.replace(each, " ")
    return text


def _holds_foreign(section: str, found: ForeignItems) -> bool:
    return (
        section in {_OF_APPLICATION, _A_QUESTION}
        or (section in _OF_CONVERSATION and found.of_conversation)
        or (section in _OF_USER and found.of_user)
        or (section in _OF_CORE_MEMORY and found.core_memory is None)
    )


def _shows_image(item: Item) -> bool:
    content = item.message.content if item.message is not None else ""
    return any(isinstance(part, dict) and part.get("type") == "image_url" for part in content)


def _pasted(item: Item) -> str:
    is_said = item.message is not None and item.message.type == "human"
    return foreign_text(item.message.text) if is_said and item.message is not None else ""
