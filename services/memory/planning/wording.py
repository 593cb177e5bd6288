"""The words in which users and models are told about changes of memory."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from uuid_utils.compat import uuid7

from services.memory.model import Memory
from services.memory.reading.words import says
from services.text.language import Language, language_of
from state.memory import Candidate, MemoryChange, MemoryChangeKind

_MOST_ITEMS = 5
_LONGEST = 80

_DONE: dict[Language, dict[MemoryChangeKind, str]] = {
    "en": {
        "forget": "Removed from memory: {items}.",
        "do_not_remember": "Not kept in memory: {items}.",
        "correct": "Corrected in memory: {items}.",
        "remember": "Saved to memory: {items}.",
        "standing": "Saved as a standing wish: {items}.",
        "promise": "Promised: {items}.",
        "called_off": "Called off, as the day is not known any more: {items}.",
        "quiet_hours": "Nothing is said unasked: {items}.",
    },
    "zh": {
        "forget": "已从记忆中删除：{items}。",
        "do_not_remember": "未记入记忆：{items}。",
        "correct": "已更正记忆：{items}。",
        "remember": "已记住：{items}。",
        "standing": "已记下今后的要求：{items}。",
        "promise": "已约定：{items}。",
        "called_off": "日子已不确定，约定取消：{items}。",
        "quiet_hours": "免打扰：{items}。",
    },
}
_ALSO: dict[Language, str] = {
    "en": "“{target}” stands in one sentence with something else: {items}. Nothing was changed.",
    "zh": "“{target}”和别的内容在同一句话里：{items}。没有改动。",
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
_LEFT: dict[Language, str] = {"en": " Still in memory: {candidates}.", "zh": "记忆里还有{candidates}。"}
_CANDIDATE: dict[Language, str] = {"en": "“{text}” ({id})", "zh": "“{text}”（{id}）"}
_THIS_MESSAGE: dict[Language, str] = {"en": "this message", "zh": "这条消息"}
_LAST_MESSAGE: dict[Language, str] = {"en": "what was said", "zh": "刚才的话"}
_CONFIRM: dict[Language, dict[MemoryChangeKind, str]] = {
    "en": {
        "forget": "It is removed. Say so in a few words, without repeating what it was.",
        "do_not_remember": "It is kept out of memory. Say so in a few words.",
        "correct": "It is corrected. Say so in a few words.",
        "remember": "It is saved. Say so in a few words.",
        "standing": "It is saved for all answers to come. Say so in a few words.",
        "promise": "You will say so by yourself then. Confirm the moment in a few words.",
        "called_off": "It is called off. Say so in a few words.",
        "quiet_hours": "It is set. Say so in a few words.",
    },
    "zh": {
        "forget": "已经删除。用几个字告诉用户即可，不要复述内容。",
        "do_not_remember": "没有记入记忆。用几个字告诉用户即可。",
        "correct": "已经更正。用几个字告诉用户即可。",
        "remember": "已经存好了，顺口应一声即可。",
        "standing": "已经记下，以后都照办，顺口应一声即可。",
        "promise": "到时你会自己提起。用几个字确认时间即可。",
        "called_off": "已经取消。用几个字告诉用户即可。",
        "quiet_hours": "已经设好。用几个字告诉用户即可。",
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
    kind: MemoryChangeKind, items: Sequence[str], language: Language, *, shown: Sequence[str] = ()
) -> MemoryChange:
    """Return the sentence that reports a change.

    Args:
        kind: Kind of the change.
        items: Texts that are removed, kept or corrected.
        language: Language of the sentence.
        shown: Words that stand in place of the items.
    """
    return _change(kind, told(kind, shown or items, language), items, operation_id=str(uuid7()))


def told(kind: MemoryChangeKind, items: Sequence[str], language: Language) -> str:
    """Return one sentence that says what was changed."""
    named = list(map(_named, items[:_MOST_ITEMS]))
    more = len(items) - len(named)
    if more > 0:
        named.append(f"+{more}")
    return _DONE[language][kind].format(items=_listed(named, language))


def told_changes(logged: Sequence[Mapping[str, Any]], language: Language) -> tuple[list[MemoryChange], list[UUID]]:
    """Return the changes that filing made, in the form in which a turn reports them, and the ids of all their
    operations.

    Whatever was removed since is not named. Each entry of `logged` has an `id`, a `kind`, the `named` words, its
    `items`, and those that are `gone` since.
    """
    changes = []
    for each in logged:
        named = [each["named"]] if each["kind"] == "correct" and each["named"] else list(each["items"] or ())
        gone = [text for items in each["gone"] or () for text in items or ()]
        went = [text for text in (*named, *(each["items"] or ())) if any(says(one, text) for one in gone)]
        if named and not went:
            change = _change(each["kind"], told(each["kind"], named, language), named, operation_id=each["id"])
            change["made_by"] = "filing"
            changes.append(change)
    return changes, [UUID(each["id"]) for each in logged]


def ended(text: str, on: str) -> str:
    """Return a statement with the day, month or year until which it held."""
    return f"{text}（到{on}为止）" if language_of([text]) == "zh" else f"{text} (until {on})"


def this_message(language: Language) -> MemoryChange:
    """Return the change that keeps a message out of memory."""
    return summary_of("do_not_remember", [_THIS_MESSAGE[language]], language)


def known_already(kind: MemoryChangeKind, text: str, language: Language) -> MemoryChange:
    """Say that memory holds a text, so that nothing had to change."""
    return _change(kind, _KNOWN[language].format(items=_named(text)), [text])


def not_clear(
    kind: MemoryChangeKind, target: str, candidates: Sequence[Memory], language: Language
) -> MemoryChange:
    """Return the answer that nothing was changed, because nothing, or more than one thing, may be meant."""
    form = _WHICH[language] if candidates else _NOTHING[language]
    shown = _candidates(candidates, language)
    change = _change(kind, form.format(target=_shortened(target or _LAST_MESSAGE[language]), candidates=shown))
    if candidates:
        change["candidates"] = _whole(candidates)
    return change


def with_left(change: MemoryChange, left: Sequence[Memory], language: Language) -> MemoryChange:
    """Return a change that also lists what has the words of what was removed and stays."""
    if not left:
        return change
    summary = change["summary"] + _LEFT[language].format(candidates=_candidates(left[:_MOST_ITEMS], language))
    return {**change, "summary": summary, "candidates": _whole(left[:_MOST_ITEMS])}


def of_one_sentence(
    kind: MemoryChangeKind, target: str, shared: Sequence[str], memories: Sequence[Memory], language: Language
) -> MemoryChange:
    """Return the answer that nothing was changed, because what is named stands in one sentence with something
    else."""
    change = _change(
        kind,
        _ALSO[language].format(
            target=_shortened(target), items=_listed(map(_shortened, shared[:_MOST_ITEMS]), language)
        ),
    )
    change["also_said"] = list(shared)
    change["candidates"] = _whole(memories[:_MOST_ITEMS])
    return change


def _whole(memories: Sequence[Memory]) -> list[Candidate]:
    """Return memories with their whole texts, since an id names a whole text."""
    return [Candidate(id=each.id, text=each.text if each.is_whole else each.within) for each in memories]


def _change(
    kind: MemoryChangeKind, summary: str, items: Sequence[str] = (), *, operation_id: str | None = None
) -> MemoryChange:
    return MemoryChange(kind=kind, summary=summary, operation_id=operation_id, items=list(items))


def _candidates(candidates: Sequence[Memory], language: Language) -> str:
    """List the candidates. A clause is listed without its id, because the id would take the whole message."""
    named = [
        _CANDIDATE[language].format(text=_named(each.text), id=each.id)
        if each.is_whole
        else f"“{_named(each.text)}”"
        for each in candidates
    ]
    return _listed(dict.fromkeys(named), language)


def note_for_model(changes: Sequence[MemoryChange], language: Language) -> str:
    """Return the part of the prompt that tells the changes this turn has made; empty if there are none. The
    summaries stand between tags, which they cannot close."""
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
