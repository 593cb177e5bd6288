"""What a turn's model was sent, by section, until memory loses something that it may show."""

from alembic import op

revision = "0017"
down_revision = "0016"

# An array of {name, text, tokens}; the conversation's own messages are named by `message_ids` in place of a text.
COLUMN = """
ALTER TABLE turns ADD COLUMN prompt jsonb;
ALTER TABLE turns ALTER COLUMN prompt SET STATISTICS 0;
CREATE INDEX turns_with_prompt ON turns (conversation_id) WHERE prompt IS NOT NULL;
"""

FUNCTIONS = """
CREATE FUNCTION withdraw_prompts(of_user uuid) RETURNS void LANGUAGE sql AS $$
    UPDATE turns SET prompt = NULL FROM conversations c
    WHERE c.user_id = of_user AND turns.conversation_id = c.id AND turns.prompt IS NOT NULL
$$;

CREATE FUNCTION withdraw_prompts_of_row() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM withdraw_prompts(OLD.user_id);
    RETURN NULL;
END $$;

CREATE FUNCTION withdraw_prompts_of_message() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM withdraw_prompts(user_id) FROM conversations WHERE id = NEW.conversation_id;
    RETURN NULL;
END $$;

CREATE FUNCTION withdraw_prompts_of_removed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM withdraw_prompts(user_id) FROM (SELECT DISTINCT user_id FROM removed) AS users;
    RETURN NULL;
END $$;
"""

# Deferred: the turn that removes something stores its own prompt in the same transaction.
TRIGGERS = """
CREATE CONSTRAINT TRIGGER withdraw_prompts AFTER UPDATE OF content, retracted_at ON episodes
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN ((OLD.content, OLD.retracted_at) IS DISTINCT FROM (NEW.content, NEW.retracted_at))
    EXECUTE FUNCTION withdraw_prompts_of_row();
CREATE TRIGGER withdraw_prompts_of_removed AFTER DELETE ON episodes
    REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION withdraw_prompts_of_removed();
CREATE CONSTRAINT TRIGGER withdraw_prompts AFTER UPDATE OF content, memory_text, retracted_at ON messages
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN ((OLD.content, OLD.memory_text, OLD.retracted_at)
        IS DISTINCT FROM (NEW.content, NEW.memory_text, NEW.retracted_at))
    EXECUTE FUNCTION withdraw_prompts_of_message();
CREATE CONSTRAINT TRIGGER withdraw_prompts AFTER DELETE OR UPDATE OF content ON core_memory_blocks
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION withdraw_prompts_of_block();
"""

# A block that only has more than before shows nothing that must not be seen again.
BLOCKS = """
CREATE FUNCTION withdraw_prompts_of_block() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' OR NOT NEW.content @> OLD.content THEN
        PERFORM withdraw_prompts(OLD.user_id);
    END IF;
    RETURN NULL;
END $$;
"""


def upgrade() -> None:
    """Earlier turns have no prompt."""
    for statements in (COLUMN, FUNCTIONS, BLOCKS, TRIGGERS):
        op.execute(statements)
