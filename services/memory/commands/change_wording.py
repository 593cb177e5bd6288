"""Changes of memory in words for the model and the caller, in the language of the message. Pure functions."""

from collections.abc import Sequence

from services.text.language import Language
from state.memory import MemoryChange, MemoryChangeKind

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
_NOTHING: dict[Language, str] = {
    "en": "Nothing matching “{target}” was found in memory; nothing was changed.",
    "zh": "记忆中没有找到与“{target}”相符的内容，没有改动。",
}
_WHICH: dict[Language, str] = {
    "en": "It is not clear which memory “{target}” means; nothing was changed. Ask whether it is {candidates}.",
    "zh": "不确定“{target}”指的是哪条记忆，没有改动。请问用户是不是指{candidates}。",
}
_THIS_MESSAGE: dict[Language, str] = {"en": "this message", "zh": "这条消息"}
_EXCHANGE: dict[Language, str] = {"en": "the previous exchange", "zh": "上一轮对话"}
_ASKED: dict[Language, dict[MemoryChangeKind, str]] = {
    "en": {
        "forget": "The user asked to forget something.",
        "do_not_remember": "The user asked not to remember this.",
        "correct": "The user corrected something.",
        "remember": "The user asked to remember something.",
        "standing": "The user stated a standing wish.",
    },
    "zh": {
        "forget": "用户要求忘掉一些内容。",
        "do_not_remember": "用户要求不要记住这些内容。",
        "correct": "用户更正了之前说的内容。",
        "remember": "用户要求记住一件事。",
        "standing": "用户提出了今后一直有效的要求。",
    },
}
_CONFIRM: dict[Language, str] = {
    "en": "Confirm this in one short sentence, without repeating what was removed; then answer whatever else "
    "the message asks.",
    "zh": "请用一句简短的话确认，不要复述被删除的内容；消息里若还有别的问题，再接着回答。",
}


def nothing_found(target: str, candidates: Sequence[str], language: Language) -> str:
    """One sentence that says that nothing was changed, and which memories may have been meant."""
    if not candidates:
        return _NOTHING[language].format(target=shortened(target))
    shown = ("；" if language == "zh" else "; ").join(
        f"“{shortened(each).rstrip(' .。;；')}”" for each in candidates
    )
    return _WHICH[language].format(target=shortened(target), candidates=shown)


def summary_of(kind: MemoryChangeKind, items: Sequence[str], language: Language) -> str:
    """One sentence that says what was changed."""
    shown = [shortened(item).rstrip(" .。;；") for item in items[:_MOST_ITEMS]]
    more = len(items) - len(shown)
    if more > 0:
        shown.append(f"+{more}")
    return _DONE[language][kind].format(items=("；" if language == "zh" else "; ").join(shown))


def this_message(language: Language) -> str:
    """What stands for the present message."""
    return _THIS_MESSAGE[language]


def previous_exchange(language: Language) -> str:
    """What stands for the exchange before it."""
    return _EXCHANGE[language]


def note_for_model(changes: Sequence[MemoryChange], language: Language) -> str:
    """What the prompt says of the changes that this turn makes; empty where there are none.

    Their summaries stand between tags, which they must not be able to close.
    """
    if not changes:
        return ""
    asked = dict.fromkeys(_ASKED[language][change["kind"]] for change in changes)
    done = dict.fromkeys(change["summary"] for change in changes)
    return "\n".join([*asked, "<memory_changes>", *done, "</memory_changes>", _CONFIRM[language]])


def shortened(text: str) -> str:
    """A text as a list shows it."""
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"
