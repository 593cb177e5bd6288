"""Columns that hold users' words, each with the way in which statements seal it; seals what was stored in clear.

Everything here works on the text form of a column, and leaves alone what is sealed already.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from services.encryption.data_key import DIGEST_BYTES, DIGEST_MARK, TOKEN, DataKey
from services.encryption.marks import is_id

Way = Callable[[str, DataKey, Mapping[str, Any]], str]
"""Returns a column's text form sealed with a key; the row's other columns say how, where that depends on them."""

_CLEAR_IN_REPORTS = ("parts", "strategy", "epoch_reason", "digest", "section", "reason", "left_out")
_CLEAR_IN_OPERATIONS = ("actor", "by", "call", "state")
_WHOLE_IN_VERSIONS = frozenset({"content", "memory_text", "summary"})
_KEY_DIGITS = len("sha256:") + 64
"""Length of an import's key before it is replaced."""


def _is_token(text: object) -> bool:
    return isinstance(text, str) and TOKEN.fullmatch(text) is not None


def _text(content: str, key: DataKey, _: Mapping[str, Any]) -> str:
    return content if _is_token(content) else key.seal_text(content)


def _whole(content: str, key: DataKey, _: Mapping[str, Any]) -> str:
    value = json.loads(content)
    return content if _is_token(value) else json.dumps(key.seal_json(value))


def _leaves_but(*clear: str) -> Way:
    def way(content: str, key: DataKey, _: Mapping[str, Any]) -> str:
        return json.dumps(_leaves(json.loads(content), key, frozenset(clear)), ensure_ascii=False)

    return way


def _leaves(value: Any, key: DataKey, clear: frozenset[str]) -> Any:
    if isinstance(value, str):
        return value if is_id(value) or _is_token(value) else key.seal_text(value)
    if isinstance(value, dict):
        return {name: each if name in clear else _leaves(each, key, clear) for name, each in value.items()}
    if isinstance(value, list):
        return [_leaves(each, key, clear) for each in value]
    return value


def _by_key(content: str, key: DataKey, _: Mapping[str, Any]) -> str:
    value = json.loads(content)
    return json.dumps({name: each if _is_token(each) else key.seal_json(each) for name, each in value.items()})


def _digest(content: str, key: DataKey, _: Mapping[str, Any]) -> str:
    digest = bytes.fromhex(content.removeprefix("\\x"))
    return content if digest.startswith(DIGEST_MARK) else "\\x" + key.seal_digest(digest[:DIGEST_BYTES]).hex()


def _import_key(content: str, key: DataKey, _: Mapping[str, Any]) -> str:
    is_clear = content.startswith("sha256:") and len(content) == _KEY_DIGITS
    return f"sha256:{key.fingerprint(content)}" if is_clear else content


def _of_operation(content: str, key: DataKey, row: Mapping[str, Any]) -> str:
    """Seal a value of the log: of a change of core memory as a whole, of others its texts."""
    if str(row["type"]).startswith("core_memory_"):
        return _whole(content, key, row)
    return _leaves_but(*_CLEAR_IN_OPERATIONS)(content, key, row)


def _version(content: str, key: DataKey, _: Mapping[str, Any]) -> str:
    """Seal what a row was: its columns with words, as they are sealed in the row itself."""
    was = json.loads(content)
    for name, value in was.items():
        if name in _WHOLE_IN_VERSIONS and isinstance(value, str) and not _is_token(value):
            was[name] = key.seal_text(value)
        elif name == "key_topics":
            was[name] = _leaves(value, key, frozenset())
    return json.dumps(was, ensure_ascii=False)


WAYS: Mapping[str, Mapping[str, Way]] = {
    "conversations": {"title": _text},
    "messages": {
        "content": _text,
        "parts": _whole,
        "speaker": _text,
        "memory_text": _text,
        "inner_voice": _whole,
        "digest": _digest,
        "import_key": _import_key,
    },
    "turns": {
        "request": _leaves_but("answer_external_id"),
        "route_decision": _whole,
        "context_report": _leaves_but(*_CLEAR_IN_REPORTS),
        "prompt": _whole,
        "memory_changes": _whole,
    },
    "conversation_summaries": {"summary": _text},
    "summary_parts": {"summary": _text},
    "topics": {"title": _text, "summary": _text, "keywords": _leaves_but()},
    "context_epochs": {
        "summary": _text,
        "topics": _whole,
        "prefix": _whole,
        "core_memory": _by_key,
        "persona_card": _text,
    },
    "core_memory_blocks": {"content": _whole},
    "core_memory_pins": {"digest": _digest},
    "core_memory_history": {"old": _whole, "new": _whole},
    "episodes": {"content": _text},
    "memory_operations": {
        "query": _text,
        "results": _leaves_but(*_CLEAR_IN_OPERATIONS),
        "trigger": _leaves_but(*_CLEAR_IN_OPERATIONS),
        "old_value": _of_operation,
        "new_value": _of_operation,
    },
    "visits": {"summary": _text, "key_topics": _leaves_but()},
    "daily_summaries": {"summary": _text, "key_topics": _leaves_but()},
    "forgotten_words": {"digest": _digest},
    "feedback": {"comment": _text, "tags": _leaves_but()},
    "memory_versions": {"was": _version},
}
"""Tables with users' words, and the way of each column."""


def sealed_columns(table: str, row: Mapping[str, Any], key: DataKey) -> dict[str, str]:
    """Return those columns of a row, in their text form, that change when the row is sealed."""
    changed = {}
    for name, way in WAYS[table].items():
        content = row[name]
        if content is not None and _differs(content, again := way(content, key, row)):
            changed[name] = again
    return changed


def _differs(before: str, after: str) -> bool:
    if before == after:
        return False
    try:  # the same JSON, written otherwise
        return bool(json.loads(before) != json.loads(after))
    except ValueError:
        return True
