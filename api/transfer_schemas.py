"""What the answer to an import looks like."""

from pydantic import BaseModel, Field

from services.transfer.report import MOST_ERRORS


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
