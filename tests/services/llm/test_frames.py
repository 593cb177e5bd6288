"""Server-sent events, however their lines end and wherever the network cuts them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.llm.sending import EventData
from tests.services.llm.clients import cut_at
from tests.services.llm.streams.families import CHAT, RESPONSES


def collected(pieces: list[bytes]) -> list[bytes]:
    data = EventData()
    return [event for piece in pieces for event in data.feed(piece)] + data.end()


@pytest.mark.parametrize(
    ("body", "events"),
    [
        (b": hello\nevent: ping\nid: 7\nretry: 10\n\n: ping\n\nevent: x\ndata: 1\nid: 8\n\n", [b"1"]),
        (b"data: {\ndata:  1\ndata:\ndata:}\n\n", [b"{\n 1\n\n}"]),
        (b"data: 1\n\ndata: 2", [b"1", b"2"]),
    ],
    ids=["comments, names and ids", "several data lines", "no blank line at the end"],
)
@pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\r"])
def test_data_of_events_is_read_wherever_they_are_cut(body: bytes, events: list[bytes], line_end: bytes) -> None:
    dressed = body.replace(b"\n", line_end)
    for size in range(1, len(dressed) + 1):
        assert collected([dressed[at : at + size] for at in range(0, len(dressed), size)]) == events, size


@given(
    st.sampled_from([family.raw for families in (CHAT, RESPONSES) for family in families.values()]),
    st.lists(st.integers(min_value=0), max_size=40),
    st.sampled_from([b"\n", b"\r\n", b"\r"]),
)
def test_cuts_make_no_difference(body: bytes, places: list[int], line_end: bytes) -> None:
    body = body.replace(b"\n", line_end)
    assert collected(cut_at(body, places)) == collected([body])
