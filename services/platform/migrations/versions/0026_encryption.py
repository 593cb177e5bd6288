"""Encryption: which store of keys a database is encrypted with."""

from alembic import op

revision = "0026"
down_revision = "0025"
serves_from = "0025"  # the constraint only becomes wider

# One row where users' words are encrypted, and none elsewhere. It belongs to no tenant.
ENCRYPTION = """
CREATE TABLE encryption (
    is_on    boolean PRIMARY KEY DEFAULT true CHECK (is_on),
    store_id uuid NOT NULL,
    since    timestamptz NOT NULL DEFAULT clock_timestamp()
);
"""

# An encrypted title is longer than its words.
TITLES = """
ALTER TABLE topics DROP CONSTRAINT topics_title_check;
ALTER TABLE topics ADD CONSTRAINT topics_title_check
    CHECK (length(title) >= 1 AND (length(title) <= 100 OR starts_with(title, '~[1.')));
"""


def upgrade() -> None:
    """Nothing is encrypted so far."""
    op.execute(ENCRYPTION)
    op.execute(TITLES)
