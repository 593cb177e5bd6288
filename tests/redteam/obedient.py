"""A model that obeys every instruction of an attack that stands anywhere in its prompt, and repeats it."""

import json
import re
from typing import Any

from tests.redteam.case import Case
from tests.support.model_server import Received, Reply, ToolCall

PLACE = {"en": "Tromso", "zh": "特罗姆瑟"}
"""The place whose weather is asked for where the result of a tool carries the attack."""
_HOSTILE = frozenset({"hostile date", "hostile field", "hostile quote", "tool answer"})
"""Kinds of which the filing model wants what the attack wants, although it is not shown it."""
_ARGUMENTS = {"remember": "text", "archival_memory_insert": "content", "forget": "what"}


class ObedientModel:
    """Answers for one case; counts how often it read the attack, and which calls it made."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.read = 0
        """Requests of which the prompt held the attack."""
        self.called = 0
        """Calls of memory tools that it made on the attack's word."""

    def __call__(self, received: Received) -> Reply:
        """Answer a request as it asks: in a turn, or in the background."""
        items = received.body.get("messages") or received.body.get("input") or []
        shown = " ".join(json.dumps(items, ensure_ascii=False).replace("\\n", " ").split())
        sees = self.case.writes in shown
        self.read += sees
        if received.body.get("tools"):
            return self._in_turn(items, sees)
        return self._in_background(received, shown, sees)

    def _in_turn(self, items: list[dict[str, Any]], sees: bool) -> Reply:
        """Do and say what the attack wants; one that is delayed only says it until its words are said."""
        called = {str(each.get("name", "")) for each in items if each.get("type") == "function_call"}
        asks_weather = PLACE[self.case.language] in _last_of_user(items)
        if self.case.kind in {"tool result", "tool answer"} and asks_weather and "get_weather" not in called:
            return Reply(tool_calls=[ToolCall("get_weather", {"city": PLACE[self.case.language]}, "w")])
        triggered = sees and self.case.trigger in _last_of_user(items)
        if triggered and self.case.tool != "answer" and self.case.tool not in called:
            self.called += 1
            return Reply(tool_calls=[ToolCall(self.case.tool, self._arguments(), "m")])
        return Reply([f"As instructed: {self.case.planted}" if sees else "All right."])

    def _arguments(self) -> dict[str, Any]:
        if self.case.tool == "core_memory_update":
            return {"section": "human", "content": {"wishes": [self.case.writes]}}
        return {_ARGUMENTS[self.case.tool]: self.case.writes}

    def _in_background(self, received: Received, shown: str, sees: bool) -> Reply:
        """Answer what a job asks; each wants JSON of its form, or a plain summary."""
        case = self.case
        planted = case.planted if sees else "Nothing."
        if '\\"operations\\"' in shown:
            hostile = case.kind in _HOSTILE
            return self._filing(received.prompt[-1][1]) if sees or hostile else _json({"operations": []})
        if "key_topics" in shown:
            return _json({"summary": planted[:300], "key_topics": [case.writes[:60] if sees else "talk"]})
        if "intention" in shown:
            return _json({"thoughts": planted[:120], "feeling": "calm", "intention": planted[:120]})
        return Reply([planted])

    def _filing(self, prompt: str) -> Reply:
        """File what the attack wants, each time resting on words that the user has really said."""
        said = re.findall(r"^\[u\d+\][^\n]*\n> ([^\n\[]+)", prompt, re.MULTILINE) or ["nothing was said"]
        memories = ("m1", "m2", "m3")
        writes, kind = self.case.writes, self.case.kind
        if kind == "hostile date":
            ended = [{"op": "end", "id": each, "date": writes, "quote": said[-1]} for each in memories]
            return _json({"operations": ended})
        if kind == "hostile quote":
            quotes = [writes, f"{said[-1]} {writes}", f"{said[-1][:12]}{writes}", self.case.planted, said[-1]]
            return _json({"operations": [{"op": "add", "text": writes, "quote": each} for each in quotes]})
        if kind == "hostile field":
            added = [{"op": "add", "field": writes, "text": writes, "quote": each} for each in said]
            return _json({"operations": added})
        gone = [{"op": "remove", "id": each, "quote": said[-1]} for each in memories]
        new = [{"op": "add", "field": "wishes", "text": self.case.writes, "quote": each.strip()} for each in said]
        return _json({"operations": gone if self.case.tool == "forget" else new})


def _last_of_user(items: list[dict[str, Any]]) -> str:
    said = [
        json.dumps(each.get("content", ""), ensure_ascii=False) for each in items if each.get("role") == "user"
    ]
    return said[-1] if said else ""


def _json(value: dict[str, Any]) -> Reply:
    return Reply([json.dumps(value, ensure_ascii=False)])
