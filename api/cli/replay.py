"""`anamnesis replay`: ask past turns again, and compare what comes of it with what was answered."""

import statistics
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import Annotated, Any

import typer

from anamnesis_client import Anamnesis, ServiceError
from api.cli.service import over_http, told
from api.cli.shell import FAILED, WRONG_USE, AsJson, fail, print_json, print_table

_WIDE = 46
_DIFFERENT = 0.5
"""Share of common words below which two answers count as different."""

Measured = dict[str, Any]


@over_http
def replay(
    service: Anamnesis,
    turn: Annotated[str | None, typer.Argument(help="Id of one turn; without it, a sample of them.")] = None,
    since: Annotated[datetime | None, typer.Option(help="Only turns since this day or time.")] = None,
    user: Annotated[str | None, typer.Option("--user", help="Only turns of this user.")] = None,
    expert: Annotated[str | None, typer.Option("--expert", help="Expert to ask in place of each turn's.")] = None,
    model: Annotated[str | None, typer.Option("--model", help="Model to ask in place of each expert's.")] = None,
    now: Annotated[
        bool, typer.Option("--now", help="Use what memory holds today, not the prompt that was sent.")
    ] = False,
    without: Annotated[
        list[str] | None,
        typer.Option("--without", metavar="SECTION", help="Leave this section of the prompt out."),
    ] = None,
    prompt_only: Annotated[
        bool, typer.Option("--prompt-only", help="Ask no model; only check that each prompt is as it was sent.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Turns to replay at most, the newest first.")] = 20,
    as_json: AsJson = False,
) -> None:
    """Ask past turns again in the running service, and compare the answers. Nothing is stored.

    Each turn is asked with the prompt as it was sent, unless --now or --expert is given. With --expert, --model or
    --without it shows what a change would have done before any user meets it.

    Example: `anamnesis replay --since 2026-11-01 --expert concise --limit 50`
    """
    body: dict[str, Any] = {
        "memory": "now" if now else "then",
        "expert": expert,
        "model": model,
        "without_sections": without or [],
        "ask": not prompt_only,
    }
    chosen = [turn] if turn else islice(_turns(service, user, since), limit)
    measured = [_measure(service, each, body, alone=turn is not None) for each in chosen]
    if as_json:
        print_json({"turns": measured, "summary": _summary(measured)})
    elif not measured:
        fail("There is no completed turn to replay.", WRONG_USE if since or user else FAILED)
    elif turn:
        _show_one(measured[0])
    else:
        _show(measured)
    if any(each["same_prompt"] is False for each in measured) and not without:
        fail("Some prompts are not what was sent.")


def _turns(service: Anamnesis, user: str | None, since: datetime | None) -> Iterator[str]:
    for turn in service.items("turns", params={"user_id": user, "status": "completed"}):
        if since and datetime.fromisoformat(turn["accepted_at"]) < since.astimezone():
            return
        yield turn["id"]


def _measure(service: Anamnesis, turn_id: str, body: dict[str, Any], *, alone: bool) -> Measured:
    """Return one turn as it was and asked again; in a sample, a turn that cannot be replayed has the reason."""
    try:
        replayed = service.request("POST", "turns", turn_id, "replay", json=body)
    except ServiceError as refused:
        if alone:
            raise
        return {"turn_id": turn_id, "skipped": told(refused), "same_prompt": None}
    return {**replayed, "skipped": None}


def _summary(measured: Sequence[Measured]) -> dict[str, Any]:
    """Summarise a sample: medians over the turns that were answered both times."""
    asked = [each for each in measured if not each["skipped"]]
    both = [each for each in asked if each["overlap"] is not None]
    summary: dict[str, Any] = {
        "turns": len(measured),
        "skipped": len(measured) - len(asked),
        "same_prompts": sum(each["same_prompt"] is True for each in asked),
        "errors": sum(each["now"]["error"] is not None for each in asked),
        "answered": len(both),
        "same_answers": sum(each["then"]["answer"] == each["now"]["answer"] for each in both),
        "different_answers": sum(each["overlap"] < _DIFFERENT for each in both),
    }
    for when in ("then", "now"):
        totals = [each[when]["ms"] for each in both if each[when]["ms"] is not None]
        summary[f"{when}_ms"] = statistics.median(totals) if totals else None
        for kind in ("input_tokens", "output_tokens"):
            summary[f"{when}_{kind}"] = sum((each[when]["usage"] or {}).get(kind, 0) for each in both)
    return summary


def _show_one(one: Measured) -> None:
    if one["same_prompt"] is not None:
        typer.echo("prompt: byte for byte as it was sent" if one["same_prompt"] else "prompt: changed")
    typer.echo(f"message  {one['message']}\nthen     {one['then']['answer'] or '(none)'}")
    if error := one["now"]["error"]:
        fail(f"{error['code']}: {error['message']}")
    if one["now"]["answer"] is not None:
        typer.echo(f"now      {one['now']['answer']}")
        typer.echo(f"{one['overlap']:.0%} of the words in common, {_ms(one['now']['ms'])} ms")


def _show(measured: Sequence[Measured]) -> None:
    columns = ("message", "then", "now", "in common", "ms then", "ms now")
    print_table(dict(zip(columns, columns, strict=True)), list(map(_row, measured)))
    summary = _summary(measured)
    typer.echo(
        f"{summary['turns']} turns, {summary['skipped']} not replayed, {summary['errors']} failed; "
        f"{summary['same_prompts']} prompts byte for byte as they were sent"
    )
    if summary["answered"]:
        typer.echo(
            f"of {summary['answered']} answers {summary['same_answers']} are the same and "
            f"{summary['different_answers']} have less than half of their words in common; "
            f"tokens written {summary['then_output_tokens']} then, {summary['now_output_tokens']} now; "
            f"median {_ms(summary['then_ms'])} ms then, {_ms(summary['now_ms'])} ms now"
        )


def _row(one: Measured) -> dict[str, Any]:
    if one["skipped"]:
        nothing = dict.fromkeys(("now", "in common", "ms then", "ms now"))
        return {"message": one["turn_id"], "then": one["skipped"], **nothing}
    then, now, overlap = one["then"], one["now"], one["overlap"]
    return {
        "message": _short(one["message"]),
        "then": _short(then["answer"]),
        "now": now["error"]["code"] if now["error"] else _short(now["answer"]),
        "in common": None if overlap is None else f"{overlap:.0%}",
        "ms then": _ms(then["ms"]),
        "ms now": _ms(now["ms"]),
    }


def _short(text: str | None) -> str:
    line = " ".join((text or "").split())
    return line if len(line) <= _WIDE else line[: _WIDE - 1] + "…"


def _ms(value: float | None) -> str:
    return "" if value is None else f"{value:.0f}"
