"""Tokens that a model is asked for, by purpose.

    python -m benchmarks.cost [--sessions 20] [--turns 10] [--scale 1]

Visits of some turns each, with a pause after each, in which the background work is done; every visit is ended. A
scale of 0.4 makes messages and answers as short as in a chat. The model counts as one that files well. The
stand-in's tokenizer counts every prompt, tools included. Prints the calls and tokens of 1,000 turns.
"""

import argparse
import json
import time
from functools import partial

from rich.console import Console
from rich.table import Table

from benchmarks.conversation_rig import USER, Rig, rig
from benchmarks.dialogue import SMALL_MODEL, answer, message_of
from tests.support.filing import filed
from tests.support.model_server import Received, Reply

_QUIET_S = 2.0
"""After which the turns of a visit are filed."""
_LOOKS, _LOOK_S = 120, 0.5


def _answered(scale: float, received: Received) -> Reply:
    """Return the stand-in's answer; it files nothing."""
    asked = "\n".join(text for _, text in received.prompt)
    reply = answer(received, scale)
    if received.body.get("model") != SMALL_MODEL:
        return reply
    if "operations" in asked:
        return filed()
    if "key_topics" in asked:
        return Reply([json.dumps({"summary": reply.pieces[0], "key_topics": ["work", "food"]})])
    return reply


def _visit(service: Rig, session: str, first: int, turns: int, scale: float) -> None:
    for number in range(first, first + turns):
        service.say(session, message_of(1, number, scale))
    time.sleep(1.5 * _QUIET_S)
    service.settle()
    closing = f"/api/v1/conversations/{service.conversation(session)}/close"
    service.http.post(closing, params={"user_id": USER}).raise_for_status()


def _spent(service: Rig) -> list[dict[str, int | str]]:
    """Return the sums by purpose, once they no longer grow."""
    before: list[dict[str, int | str]] = []
    for _ in range(_LOOKS):
        time.sleep(_LOOK_S * 8)
        service.settle()
        now: list[dict[str, int | str]] = (
            service.http.get("/api/v1/usage", params={"by": "purpose"}).raise_for_status().json()["items"]
        )
        if now == before:
            return now
        before = now
    raise TimeoutError("the background work does not end")


def main() -> None:
    """Play the visits and print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sessions", type=int, default=20)
    parser.add_argument("--turns", type=int, default=10)
    parser.add_argument("--scale", type=float, default=1.0)
    options = parser.parse_args()
    quiet = str(_QUIET_S / 4)
    with rig(memory_filing_quiet_s=quiet, memory_filing_pause_s="0", memory_filing_grade="well") as service:
        service.model.default = partial(_answered, options.scale)
        for number in range(options.sessions):
            _visit(service, f"visit-{number}", number * options.turns + 1, options.turns, options.scale)
        table = Table(title=f"1,000 turns, in visits of {options.turns}")
        for heading in ("purpose", "calls", "input tokens"):
            table.add_column(heading, justify="right")
        share = 1000 / (options.sessions * options.turns)
        for row in _spent(service):
            figures = (f"{int(row[name]) * share:,.0f}" for name in ("calls", "input_tokens"))
            table.add_row(str(row["purpose"]), *figures)
        Console().print(table)


if __name__ == "__main__":
    main()
