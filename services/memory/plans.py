"""Plans of changes of memory, and the words in which users and models are told of them.

A message off the record stays in its conversation, so that the model reads it in every later turn and may repeat
it, and the user may ask about it there. Who asks for something to be forgotten says what it is. What a turn
repeats of either is kept out of memory.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from uuid_utils.compat import uuid7

from services.memory.closure import Removal
from services.memory.model import Memory
from services.memory.remainders import sentences_without
from services.text.language import Language, folded, sentences
from services.text.tokenizer import informative_terms
from state.memory import Candidate, MemoryChange, MemoryChangeKind, PlainForm, PlannedChange, PlannedMessage
from state.turn import OpenTurn

_MOST_ITEMS = 5
_LONGEST = 80

_DONE: dict[Language, dict[MemoryChangeKind, str]] = {
    "en": {
        "forget": "Removed from memory: {items}.",
        "do_not_remember": "Not kept in memory: {items}.",
        "correct": "Corrected in memory: {items}.",
        "remember": "Saved to memory: {items}.",
        "standing": "Saved as a standing wish: {items}.",
    },
    "zh": {
        "forget": "已从记忆中删除：{items}。",
        "do_not_remember": "未记入记忆：{items}。",
        "correct": "已更正记忆：{items}。",
        "remember": "已记住：{items}。",
        "standing": "已记下今后的要求：{items}。",
    },
}
_ALSO: dict[Language, str] = {
    "en": " The message also said this, which went with it: {items}. To keep it, remember it in whole sentences.",
    "zh": "同一条消息里还说了：{items}，已一并移出记忆；若要保留，请用完整的句子重新记住。",
}
_KNOWN: dict[Language, str] = {"en": "Memory holds this already: {items}.", "zh": "记忆里已经有了：{items}。"}
_NOTHING: dict[Language, str] = {
    "en": "Nothing matching “{target}” was found in memory; nothing was changed.",
    "zh": "记忆中没有找到与“{target}”相符的内容，没有改动。",
}
_WHICH: dict[Language, str] = {
    "en": "“{target}” may mean {candidates}; nothing was changed.",
    "zh": "“{target}”可能指{candidates}，没有改动。",
}
_CANDIDATE: dict[Language, str] = {"en": "“{text}” ({id})", "zh": "“{text}”（{id}）"}
_THIS_MESSAGE: dict[Language, str] = {"en": "this message", "zh": "这条消息"}
_CONFIRM: dict[Language, dict[MemoryChangeKind, str]] = {
    "en": {
        "forget": "It is removed. Say so in a few words, without repeating what it was.",
        "do_not_remember": "It is kept out of memory. Say so in a few words.",
        "correct": "It is corrected. Say so in a few words.",
        "remember": "It is saved. Say so in a few words.",
        "standing": "It is saved for all answers to come. Say so in a few words.",
    },
    "zh": {
        "forget": "已经删除。用几个字告诉用户即可，不要复述内容。",
        "do_not_remember": "没有记入记忆。用几个字告诉用户即可。",
        "correct": "已经更正。用几个字告诉用户即可。",
        "remember": "已经存好了，顺口应一声即可。",
        "standing": "已经记下，以后都照办，顺口应一声即可。",
    },
}
_UNCHANGED: dict[Language, str] = {
    "en": "Nothing was changed. Say so, and ask which one is meant if several are listed.",
    "zh": "没有改动。如实告诉用户；若列出了几条，请问用户指的是哪一条。",
}
_THEN: dict[Language, str] = {
    "en": "Then answer whatever else the message asks.",
    "zh": "消息里若还有别的问题，再接着回答。",
}


def summary_of(
    kind: MemoryChangeKind, items: Sequence[str], language: Language, *, also: Sequence[str] = ()
) -> str:
    """Say what was changed, and what else the removed messages said."""
    shown = list(map(_named, items[:_MOST_ITEMS]))
    more = len(items) - len(shown)
    if more > 0:
        shown.append(f"+{more}")
    summary = _DONE[language][kind].format(items=_listed(shown, language))
    if also:
        summary += _ALSO[language].format(items=_listed(map(_shortened, also[:_MOST_ITEMS]), language))
    return summary


def told_changes(logged: Sequence[Mapping[str, Any]], language: Language) -> tuple[list[MemoryChange], list[UUID]]:
    """Return what filing changed as a turn tells it, and the ids of all of it.

    What was removed since is not named. `logged` has for each operation its `id`, `kind`, what was `named`, its
    `items`, and what is `gone` since.
    """
    told = []
    for each in logged:
        named = [each["named"]] if each["kind"] == "correct" and each["named"] else list(each["items"] or ())
        gone = {folded(text) for items in each["gone"] or () for text in items or ()}
        if named and gone.isdisjoint(map(folded, (*named, *(each["items"] or ())))):
            told.append(
                MemoryChange(
                    kind=each["kind"],
                    summary=summary_of(each["kind"], named, language),
                    operation_id=each["id"],
                    items=named,
                    made_by="filing",
                )
            )
    return told, [UUID(each["id"]) for each in logged]


def known_already(text: str, language: Language) -> str:
    """Say that memory holds a text, so that nothing had to change."""
    return _KNOWN[language].format(items=_named(text))


def note_for_model(changes: Sequence[MemoryChange], language: Language) -> str:
    """Return what the prompt says of the changes that this turn has made; empty where there are none.

    Their summaries stand between tags, which they must not be able to close.
    """
    if not changes:
        return ""
    done = dict.fromkeys(change["summary"] for change in changes)
    confirm = dict.fromkeys(
        _CONFIRM[language][change["kind"]] if change["operation_id"] else _UNCHANGED[language]
        for change in changes
    )
    return "\n".join(["<memory_changes>", *done, "</memory_changes>", *confirm, _THEN[language]])


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"


def _named(text: str) -> str:
    return _shortened(text).rstrip(" .。;；")


def _listed(items: Iterable[str], language: Language) -> str:
    return ("；" if language == "zh" else "; ").join(items)


def new_plan(
    kind: MemoryChangeKind, summary: str, items: Sequence[str] = (), *, target: str = "", has_changes: bool = True
) -> PlannedChange:
    """Return a plan that changes nothing yet; without `has_changes` it never will.

    `items` = what is removed, kept or corrected, in brief; `target` = what the user named, for the log.
    """
    operation_id = str(uuid7()) if has_changes else None
    return PlannedChange(
        change=MemoryChange(kind=kind, summary=summary, operation_id=operation_id, items=list(items)),
        target=target,
        messages=[],
        episodes=[],
        items=[],
        written=[],
        own="keep",
        own_text=None,
        removed="",
        reaches_shared=False,
    )


def plan_of(
    kind: MemoryChangeKind, target: str, language: Language, gone: Removal, *, summary: str = ""
) -> PlannedChange:
    """Return the plan by which something goes; a correction changes something in any case."""
    also = gone.also
    told = summary or summary_of(kind, gone.told or [target], language, also=also)
    plan = new_plan(kind, told, gone.told, target=target, has_changes=bool(gone) or kind == "correct")
    if also:
        plan["change"]["also_said"] = list(also)
    plan["messages"] = [
        PlannedMessage(message_id=str(key), memory_text=text) for key, text in gone.messages.items()
    ]
    plan["episodes"], plan["items"] = gone.episodes, gone.items
    plan["removed"] = " ".join([*gone.told, *also])
    plan["reaches_shared"] = kind == "forget"
    return plan


def plan_of_nothing(
    kind: MemoryChangeKind, target: str, candidates: Sequence[Memory], language: Language
) -> PlannedChange:
    """Return the plan that changes nothing, as nothing, or more than one thing, may be meant."""
    shown = [_CANDIDATE[language].format(text=_named(each.text), id=each.id) for each in candidates]
    told = _WHICH[language] if candidates else _NOTHING[language]
    told = told.format(target=_shortened(target), candidates=_listed(shown, language))
    plan = new_plan(kind, told, target=target, has_changes=False)
    if candidates:
        plan["change"]["candidates"] = [Candidate(id=each.id, text=each.text) for each in candidates]
    return plan


def plan_of_leaving_out(form: PlainForm) -> PlannedChange:
    """Return the plan by which the turn itself is not remembered."""
    plan = _plan_of_not_keeping(form.language)
    plan["own"] = "off the record" if form.kind == "off_record" else "leave out"
    return plan


def _plan_of_not_keeping(language: Language) -> PlannedChange:
    this = [_THIS_MESSAGE[language]]
    return new_plan("do_not_remember", summary_of("do_not_remember", this, language), this)


def own_once(planned: list[PlannedChange]) -> list[PlannedChange]:
    """Leave the turn itself out once, by the change that keeps the least of it."""
    order = {"keep": 0, "leave out": 1, "off the record": 2}
    effective = [each for each in planned if each["change"]["operation_id"]]
    decides = max(effective, key=lambda each: order[each["own"]], default=None)
    for each in planned:
        if each is not decides:
            each["own"] = "keep"
    return planned


def repetition(
    turn: OpenTurn, answer: str, said: Sequence[str], language: Language, *, off_record: bool
) -> list[PlannedChange]:
    """Return the change that leaves out what a turn repeats of what was forgotten, or `off_record`; often none.

    Of the answer every sentence goes that shares an informative word with it, and of the message, too; off the
    record only questions of the message: what the user states again may be remembered.
    """
    if not said:
        return []
    words = " ".join(said)
    message = _without_questions(turn.message, words) if off_record else sentences_without(turn.message, words)
    left = (
        (turn.user_message_id, turn.message, message),
        (turn.answer_message_id, answer, sentences_without(answer, words)),
    )
    messages = [
        PlannedMessage(message_id=str(message_id), memory_text=kept or None, off_record=off_record)
        for message_id, text, kept in left
        if kept != text.strip()
    ]
    if not messages:
        return []
    plan = _plan_of_not_keeping(language)
    plan["messages"] = messages
    return [plan]


def _without_questions(message: str, said: str) -> str:
    words = informative_terms(said)
    kept = (
        each.text for each in sentences(message) if not each.asks or words.isdisjoint(informative_terms(each.text))
    )
    return "".join(kept).strip()
