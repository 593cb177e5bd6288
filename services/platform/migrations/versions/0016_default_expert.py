"""The service's own expert has no system prompt: the rules of memory are part of every prompt."""

from alembic import op

revision = "0016"
down_revision = "0015"

# What 0001 gave it is not true of a first conversation. The owner is under row-level security as well.
NO_PROMPT = """
ALTER TABLE experts NO FORCE ROW LEVEL SECURITY;
UPDATE experts SET system_prompt = '' WHERE name = 'default' AND system_prompt =
    'You are a helpful assistant who has been talking with this person for a long time. '
    'Answer in the language of the question. What you know of the person is given below; use it where it '
    'helps, and say so when you do not know something.';
ALTER TABLE experts FORCE ROW LEVEL SECURITY;
"""


def upgrade() -> None:
    """An expert whose prompt an operator has changed keeps it."""
    op.execute(NO_PROMPT)
