"""The view `/why` of `anamnesis chat`: the sections of a prompt, what was recalled, and what was left out."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from api.cli.shell import as_text

_LEFT_OUT = 8
"""Number of those that are shown; the rest is counted."""
_LONGEST_LINE = 160

_SECTIONS = {
    "system": "instructions and tools",
    "instructions": "instructions of the application",
    "attached": "attached by the application",
    "core_memory_changes": "core memory, added since",
    "summary": "summary of the conversation",
    "topics": "archived topics",
    "history": "messages of the conversation",
    "days": "records of days",
    "recall": "recalled from earlier",
    "knowledge": "knowledge base",
    "memory_changes": "changes of memory",
    "open_question": "a change that waits for you",
    "time": "date and time",
    "message": "your message",
}


def show_why(console: Console, why: Mapping[str, Any]) -> None:
    """Show what an answer was based on; *Why?* in the console also shows where each part of it comes from."""
    if not why["sections"]:
        console.print("[dim]There is no report: the answer did not come from a model.[/]")
        return
    if route := why["route"]:
        base = f" with the knowledge base {route['kb_prefix']}" if route.get("kb_prefix") else ""
        reason = route.get("reason") or "as usual"
        console.print(f"Answered by {escape(why['expert'])}{escape(base)}: {escape(reason)}")
    used = sum(each["tokens"] for each in why["sections"] if each["name"] != "message")
    console.print(f"The prompt had about {used} of {why['budget']} tokens, the message not counted:")
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(justify="right")
    for each in why["sections"]:
        table.add_row(str(each["tokens"]), _section(each["name"]))
    console.print(table)
    shown = [each for each in why["recall"]["items"] if each["shown"]]
    console.print(f"Recalled, of {why['recall']['found']} that were found:" if shown else "Nothing was recalled.")
    for each in shown:
        console.print(f"  {each['likelihood']:.2f} {escape(_recalled(each))}")
    for each in why["sources"]:
        place = f", {each['heading']}" if each["heading"] else ""
        console.print(f"From the knowledge base: {escape(each['document'])}{escape(place)}")
    if lines := list(_left_out(why)):
        console.print("Left out:")
        for line in lines[:_LEFT_OUT]:
            console.print(f"  [dim]{escape(line)}[/]")
        if len(lines) > _LEFT_OUT:
            console.print(f"    [dim]and {len(lines) - _LEFT_OUT} more[/]")


def _left_out(why: Mapping[str, Any]) -> Iterator[str]:
    for each in why["dropped"]:
        yield f"{each['items']} of {_section(each['section'])}: {each['reason']}"
    for name in dict.fromkeys(why["degraded"]):
        yield f"{_section(name)}: it could not be read in time"
    for each in why["recall"]["items"]:
        if not each["shown"]:
            yield f"{each['likelihood']:.2f} {_recalled(each)}: {each['reason'] or 'over the budget'}"


def _recalled(item: Mapping[str, Any]) -> str:
    if not item["text"]:
        return "(not there any more)"
    day = as_text(datetime.fromisoformat(item["created_at"]))[:10]
    return f"[{day}] {one_line(item['text'])}"


def _section(name: str) -> str:
    return _SECTIONS.get(name, name.replace("_", " "))


def one_line(text: str) -> str:
    """Return a text in one line, cut where it is long."""
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}…"
