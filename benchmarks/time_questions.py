"""When the first token of a question about a day comes, beside that of an ordinary message.

`python -m benchmarks.time_questions [--days 30] [--rounds 60]`

The service is a process with everything embedded; a month of dialogue is imported and its days are summarised,
by a stand-in for the language model. Then ordinary messages and questions about days, prepared ones, those without
a summary and those without a record, take turns, each in its own conversation. All figures are medians of one
run; the difference is to the ordinary message.
"""

import argparse
import json
import statistics
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from functools import partial
from zoneinfo import ZoneInfo

from rich.console import Console
from rich.table import Table

from benchmarks.conversation_rig import USER, Rig, rig
from benchmarks.dialogue import CHAT_MODEL, answer_to, message_of
from tests.support.model_server import Received, Reply

_ZONE = "Asia/Kathmandu"
_UNPREPARED = 40
"""Days ago: imported, and older than what is summarised by itself."""
_SUMMARY = {"summary": "The user talked about a trip and asked for advice. " * 6, "key_topics": ["Trip", "Advice"]}
_AIM_MS = 10.0


def _answer(received: Received, *, summarises: bool) -> Reply:
    if "key_topics" in str(received.prompt[0]):
        return Reply([json.dumps(_SUMMARY) if summarises else "It cannot be told."])
    return Reply(["Certainly", ", ", "this ", "is ", "it."])


def _calls(service: Rig) -> int:
    """How often the answering model was asked."""
    return sum(request.body.get("model") == CHAT_MODEL for request in list(service.model.requests))


def _lines(days: int) -> Iterator[str]:
    """Two visits a day; the last day is yesterday."""
    noon = datetime.now(ZoneInfo(_ZONE)).replace(hour=12, minute=0, second=0, microsecond=0)
    yield json.dumps({"kind": "user", "user_id": USER, "timezone": _ZONE})
    for ago in (*range(1, days + 1), _UNPREPARED):
        for visit in (0, 5):
            for turn in range(4):
                at = noon - timedelta(days=ago) + timedelta(hours=visit, minutes=3 * turn)
                asked = message_of(ago, 10 * visit + turn)
                for role, content, second in (("user", asked, 0), ("assistant", answer_to(asked), 30)):
                    said = (at + timedelta(seconds=second)).astimezone(UTC).isoformat()
                    line = {"user_id": USER, "session_id": f"s-{ago}", "role": role, "content": content}
                    yield json.dumps({**line, "created_at": said}, ensure_ascii=False)


def _prepare(service: Rig, days: int) -> int:
    """Import, and have the days summarised; return how many are."""
    body = "\n".join(_lines(days))
    headers = {"Content-Type": "application/x-ndjson"}
    service.http.post("/api/v1/import", content=body, headers=headers).raise_for_status()
    today = datetime.now(ZoneInfo(_ZONE)).date()
    query = {"from": str(today - timedelta(days=days)), "to": str(today)}
    pending: list[str] = ["?"]
    while pending:
        found = service.http.get(f"/api/v1/users/{USER}/daily-summaries", params=query).json()
        pending = found["pending"]
    service.settle()
    return len(found["items"])


def _questions(today: date) -> dict[str, str]:
    return {
        "an ordinary message": "Please tell me something about the trees of Norway.",
        "a prepared day": "What did we talk about the day before yesterday?",
        "a prepared day, in Chinese": "前天我们聊了什么？",
        "a week of prepared days": "What did we talk about in the last 7 days?",
        "a detail of a prepared day": "What exactly did you recommend to me yesterday?",
        "a day without a summary": f"What did we talk about on {today - timedelta(days=_UNPREPARED)}?",
        "a day without a record": "What did we talk about on 2020-01-05?",
    }


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description="When the first token of a question about a day comes.")
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=60)
    given = parser.parse_args()
    taken: dict[str, list[float]] = defaultdict(list)
    calls: dict[str, int] = defaultdict(int)
    with rig(log_level="error") as service:
        service.model.default = partial(_answer, summarises=True)
        prepared = _prepare(service, given.days)
        service.model.default = partial(_answer, summarises=False)  # the day without a summary stays so
        questions = _questions(datetime.now(ZoneInfo(_ZONE)).date())
        for number in range(given.rounds + 3):
            for name, question in questions.items():
                before = _calls(service)
                session = f"{name.replace(' ', '-').replace(',', '')}-{number}"
                milliseconds = service.first_token_ms(session, question)
                if number >= 3:  # what is read from the disk once
                    taken[name].append(milliseconds)
                    calls[name] = max(calls[name], _calls(service) - before)
                service.settle()
    ordinary = statistics.median(taken["an ordinary message"])
    table = Table("message", "first token ms", "more than an ordinary one", "calls of the model")
    for name, times in taken.items():
        median = statistics.median(times)
        table.add_row(name, f"{median:.1f}", f"{median - ordinary:+.1f}", str(calls[name]))
    table.caption = f"{prepared} days prepared; aim: a prepared day at most {_AIM_MS:g} ms more"
    Console().print(table)


if __name__ == "__main__":
    main()
