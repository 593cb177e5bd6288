"""Errors that endpoints report inside a response with status 200, in the shapes in which they do."""

from collections.abc import Mapping
from typing import Any

_CODES = ("code", "error_code", "errcode", "status_code", "status")
_TEXTS = ("message", "error_msg", "errmsg", "msg", "detail", "status_msg")
_GOOD: frozenset[object] = frozenset({None, "", 0, "0", 200, "200", "success", "ok"})


class AnswerFailed(ValueError):
    """The endpoint says, in a response with status 200, that it failed."""

    def __init__(self, body: Any) -> None:
        """Take what it says."""
        super().__init__("The endpoint reports an error inside its answer.")
        self.body = body


def refuse_fault(event: Mapping[str, Any]) -> None:
    """Raise what the event reports, if that is an error, as `AnswerFailed`."""
    if error := event.get("error"):
        raise AnswerFailed(error)
    if event.get("choices") or event.get("output"):
        return
    # MiniMax puts the outcome of every call here; DashScope, Baidu, SiliconFlow and vLLM use the event itself.
    for body in (event.get("base_resp"), event):
        if isinstance(body, Mapping) and _is_fault(body):
            raise AnswerFailed(dict(body))
    if _only_says(event):
        raise AnswerFailed(dict(event))


def _only_says(event: Mapping[str, Any]) -> bool:
    """Return whether an event has a message instead of an answer."""
    if "choices" in event or "object" in event or "id" in event:
        return False
    return any(isinstance(event.get(name), str) and event[name] for name in ("message", "detail", "error_msg"))


def _is_fault(body: Mapping[str, Any]) -> bool:
    if body.get("object") == "error" or body.get("success") is False:
        return True
    said = any(isinstance(body.get(name), str) and body[name] for name in _TEXTS)
    return said and any(_is_bad(body.get(name)) for name in _CODES)


def _is_bad(code: object) -> bool:
    if isinstance(code, str):
        return code.strip().lower() not in _GOOD
    return isinstance(code, int) and code not in _GOOD
