"""The schema, table by table, in the files of `baseline/`."""

from pathlib import Path

from alembic import op
from procrastinate.schema import SchemaManager

revision = "0133"
down_revision = None

_FOLDER = Path(__file__).parent.parent / "baseline"
_ORDER = (
    "tenants",
    "conversations",
    "upkeep",
    "memory",
    "knowledge",
    "promises",
    "events",
    "operations",
    "functions",
    "views",
    "isolation",
)


def upgrade() -> None:
    """The queue's tables first: ours refer to them."""
    # The driver's own cursor takes several statements at once.
    cursor = op.get_bind().connection.cursor()
    cursor.execute(SchemaManager.get_schema())
    for name in _ORDER:
        cursor.execute((_FOLDER / f"{name}.sql").read_text(encoding="utf-8"))
