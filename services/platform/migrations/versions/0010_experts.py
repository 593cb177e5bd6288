"""Limits of experts, and the parts of memory that they go without."""

from alembic import op

revision = "0010"
down_revision = "0009"

EXPERTS = """
ALTER TABLE experts
    ADD COLUMN context_budget_tokens integer CHECK (context_budget_tokens BETWEEN 500 AND 1000000),
    ADD COLUMN parts_off text[] NOT NULL DEFAULT '{}';
"""


def upgrade() -> None:
    """Nothing is off, and the service's budget is every expert's."""
    op.execute(EXPERTS)
