"""The report of an import."""

from dataclasses import dataclass, field

MOST_ERRORS = 1000
"""Maximum refused lines that the report describes; others are only counted."""


@dataclass(frozen=True)
class LineError:
    """A line that was refused."""

    line: int
    """Number of the line, from 1."""
    reason: str


@dataclass
class ImportReport:
    """The outcome of lines; empty lines are not counted."""

    imported: int = 0
    """Lines newly stored."""
    skipped: int = 0
    """Lines whose content was already stored."""
    refused: int = 0
    """Lines with errors."""
    errors: list[LineError] = field(default_factory=list)
    """The first errors, by line."""

    def refuse(self, line: int, reason: str) -> None:
        """Note a line with an error."""
        self.refused += 1
        self.errors.append(LineError(line, reason))
        if len(self.errors) > 2 * MOST_ERRORS:
            self.in_order()

    def add(self, other: "ImportReport") -> None:
        """Add the outcome of other lines."""
        self.imported += other.imported
        self.skipped += other.skipped
        self.refused += other.refused
        self.errors += other.errors
        self.in_order()

    def in_order(self) -> None:
        """Describe the errors by line, up to the limit."""
        self.errors = sorted(self.errors, key=lambda error: error.line)[:MOST_ERRORS]
