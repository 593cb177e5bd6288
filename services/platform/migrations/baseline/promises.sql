-- Promises: what the assistant is to say by itself, and when.

CREATE TABLE promises (
    id                 uuid NOT NULL,
    tenant_id          uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    user_id            uuid NOT NULL,
    expert_id          uuid NOT NULL,
    space_id           uuid,
    conversation_id    uuid,
    source_message_id  uuid,
    operation_id       uuid,
    text               text NOT NULL,
    said               text NOT NULL,
    quote              text NOT NULL DEFAULT '',
    rule               text NOT NULL DEFAULT '',
    timezone           text NOT NULL,
    asked_by           text NOT NULL DEFAULT 'user',
    state              text NOT NULL DEFAULT 'open',
    due_at             timestamptz NOT NULL,
    created_at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    settled_at         timestamptz,
    kept_in            uuid,
    PRIMARY KEY (id, tenant_id),
    FOREIGN KEY (user_id, tenant_id) REFERENCES users (id, tenant_id) ON DELETE CASCADE,
    FOREIGN KEY (expert_id, tenant_id) REFERENCES experts (id, tenant_id),
    FOREIGN KEY (space_id, tenant_id) REFERENCES spaces (id, tenant_id) ON DELETE CASCADE,
    FOREIGN KEY (conversation_id, tenant_id) REFERENCES conversations (id, tenant_id) ON DELETE CASCADE,
    FOREIGN KEY (source_message_id, tenant_id) REFERENCES messages (id, tenant_id) ON DELETE CASCADE,
    CHECK (asked_by IN ('user', 'offer')),
    CHECK (state IN ('open', 'kept', 'cancelled', 'missed'))
);
COMMENT ON TABLE promises IS 'What the assistant says by itself when it is due.';
COMMENT ON COLUMN promises.conversation_id IS 'where it was asked for; NULL = it is kept in the user''s newest';
COMMENT ON COLUMN promises.operation_id IS 'the operation of the log that made it';
COMMENT ON COLUMN promises.said IS 'when, as it was said';
COMMENT ON COLUMN promises.quote IS 'the user''s words for it; without them it goes';
COMMENT ON COLUMN promises.rule IS 'words from which every further moment is read; empty = it is due once';
COMMENT ON COLUMN promises.timezone IS 'on whose clock its times are';
COMMENT ON COLUMN promises.asked_by IS 'offer = the assistant offered it, and the user agreed';
COMMENT ON COLUMN promises.kept_in IS 'the message in which it was kept last';
ALTER TABLE promises
    ALTER text SET STATISTICS 0, ALTER said SET STATISTICS 0, ALTER quote SET STATISTICS 0,
    ALTER rule SET STATISTICS 0;
CREATE INDEX promises_due ON promises (due_at) WHERE state = 'open';
CREATE INDEX promises_of_user ON promises (user_id, due_at, id);
CREATE INDEX promises_of_conversation ON promises (conversation_id) WHERE conversation_id IS NOT NULL;
CREATE INDEX promises_of_message ON promises (source_message_id) WHERE source_message_id IS NOT NULL;
CREATE INDEX promises_of_space ON promises (space_id) WHERE space_id IS NOT NULL;
