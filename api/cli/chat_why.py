"""The view `/why` of `anamnesis chat`: what an answer was based on, its lineage, and what was left out."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from api.cli.shell import as_text

_LEFT_OUT = 8
_SOURCES = 3
_VALUES = 8
"""Number of each that is shown; the rest is counted."""
_LONGEST_LINE = 160
_LONGEST_SOURCE = 90

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
_KINDS = {"persona_card": "the user in brief", "day": "summary of a day"}
_ORIGINS = {
    "user": "your own words",
    "assistant": "words of the assistant",
    "operator": "words of an operator",
    "tool": "results of tools",
    "import": "an import",
    "document": "documents or pasted texts",
}
_MAKERS = {
    "filing": "filed of what was said",
    "maintenance": "merged at night",
    "model": "noted by the model",
    "user": "said or written by you",
    "import": "imported",
    "assistant": "said by the assistant",
}


def show_why(console: Console, why: Mapping[str, Any]) -> None:
    """Show the route, the sections of the prompt with their lineage, what was recalled and what was left out."""
    if not why["sections"]:
        console.print("[dim]There is no report: the answer did not come from a model.[/]")
        return
    if route := why["route"]:
        base = f" with the knowledge base {route['kb_prefix']}" if route.get("kb_prefix") else ""
        console.print(
            f"Answered by {escape(why['expert'])}{escape(base)}: {escape(route.get('reason') or 'as usual')}"
        )
    _show_sections(console, why)
    _show_lineage(console, [each for each in why["lineage"] if each["section"] != "recall"])
    _show_recall(console, why)
    for each in why["sources"]:
        place = f", {each['heading']}" if each["heading"] else ""
        console.print(f"From the knowledge base: {escape(each['document'])}{escape(place)}")
    _show_left_out(console, why)


def _show_sections(console: Console, why: Mapping[str, Any]) -> None:
    sections = why["sections"]
    used = sum(each["tokens"] for each in sections if each["name"] != "message")
    console.print(f"The prompt had about {used} of {why['budget']} tokens, the message not counted:")
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(justify="right")
    table.add_column()
    for each in sections:
        table.add_row(str(each["tokens"]), _section(each["name"]))
    console.print(table)
    if why["texts"] == "withdrawn":
        console.print("[dim]Its texts are withdrawn: memory has lost something since that they may show.[/]")


def _show_lineage(console: Console, items: Sequence[Mapping[str, Any]]) -> None:
    if not items:
        return
    console.print("Where that comes from:")
    for each in items:
        name = _kind(each["kind"])
        text = f": {one_line(each['text'])}" if each["text"] and each["kind"] != "private_note" else ""
        console.print(f"  [bold]{escape(name)}[/]{escape(text)}")
        console.print(f"    [dim]{escape(_made(each))}[/]")
        for value in each["values"][:_VALUES]:
            by = _MAKERS.get(value["actor"] or "", value["actor"] or "not known")
            console.print(
                f"    {escape(value['field'])}: {escape(one_line(value['text']))} [dim]({escape(by)})[/]"
            )
        _count(console, len(each["values"]) - _VALUES, "more values")
        _show_sources(console, each)


def _show_recall(console: Console, why: Mapping[str, Any]) -> None:
    items = why["recall"]["items"]
    lineage = {each["id"]: each for each in why["lineage"] if each["section"] == "recall"}
    shown = [each for each in items if each["shown"]]
    if not any(each["name"] == "recall" for each in why["sections"]) and not items:
        return
    console.print(f"Recalled, of {why['recall']['found']} that were found:" if shown else "Nothing was recalled.")
    for each in shown:
        console.print(f"  {each['likelihood']:.2f} {escape(_recalled(each))}")
        if made := lineage.get(each["episode_id"]):
            console.print(f"       [dim]{escape(_made(made))}[/]")
            if made["kind"] == "episode" and made["text"]:
                _show_sources(console, made)


def _show_sources(console: Console, item: Mapping[str, Any]) -> None:
    for source in item["sources"][:_SOURCES]:
        who = _MAKERS.get(source["made_by"].get("actor", ""), source["kind"])
        text = one_line(source["text"] or "", _LONGEST_SOURCE) or _kind(source["kind"])
        console.print(f"    [dim]from {_day(source['at'])}, {escape(who)}: {escape(text)}[/]")
    _count(console, item["source_count"] - _SOURCES, "more sources")


def _show_left_out(console: Console, why: Mapping[str, Any]) -> None:
    lines = list(_left_out(why))
    if not lines:
        return
    console.print("Left out:")
    for line in lines[:_LEFT_OUT]:
        console.print(f"  [dim]{escape(line)}[/]")
    _count(console, len(lines) - _LEFT_OUT, "more")


def _left_out(why: Mapping[str, Any]) -> Iterator[str]:
    for each in why["dropped"]:
        yield f"{each['items']} of {_section(each['section'])}: {each['reason']}"
    for name in dict.fromkeys(why["degraded"]):
        yield f"{_section(name)}: it could not be read in time"
    for each in why["recall"]["items"]:
        if not each["shown"]:
            yield f"{each['likelihood']:.2f} {_recalled(each)}: {each['reason'] or 'over the budget'}"


def _count(console: Console, number: int, what: str) -> None:
    if number > 0:
        console.print(f"    [dim]and {number} {what}[/]")


def _made(item: Mapping[str, Any]) -> str:
    """Return whose words something is made of, and who made it with which prompt and model."""
    made_by = item["made_by"]
    parts = [_ORIGINS[item["origin"]]]
    if actor := made_by.get("actor"):
        parts.append(_MAKERS.get(actor, str(actor)))
    parts += [f"{name} {made_by[name]}" for name in ("job", "prompt", "model") if name in made_by]
    return "; ".join(parts)


def _recalled(item: Mapping[str, Any]) -> str:
    return f"[{_day(item['created_at'])}] {one_line(item['text'])}" if item["text"] else "(not there any more)"


def _section(name: str) -> str:
    return _SECTIONS.get(name, name.replace("_", " "))


def _kind(name: str) -> str:
    return _KINDS.get(name, name.replace("_", " "))


def one_line(text: str, most: int = _LONGEST_LINE) -> str:
    """Return a text in one line, cut where it is long."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[:most]}…"


def _day(moment: str) -> str:
    return as_text(datetime.fromisoformat(moment))[:10]
