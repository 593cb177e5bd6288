"""Keep prompts when background work updates core memory: what it replaces stays in the history as well."""

from alembic import op

revision = "0023"
down_revision = "0022"

# A block that only gains something hides nothing; nor does one that background work changes.
BLOCKS = """
CREATE OR REPLACE FUNCTION withdraw_prompts_of_block() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        PERFORM withdraw_prompts(OLD.user_id);
    ELSIF NOT NEW.content @> OLD.content AND NOT EXISTS (
        SELECT FROM core_memory_history h
        WHERE h.block_id = NEW.id AND h.version = NEW.version AND NEW.version > OLD.version
          AND h.actor IN ('memory_agent', 'topics', 'compression')
    ) THEN
        PERFORM withdraw_prompts(OLD.user_id);
    END IF;
    RETURN NULL;
END $$;
"""


def upgrade() -> None:
    """Prompts that were withdrawn stay so."""
    op.execute(BLOCKS)
