import dataclasses
import re
from pathlib import Path

from state.conversation import ConversationState
from state.turn import OpenTurn, TurnInput

ROOT = Path(__file__).parents[2]
READERS = "\n".join(
    path.read_text(encoding="utf-8")
    for package in ("api", "graph", "nodes", "services")
    for path in (ROOT / package).rglob("*.py")
)


def test_every_key_of_the_state_is_read_somewhere() -> None:
    read = set(re.findall(r"""(?:\[|\.get\()["'](\w+)["']""", READERS))
    assert {*ConversationState.__annotations__, *TurnInput.__annotations__} <= read


def test_every_field_of_the_turn_is_read_somewhere() -> None:
    fields = {field.name for field in dataclasses.fields(OpenTurn)}
    assert fields <= set(re.findall(r"turn\.(\w+)", READERS))
