"""Facts that end right, wrong or missing in memory when a strong model answers every request honestly.

    python -m benchmarks.facts

Two users, one in English and one in Chinese, talk over six visits about people, pets, work, health and plans.
They correct themselves, end things, forget one of two, speak off the record, paste other people's words and play
a role.
`data/played` holds their messages with what a strong model answered when it read the prompts of the service:
texts, calls of tools, and what it filed of each message. Prints which of the facts are in memory at the end, what
is there that must not be, how often prompts asked about memory, and the calls and tokens of memory's own work.
"""

import json
import re
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.conversation_rig import Rig, rig
from benchmarks.dialogue import SMALL_MODEL
from tests.support.model_server import Received, Reply, ToolCall

_DATA = Path(__file__).parent / "data" / "played"
_USERS = {"nora": "Europe/London", "lin": "Asia/Shanghai"}
_QUIET_S = 2.0
"""After which the turns of a visit are filed."""
_MESSAGE = re.compile(r"^\[(u\d+)\]")
_TEXTS = ("text",)


@dataclass
class Player:
    """A model with recorded answers."""

    steps: list[dict[str, Any]] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    """Prompts that asked the user about a change of memory."""

    def answer(self, received: Received) -> Reply:
        """Return the recorded answer to a request."""
        if received.body.get("model") == SMALL_MODEL:
            return Reply([json.dumps(self._in_the_background(received), ensure_ascii=False)])
        said = [text for role, text in received.prompt if role == "user"][-1]
        context = received.prompt[-1][1] if received.prompt[-1][0] == "system" else ""
        context += "".join(text for role, text in received.prompt[-2:] if role == "system")
        self.asked += [
            each for each in context.splitlines() if "waits for the user" in each or "等用户同意" in each
        ]
        step = next(each for each in reversed(self.steps) if each["say"] == said)
        outputs = [each for each in received.body.get("input", []) if each.get("type") == "function_call_output"]
        given = step["answers"][min(len(outputs), len(step["answers"]) - 1)]
        if isinstance(given, str):
            return Reply([given])
        calls = [ToolCall(name, given[name], f"c{len(outputs)}") for name in given if name not in _TEXTS]
        return Reply([given["text"]] if "text" in given else [], calls)

    def _in_the_background(self, received: Received) -> dict[str, Any]:
        system, prompt = received.prompt[0][1], received.prompt[-1][1]
        if "operations" not in system:
            return {"summary": "(a talk)", "key_topics": ["talk"], "pairs": [], "topics": []}
        found = self._new_messages(prompt)
        known = [line for line in prompt.splitlines() if line.startswith("[m")]
        story = [key for key, step in found if step.get("story")]
        return {
            "operations": [_operation(each, known) for _, step in found for each in step.get("file", [])],
            "story": {"from": story[0], "to": story[-1]} if story else {"from": "", "to": ""},
            "mood": next((step["mood"] for _, step in reversed(found) if "mood" in step), None),
            "complaint": next((step["complaint"] for _, step in found if "complaint" in step), ""),
            "promises": [each for _, step in found for each in step.get("promises", [])],
        }

    def _new_messages(self, prompt: str) -> list[tuple[str, dict[str, Any]]]:
        """Return the recorded messages that a prompt shows as new, with their short ids."""
        lines = prompt.splitlines()
        shown = [(found[1], line) for at, line in enumerate(lines[1:]) if (found := _MESSAGE.match(lines[at]))]
        return [(key, step) for key, line in shown for step in self.steps if _is_of(step, line[2:])]


def _is_of(step: dict[str, Any], line: str) -> bool:
    """Return whether a line of a prompt is a recorded message, or what is left of it."""
    return line == step["say"].splitlines()[0] or any(each["quote"] in line for each in step.get("file", []))


def _operation(recorded: dict[str, Any], known: list[str]) -> dict[str, Any]:
    """Return a recorded operation with the id of the memory that it changes; without that memory it adds."""
    operation = {key: value for key, value in recorded.items() if key != "of"}
    if "of" not in recorded:
        return operation
    memory = next((line for line in known if recorded["of"] in line), None)
    if memory is None:
        return {**operation, "op": "add", "field": "facts"}
    return {**operation, "id": memory[1 : memory.index("]")]}


def _visits(name: str) -> tuple[list[list[dict[str, Any]]], dict[str, list[Any]]]:
    """Return the visits of a user, and what memory is to hold, and not to hold, at the end."""
    lines = [json.loads(line) for line in (_DATA / f"{name}.jsonl").read_text().splitlines()]
    visits: list[list[dict[str, Any]]] = []
    for line in lines[:-1]:
        if "visit" in line:
            visits.append([])
        else:
            visits[-1].append(line)
    return visits, lines[-1]


def _play(service: Rig, player: Player, name: str, visits: list[list[dict[str, Any]]]) -> None:
    for number, visit in enumerate(visits):
        for step in visit:
            player.steps.append(step)
            body = {"user_id": name, "session_id": f"{name}-{number}", "message": step["say"]}
            service.http.post("/api/v1/chat", json={**body, "timezone": _USERS[name]}).raise_for_status()
        time.sleep(2 * _QUIET_S)
        service.settle()


def _memory(service: Rig, name: str) -> list[str]:
    """Return the statements that hold."""
    found: list[dict[str, Any]] = (
        service.http.get(f"/api/v1/users/{name}/memories").raise_for_status().json()["items"]
    )
    return [each["text"] for each in found]


def main() -> None:
    """Play both users and print what has become of their facts."""
    player, console = Player(), Console()
    quiet = str(_QUIET_S / 4)
    turns = right = 0
    with rig(memory_filing_quiet_s=quiet, memory_filing_pause_s="0", memory_filing_grade="well") as service:
        service.model.default = player.answer
        for name in _USERS:
            visits, ends = _visits(name)
            turns += sum(map(len, visits))
            _play(service, player, name, visits)
            memory = _memory(service, name)
            missing = [
                each for each in ends["facts"] if not any(all(word in text for word in each) for text in memory)
            ]
            wrong = [text for text in memory if any(word in text for word in ends["wrong"])]
            right += len(ends["facts"]) - len(missing)
            console.print(f"{name}: {len(missing)} missing {missing}, {len(wrong)} wrong {wrong}")
        spent = service.http.get("/api/v1/usage", params={"by": "purpose"}).raise_for_status().json()["memory"]
    console.print(f"right {right}; questions about memory in {len(player.asked)} of {turns} turns")
    calls, tokens = (spent[each] / turns for each in ("calls", "input_tokens"))
    console.print(f"memory's own work: {calls:.2f} calls and {tokens:.0f} tokens a turn")


if __name__ == "__main__":
    main()
