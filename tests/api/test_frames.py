import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.streams import sse_frames, ws_frame
from state.events import TurnEvent
from tests.support.service_process import events_of
from tests.support.turns import some_uuid

pytestmark = pytest.mark.untraced


@given(st.lists(st.text(max_size=40), max_size=5))
def test_what_is_sent_is_what_arrives_whatever_the_text(texts: list[str]) -> None:
    events = [TurnEvent(number, "token", text) for number, text in enumerate(texts, 1)]
    lines = iter(sse_frames(events).decode().split("\n"))
    assert list(events_of(lines)) == [(number, "token", text) for number, text in enumerate(texts, 1)]


def test_a_frame_is_lean() -> None:
    frame = sse_frames([TurnEvent(12, "token", "你好")])
    assert frame == 'id: 12\nevent: token\ndata: {"status":"token","content":"你好"}\n\n'.encode()


def test_a_socket_frame_names_its_turn() -> None:
    frame = json.loads(ws_frame(TurnEvent(3, "token", "a\nb"), some_uuid(1)))
    assert frame == {"id": 3, "status": "token", "content": "a\nb", "turn_id": str(some_uuid(1))}
    assert json.loads(ws_frame(TurnEvent(1, "error", {}), None))["turn_id"] is None
