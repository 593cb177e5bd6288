"""How users sound, turn by turn; and what a prompt's beginning says of a user in brief."""

from alembic import op

revision = "0008"
down_revision = "0007"

# `opinion` is a model's reading of the same message, where one is configured; it arrives after the turn.
STATES = """
CREATE TABLE tone_states (
    turn_id         uuid PRIMARY KEY REFERENCES turns ON DELETE CASCADE,
    tenant_id       uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    conversation_id uuid NOT NULL REFERENCES conversations ON DELETE CASCADE,
    user_id         uuid NOT NULL REFERENCES users ON DELETE CASCADE,
    expert_id       uuid NOT NULL REFERENCES experts,
    message_scores  jsonb NOT NULL,
    opinion         jsonb,
    scores          jsonb NOT NULL,
    dominant        text NOT NULL CHECK (dominant IN
        ('anxiety', 'excitement', 'confusion', 'trust', 'frustration', 'neutral')),
    empathy         real NOT NULL CHECK (empathy BETWEEN 0 AND 1),
    pace            text NOT NULL CHECK (pace IN ('slow', 'steady', 'brisk')),
    at              timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX tone_states_of_conversation ON tone_states (conversation_id, at);
CREATE INDEX tone_states_of_user ON tone_states (user_id, at, turn_id);
"""

# A turn asks how often, and when last, a user came to an expert.
VISITS = """
CREATE INDEX visits_with_expert ON visits (user_id, expert_id, last_active_at) INCLUDE (tenant_id);
"""

EPOCHS = """
ALTER TABLE context_epochs ADD COLUMN persona_card text NOT NULL DEFAULT '';
"""

ISOLATION = """
ALTER TABLE tone_states ENABLE ROW LEVEL SECURITY;
ALTER TABLE tone_states FORCE ROW LEVEL SECURITY;
CREATE POLICY one_tenant ON tone_states
    USING (tenant_id = (SELECT nullif(current_setting('anamnesis.tenant_id', true), '')::uuid));
"""

# The planner's statistics keep samples of a column's values, also of a user who was erased.
NO_SAMPLES = """
ALTER TABLE tone_states ALTER COLUMN message_scores SET STATISTICS 0;
ALTER TABLE tone_states ALTER COLUMN opinion SET STATISTICS 0;
ALTER TABLE tone_states ALTER COLUMN scores SET STATISTICS 0;
ALTER TABLE context_epochs ALTER COLUMN persona_card SET STATISTICS 0;
"""


def upgrade() -> None:
    """A new table, and columns and an index that are filled from now on."""
    for statements in (STATES, VISITS, EPOCHS, ISOLATION, NO_SAMPLES):
        op.execute(statements)
