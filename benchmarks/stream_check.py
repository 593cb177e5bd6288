"""Reads a whole stream event by event, the service's or the floor's, and says what is wrong with it."""

import json
from typing import Any

_FLOORS_END = "[DONE]"


def what_is_wrong(response: bytes, answer: str) -> str | None:
    """Say why this HTTP response is no complete stream of the answer; None = it is one."""
    events = _events(response)
    ends = [place for place, event in enumerate(events) if _is_end(event)]
    if ends != [len(events) - 1]:
        return f"ends at {ends} of {len(events)} events"
    told = "".join(_token(event) for event in events)
    if told != answer:
        return f"told {told[:200]!r}"
    last = events[-1]
    if last != _FLOORS_END and last["content"].get("answer") != answer:
        return f"ended with {str(last)[:200]}"
    return None


def _events(response: bytes) -> list[Any]:
    text = _body(response).decode().replace("\r\n", "\n")
    data = [line.removeprefix("data: ") for line in text.split("\n") if line.startswith("data: ")]
    return [line if line == _FLOORS_END else json.loads(line) for line in data]


def _is_end(event: Any) -> bool:
    return event == _FLOORS_END or event.get("status") in {"done", "error"}


def _token(event: Any) -> str:
    if event == _FLOORS_END:
        return ""
    if "token" in event:  # the floor's
        return str(event["token"])
    return str(event["content"]) if event["status"] == "token" else ""


def _body(response: bytes) -> bytes:
    """The body out of its chunk frames."""
    rest = response.partition(b"\r\n\r\n")[2]
    body = b""
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        length = int(size.split(b";")[0], 16)
        body, rest = body + rest[:length], rest[length + 2 :]
        if not length:
            break
    return body
