from hypothesis import given
from hypothesis import strategies as st

from services.llm.sending import EventData
from tests.services.llm.clients import cut_at
from tests.services.llm.recorded import BODIES

BODY = st.sampled_from([body for bodies in BODIES.values() for body in bodies.values()])


def collected(pieces: list[bytes]) -> list[bytes]:
    data = EventData()
    return [event for piece in pieces for event in data.feed(piece)] + data.end()


def test_data_of_an_event_comes_when_its_blank_line_does() -> None:
    data = EventData()

    assert data.feed(b'data: {"a": 1}\n') == []
    assert data.feed(b'\ndata: {"b"') == [b'{"a": 1}']
    assert data.feed(b": 2}\n\n") == [b'{"b": 2}']
    assert data.end() == []


def test_event_names_ids_and_comments_are_passed_over() -> None:
    assert collected([b": hello\nevent: ping\nid: 7\nretry: 10\n\n: ping\n\nevent: x\ndata: 1\nid: 8\n\n"]) == [
        b"1"
    ]


def test_several_data_lines_are_one_event() -> None:
    assert collected([b"data: {\ndata:  1\ndata:\ndata:}\n\n"]) == [b"{\n 1\n\n}"]


def test_carriage_returns_before_line_ends_are_dropped_wherever_they_are_cut() -> None:
    assert collected([b"data: 1\r", b"\n\r", b"\ndata: 2\r\n\r\n"]) == [b"1", b"2"]


def test_carriage_returns_alone_end_lines_wherever_they_are_cut() -> None:
    body = b"data: 1\r\rdata: {\rdata: 2}\r\rdata: [DONE]\r\r"
    for size in range(1, len(body) + 1):
        cut = [body[at : at + size] for at in range(0, len(body), size)]
        assert collected(cut) == [b"1", b"{\n2}", b"[DONE]"], size


def test_last_event_needs_no_blank_line() -> None:
    assert collected([b"data: 1\n\ndata: 2"]) == [b"1", b"2"]
    assert collected([b"data: 1\n\ndata: 2\n"]) == [b"1", b"2"]


def test_empty_stream_has_no_events() -> None:
    assert collected([]) == []
    assert collected([b"\n\n\r\n\n"]) == []


@given(BODY, st.lists(st.integers(min_value=0), max_size=40), st.sampled_from([b"\n", b"\r\n", b"\r"]))
def test_cuts_make_no_difference(body: bytes, places: list[int], line_end: bytes) -> None:
    body = body.replace(b"\n", line_end)
    assert collected(cut_at(body, places)) == collected([body])


@given(st.lists(st.text().map(lambda text: text.replace("\n", " ").replace("\r", " "))), st.integers(1, 9))
def test_any_text_comes_through_whole(texts: list[str], size: int) -> None:
    body = "".join(f"data: {text}\n\n" for text in texts).encode()

    assert collected([body[at : at + size] for at in range(0, len(body), size)]) == [t.encode() for t in texts]
