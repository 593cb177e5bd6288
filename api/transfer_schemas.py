"""What the answer to an import looks like."""

from typing import Any

from pydantic import BaseModel, Field

from services.transfer.lines import MessageLine
from services.transfer.report import MOST_ERRORS


def message_schema() -> dict[str, Any]:
    """What the OpenAPI document says of a line that is a message."""
    schema = MessageLine.model_json_schema()
    defined = schema.pop("$defs")
    feedback = {"anyOf": [defined["FeedbackPart"], {"type": "null"}], "default": None}
    images = {"type": "array", "items": {"type": "object"}, "description": "Images as OpenAI content parts."}
    schema["properties"] |= {"parts": images, "feedback": feedback}
    return schema


class LineErrorView(BaseModel):
    """A line that was refused."""

    line: int = Field(description="From 1.")
    reason: str


class ImportView(BaseModel):
    """What became of the lines of an import."""

    imported: int = Field(description="Lines that are stored now and were not before.")
    skipped: int = Field(description="Lines of what was stored already.")
    refused: int = Field(description="Lines with errors.")
    errors: list[LineErrorView] = Field(description=f"The first {MOST_ERRORS} of these, by line.")
