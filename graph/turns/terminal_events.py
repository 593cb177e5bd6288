"""The last event of a turn. Pure functions."""

from typing import Any

from services.conversations.turn import OpenTurn, StoredTurn
from state.conversation import ConversationState
from state.events import Status

Ending = tuple[Status, dict[str, Any]]
"""Status and content of a turn's last event."""

INTERNAL: dict[str, Any] = {
    "code": "internal",
    "message": "Something went wrong on our side.",
    "retryable": True,
}
CANCELLED: dict[str, Any] = {"code": "cancelled", "message": "The turn was cancelled.", "retryable": False}
INTERRUPTED_BY_MESSAGE: dict[str, Any] = {
    "code": "interrupted_by_message",
    "message": "A newer message interrupted this turn.",
    "retryable": False,
}
STOPPING: dict[str, Any] = {
    "code": "interrupted",
    "message": "The service is stopping; please try again.",
    "retryable": True,
}
LOST_PROCESS: dict[str, Any] = {
    "code": "interrupted",
    "message": "The service was interrupted; please try again.",
    "retryable": True,
}


def done(turn: OpenTurn, written: ConversationState, trace_id: str | None = None) -> Ending:
    """Build the last event of a turn that succeeded, from what its nodes wrote."""
    content: dict[str, Any] = {
        "answer": written["answer"],
        "conversation_id": str(turn.conversation_id),
        "turn_id": str(turn.turn_id),
        "message_id": written["assistant_message_id"],
        "usage": written["usage"],
        "timings": written["timings"],
        "degraded": written.get("degraded", []),
        "sources": written["context_report"]["sources"],
        "finish": written["context_report"].get("finish", "stop"),
        "memory_changes": written.get("memory_changes", []),
    }
    if "request_budget" in written["context_report"]:
        content["request_budget"] = written["context_report"]["request_budget"]
    if trace_id is not None:
        content["trace_id"] = trace_id
    if written.get("execution_logs"):
        content["context_report"] = written["context_report"]
    return "done", content


def failed(turn: OpenTurn, error: dict[str, Any], answer: str) -> Ending:
    """Build the last event of a failed turn; `answer` is the partial answer, sent if anything was streamed."""
    content = {**error, "turn_id": str(turn.turn_id)}
    return "error", {**content, "answer": answer} if answer else content


def of_stored(stored: StoredTurn) -> Ending:
    """Build the last event of an ended turn from what is stored. Its answer is authoritative."""
    if stored.status != "completed":
        error = stored.error or LOST_PROCESS
        return "error", {**error, "turn_id": str(stored.id), "answer": stored.answer or ""}
    report = stored.context_report or {}  # a turn stored by an earlier version has less in it
    content = {
        "answer": stored.answer or "",
        "conversation_id": str(stored.conversation_id),
        "turn_id": str(stored.id),
        "message_id": str(stored.assistant_message_id) if stored.assistant_message_id else None,
        "usage": stored.usage,
        "timings": stored.timings,
        "degraded": stored.degraded,
        "sources": report.get("sources", []),
        "finish": report.get("finish", "stop"),
        "memory_changes": stored.memory_changes,
    }
    if "request_budget" in report:
        content["request_budget"] = report["request_budget"]
    return "done", content
