"""What the load takes for a complete stream."""

import pytest

from benchmarks.stream_check import what_is_wrong

TOKEN = '{"status":"token","content":"ab"}'
DONE = '{"status":"done","content":{"answer":"ab"}}'


def _response(*events: str) -> bytes:
    body = "".join(f"data: {event}\r\n\r\n" for event in events).encode()
    halves = (body[: len(body) // 2], body[len(body) // 2 :])
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(half), half) for half in halves)
    return b"HTTP/1.1 200 OK\r\n\r\n" + chunks + b"0\r\n\r\n"


@pytest.mark.parametrize("events", [(TOKEN, DONE), ('{"token":"a"}', '{"token":"b"}', "[DONE]")])
def test_a_complete_stream_is_nothing_wrong(events: tuple[str, ...]) -> None:
    assert what_is_wrong(_response(*events), "ab") is None


@pytest.mark.parametrize(
    ("events", "says"),
    [
        ((TOKEN,), "ends at []"),
        ((TOKEN, DONE, DONE), "ends at [1, 2]"),
        ((DONE, TOKEN), "ends at [0]"),
        ((TOKEN, TOKEN, DONE), "told 'abab'"),
        ((DONE,), "told ''"),
        ((TOKEN, '{"status":"done","content":{"answer":"abc"}}'), "ended with"),
        ((TOKEN, '{"status":"error","content":{"code":"internal"}}'), "ended with"),
        (('{"token":"a"}', "[DONE]"), "told 'a'"),
    ],
)
def test_what_is_missing_or_too_much_is_said(events: tuple[str, ...], says: str) -> None:
    assert says in (what_is_wrong(_response(*events), "ab") or "")
