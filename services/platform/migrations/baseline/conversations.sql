-- Conversations, what was said in them, and what is made of it. Columns with words of users keep no samples in the
-- planner's statistics, which would outlive an erasure.

-- The values sort from the least trusted on, so that the least trusted of several origins is the smallest.
CREATE TYPE foreign_origin AS ENUM ('document', 'import', 'tool', 'operator');

CREATE TABLE conversations (
    id            uuid NOT NULL,
    tenant_id     uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    user_id       uuid NOT NULL,
    expert_id     uuid NOT NULL,
    session_key   text NOT NULL,
    title         text NOT NULL DEFAULT '',
    created_at    timestamptz NOT NULL DEFAULT now(),
    retracted_at  timestamptz,
    space_id      uuid,
    renamed       boolean NOT NULL DEFAULT false,
    pinned_at     timestamptz,
    in_story      boolean NOT NULL DEFAULT false,
    metadata      jsonb NOT NULL DEFAULT '{}',
    PRIMARY KEY (id, tenant_id),
    UNIQUE (tenant_id, user_id, session_key),
    FOREIGN KEY (expert_id, tenant_id) REFERENCES experts (id, tenant_id),
    FOREIGN KEY (space_id, tenant_id) REFERENCES spaces (id, tenant_id) ON DELETE CASCADE,
    FOREIGN KEY (user_id, tenant_id) REFERENCES users (id, tenant_id) ON DELETE CASCADE
);
COMMENT ON TABLE conversations IS 'Conversations of a user with an expert, by the caller''s session key.';
COMMENT ON COLUMN conversations.space_id IS 'NULL = outside any space: shared by all of the user''s spaces';
COMMENT ON COLUMN conversations.renamed IS 'the title is the user''s own, and not the beginning of what was said';
COMMENT ON COLUMN conversations.retracted_at IS 'when something in it was last retracted, or brought back';
COMMENT ON COLUMN conversations.in_story IS 'a game or story that the user has announced goes on';
COMMENT ON COLUMN conversations.metadata IS 'what a client of /v1/conversations notes on it: texts by names';
ALTER TABLE conversations
    ALTER session_key SET STATISTICS 0,
    ALTER title SET STATISTICS 0;
CREATE INDEX conversations_newest ON conversations (user_id, created_at DESC, id DESC);
CREATE INDEX conversations_of_space ON conversations (space_id) WHERE space_id IS NOT NULL;

CREATE TABLE conversation_branches (
    id               uuid NOT NULL,
    tenant_id        uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    conversation_id  uuid NOT NULL,
    after_turn_id    uuid,
    reason           text NOT NULL,
    created_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (id, tenant_id),
    FOREIGN KEY (conversation_id, tenant_id) REFERENCES conversations (id, tenant_id) ON DELETE CASCADE,
    CHECK (reason IN ('edit', 'regenerate', 'switch'))
);
COMMENT ON TABLE conversation_branches IS
    'Tails of a conversation that were put aside: by an edit, by a new answer, or by going to another branch. '
    'Messages on a branch name it; those of the conversation as it goes on name none.';
COMMENT ON COLUMN conversation_branches.after_turn_id IS
    'the turn that it follows; NULL = it begins the conversation';
CREATE INDEX branches_of_conversation ON conversation_branches (conversation_id, after_turn_id);

CREATE TABLE topics (
    id                uuid NOT NULL,
    tenant_id         uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    conversation_id   uuid NOT NULL,
    user_id           uuid NOT NULL,
    expert_id         uuid NOT NULL,
    title             text NOT NULL,
    summary           text NOT NULL,
    keywords          jsonb NOT NULL DEFAULT '[]',
    message_count     integer NOT NULL,
    first_message_id  uuid NOT NULL,
    last_message_id   uuid NOT NULL,
    first_message_at  timestamptz NOT NULL,
    last_message_at   timestamptz NOT NULL,
    status            text NOT NULL DEFAULT 'archived',
    created_at        timestamptz NOT NULL DEFAULT now(),
    made_by           jsonb NOT NULL DEFAULT '{}',
    PRIMARY KEY (id, tenant_id),
    FOREIGN KEY (conversation_id, tenant_id) REFERENCES conversations (id, tenant_id) ON DELETE CASCADE,
    FOREIGN KEY (expert_id, tenant_id) REFERENCES experts (id, tenant_id),
    FOREIGN KEY (user_id, tenant_id) REFERENCES users (id, tenant_id) ON DELETE CASCADE,
    CHECK (message_count > 0),
    CHECK (status = 'archived'),
    CHECK (length(title) >= 1 AND (length(title) <= 100 OR starts_with(title, '~[1.')))
);
COMMENT ON TABLE topics IS 'Stretches of a conversation that left the window, each with a summary.';
ALTER TABLE topics
    ALTER title SET STATISTICS 0,
    ALTER summary SET STATISTICS 0,
    ALTER keywords SET STATISTICS 0;
CREATE INDEX topics_in_order ON topics (conversation_id, last_message_at, id);

CREATE TABLE messages (
    id               uuid NOT NULL,
    tenant_id        uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    conversation_id  uuid NOT NULL,
    turn_id          uuid NOT NULL,
    role             text NOT NULL,
    content          text NOT NULL,
    parts            jsonb NOT NULL DEFAULT '[]',
    completed        boolean NOT NULL,
    token_count      integer NOT NULL,
    metadata         jsonb NOT NULL DEFAULT '{}',
    created_at       timestamptz NOT NULL DEFAULT now(),
    topic_id         uuid,
    uncovered        boolean NOT NULL DEFAULT false,
    external_id      text,
    speaker          text,
    import_key       text,
    private_note     jsonb,
    retracted_at     timestamptz,
    retraction_id    uuid,
    memory_text      text,
    off_record       boolean NOT NULL DEFAULT false,
    branch_id        uuid,
    digest           bytea,
    note_made_by     jsonb NOT NULL DEFAULT '{}',
    origin           foreign_origin,
    foreign_spans    integer[],
    feeling          text,
    feeling_span     integer[],
    PRIMARY KEY (id, tenant_id),
    FOREIGN KEY (branch_id, tenant_id) REFERENCES conversation_branches (id, tenant_id)
        ON DELETE SET NULL (branch_id),
    FOREIGN KEY (conversation_id, tenant_id) REFERENCES conversations (id, tenant_id) ON DELETE CASCADE,
    FOREIGN KEY (topic_id, tenant_id) REFERENCES topics (id, tenant_id) ON DELETE SET NULL (topic_id),
    CHECK (role IN ('user', 'assistant')),
    CHECK (token_count >= 0)
);
COMMENT ON TABLE messages IS 'What was said, word by word.';
COMMENT ON COLUMN messages.external_id IS 'the caller''s id of an imported message';
COMMENT ON COLUMN messages.import_key IS 'by which an imported message is known when it comes again';
COMMENT ON COLUMN messages.private_note IS 'the expert''s private note about the turn';
COMMENT ON COLUMN messages.memory_text IS 'what memory keeps in place of the content';
COMMENT ON COLUMN messages.off_record IS 'shown in its own conversation only';
COMMENT ON COLUMN messages.retraction_id IS 'the operation in memory_operations that changed the row last';
COMMENT ON COLUMN messages.origin IS
    'NULL = the user''s or the assistant''s own words; the values sort from the least trusted on';
COMMENT ON COLUMN messages.foreign_spans IS
    'of an answer of foreign origin: where sentences that repeat texts of others begin and end; NULL = all of it';
COMMENT ON COLUMN messages.feeling IS 'what the user feels, as their own words in it say';
COMMENT ON COLUMN messages.feeling_span IS 'where these words begin and end';
COMMENT ON COLUMN messages.uncovered IS 'committed late, behind what the summary covers';
COMMENT ON COLUMN messages.digest IS 'of an answer, by which a client that sends the history again is recognised';
ALTER TABLE messages
    ALTER content SET STATISTICS 0,
    ALTER parts SET STATISTICS 0,
    ALTER metadata SET STATISTICS 0,
    ALTER external_id SET STATISTICS 0,
    ALTER speaker SET STATISTICS 0,
    ALTER import_key SET STATISTICS 0,
    ALTER private_note SET STATISTICS 0,
    ALTER memory_text SET STATISTICS 0,
    ALTER digest SET STATISTICS 0,
    ALTER feeling SET STATISTICS 0,
    ALTER feeling_span SET STATISTICS 0;
-- Parts are compressed already.
ALTER TABLE messages ALTER parts SET STORAGE EXTERNAL;
CREATE INDEX messages_by_digest ON messages (digest) WHERE role = 'assistant' AND digest IS NOT NULL;
CREATE INDEX messages_by_external_id ON messages (conversation_id, external_id) WHERE external_id IS NOT NULL;
CREATE UNIQUE INDEX messages_imported ON messages (conversation_id, import_key, tenant_id)
    WHERE import_key IS NOT NULL;
CREATE INDEX messages_feeling ON messages (conversation_id, created_at) WHERE feeling IS NOT NULL;
CREATE INDEX messages_in_order ON messages (conversation_id, created_at, id);
CREATE INDEX messages_of_branch ON messages (branch_id) WHERE branch_id IS NOT NULL;
CREATE INDEX messages_of_foreign_origin ON messages (conversation_id, origin) WHERE origin IS NOT NULL;
CREATE INDEX messages_of_topic ON messages (topic_id) WHERE topic_id IS NOT NULL;
CREATE INDEX messages_of_turn ON messages (turn_id);
CREATE INDEX messages_retracted ON messages (retraction_id) WHERE retraction_id IS NOT NULL;
CREATE INDEX messages_unarchived ON messages (conversation_id, created_at, id) WHERE topic_id IS NULL AND completed;
CREATE INDEX messages_uncovered ON messages (conversation_id, created_at, id) WHERE uncovered;

CREATE TABLE turns (
    id                    uuid NOT NULL,
    tenant_id             uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    conversation_id       uuid NOT NULL,
    user_message_id       uuid NOT NULL,
    assistant_message_id  uuid,
    status                text NOT NULL,
    idempotency_key       text,
    route_decision        jsonb,
    usage                 jsonb,
    timings               jsonb,
    degraded              jsonb NOT NULL DEFAULT '[]',
    context_report        jsonb,
    error                 jsonb,
    started_at            timestamptz NOT NULL DEFAULT now(),
    finished_at           timestamptz,
    lease_expires_at      timestamptz,
    accepted_at           timestamptz NOT NULL DEFAULT clock_timestamp(),
    request               jsonb NOT NULL DEFAULT '{}',
    stop_requested        text,
    memory_changes        jsonb NOT NULL DEFAULT '[]',
    experiments           jsonb,
    prompt                jsonb,
    to_file               boolean NOT NULL DEFAULT true,
    process               bigint,
    run_again             boolean NOT NULL DEFAULT false,
    shown                 boolean NOT NULL DEFAULT false,
    PRIMARY KEY (id, tenant_id),
    UNIQUE (conversation_id, idempotency_key, tenant_id),
    FOREIGN KEY (conversation_id, tenant_id) REFERENCES conversations (id, tenant_id) ON DELETE CASCADE,
    CHECK (status IN ('waiting', 'running', 'paused', 'completed', 'partial', 'failed', 'cancelled')),
    CHECK (stop_requested IN ('cancelled', 'partial', 'forgotten'))
);
COMMENT ON TABLE turns IS 'A message of the user''s and the run that answers it.';
COMMENT ON COLUMN turns.status IS 'paused = its client runs tools and brings their results';
COMMENT ON COLUMN turns.to_file IS 'what was said in it waits to be filed';
COMMENT ON COLUMN turns.process IS
    'number of the process that runs the turn, which it holds as a shared advisory lock';
COMMENT ON COLUMN turns.run_again IS
    'whether the first process was gone before it had shown anything, and another one began again';
COMMENT ON COLUMN turns.shown IS
    'whether it has shown text or called a tool, as its process said when it renewed the lease';
COMMENT ON COLUMN turns.prompt IS
    'an array of {name, text, tokens}; the conversation''s own messages are named by message_ids';
COMMENT ON COLUMN turns.experiments IS 'variants by the ids of their experiments';
ALTER TABLE turns
    ALTER idempotency_key SET STATISTICS 0,
    ALTER context_report SET STATISTICS 0,
    ALTER error SET STATISTICS 0,
    ALTER request SET STATISTICS 0,
    ALTER memory_changes SET STATISTICS 0,
    ALTER prompt SET STATISTICS 0;
CREATE INDEX turns_leased ON turns (lease_expires_at) WHERE status IN ('waiting', 'running');
CREATE INDEX turns_of_conversation ON turns (conversation_id, accepted_at, id);
CREATE INDEX turns_of_experiments ON turns USING gin (experiments) WHERE experiments IS NOT NULL;
CREATE INDEX turns_of_tenant ON turns (tenant_id, accepted_at, id);
CREATE INDEX turns_paused ON turns (conversation_id, lease_expires_at) WHERE status = 'paused';
CREATE INDEX turns_to_file ON turns (conversation_id, tenant_id) WHERE to_file;
CREATE UNIQUE INDEX turns_one_running ON turns (conversation_id, tenant_id) WHERE status = 'running';
CREATE INDEX turns_waiting ON turns (conversation_id, accepted_at, id) WHERE status = 'waiting';
CREATE INDEX turns_with_prompt ON turns (conversation_id) WHERE prompt IS NOT NULL;

CREATE TABLE feedback (
    message_id  uuid NOT NULL,
    tenant_id   uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    rating      smallint NOT NULL,
    comment     text,
    tags        text[] NOT NULL DEFAULT '{}',
    updated_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (message_id, tenant_id),
    FOREIGN KEY (message_id, tenant_id) REFERENCES messages (id, tenant_id) ON DELETE CASCADE,
    CHECK (rating IN (-1, 1))
);
COMMENT ON TABLE feedback IS 'Users'' ratings. Of a message and not of a turn: an imported message has no turn.';
ALTER TABLE feedback
    ALTER comment SET STATISTICS 0,
    ALTER tags SET STATISTICS 0;

CREATE TABLE context_epochs (
    conversation_id          uuid NOT NULL,
    tenant_id                uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    number                   integer NOT NULL,
    strategy                 text NOT NULL,
    reason                   text NOT NULL,
    begun_at                 timestamptz NOT NULL,
    summary                  text NOT NULL,
    summary_version          integer NOT NULL,
    topics                   jsonb NOT NULL,
    core_versions            jsonb NOT NULL DEFAULT '{}',
    history_from_created_at  timestamptz,
    history_from_message_id  uuid,
    prefix                   jsonb NOT NULL,
    core_memory              jsonb NOT NULL DEFAULT '{}',
    persona_card             text NOT NULL DEFAULT '',
    ended_by                 text,
    PRIMARY KEY (conversation_id, tenant_id),
    FOREIGN KEY (conversation_id, tenant_id) REFERENCES conversations (id, tenant_id) ON DELETE CASCADE
);
COMMENT ON TABLE context_epochs IS
    'What the prompts of a conversation begin with until that changes, so that providers can cache it.';
ALTER TABLE context_epochs
    ALTER summary SET STATISTICS 0,
    ALTER topics SET STATISTICS 0,
    ALTER core_versions SET STATISTICS 0,
    ALTER prefix SET STATISTICS 0,
    ALTER core_memory SET STATISTICS 0,
    ALTER persona_card SET STATISTICS 0;

CREATE TABLE conversation_summaries (
    conversation_id             uuid NOT NULL,
    tenant_id                   uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    summary                     text NOT NULL,
    summary_version             integer NOT NULL,
    covered_through_created_at  timestamptz NOT NULL,
    covered_through_message_id  uuid NOT NULL,
    covered_message_count       integer NOT NULL,
    increments_since_full       integer NOT NULL,
    rewritten_version           integer NOT NULL DEFAULT 0,
    updated_at                  timestamptz NOT NULL DEFAULT now(),
    made_by                     jsonb NOT NULL DEFAULT '{}',
    PRIMARY KEY (conversation_id, tenant_id),
    FOREIGN KEY (conversation_id, tenant_id) REFERENCES conversations (id, tenant_id) ON DELETE CASCADE
);
COMMENT ON TABLE conversation_summaries IS 'The rolling summary of a conversation.';
ALTER TABLE conversation_summaries
    ALTER summary SET STATISTICS 0;

CREATE TABLE summary_parts (
    conversation_id     uuid NOT NULL,
    part                integer NOT NULL,
    tenant_id           uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    summary             text NOT NULL,
    through_created_at  timestamptz NOT NULL,
    through_message_id  uuid NOT NULL,
    message_count       integer NOT NULL,
    made_by             jsonb NOT NULL DEFAULT '{}',
    PRIMARY KEY (conversation_id, part, tenant_id),
    FOREIGN KEY (conversation_id, tenant_id) REFERENCES conversations (id, tenant_id) ON DELETE CASCADE
);
COMMENT ON TABLE summary_parts IS
    'Summaries of stretches that never change again: the whole summary is made again from them, not from the '
    'transcript.';
ALTER TABLE summary_parts
    ALTER summary SET STATISTICS 0;

CREATE TABLE visits (
    id                    uuid NOT NULL,
    tenant_id             uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    conversation_id       uuid NOT NULL,
    user_id               uuid NOT NULL,
    expert_id             uuid NOT NULL,
    started_at            timestamptz NOT NULL,
    last_active_at        timestamptz NOT NULL,
    ended_at              timestamptz,
    end_reason            text,
    message_count         integer NOT NULL,
    summary               text,
    key_topics            jsonb NOT NULL DEFAULT '[]',
    summary_generated_at  timestamptz,
    summarised_count      integer NOT NULL DEFAULT 0,
    daily_due_at          timestamptz,
    space_id              uuid,
    made_by               jsonb NOT NULL DEFAULT '{}',
    PRIMARY KEY (id, tenant_id),
    FOREIGN KEY (conversation_id, tenant_id) REFERENCES conversations (id, tenant_id) ON DELETE CASCADE,
    FOREIGN KEY (expert_id, tenant_id) REFERENCES experts (id, tenant_id),
    FOREIGN KEY (space_id, tenant_id) REFERENCES spaces (id, tenant_id) ON DELETE CASCADE,
    FOREIGN KEY (user_id, tenant_id) REFERENCES users (id, tenant_id) ON DELETE CASCADE,
    CHECK ((ended_at IS NULL) = (end_reason IS NULL)),
    CHECK (started_at <= last_active_at),
    CHECK (end_reason IN ('closed', 'idle'))
);
COMMENT ON TABLE visits IS
    'Stretches of activity in a conversation. They never overlap, so no message names its visit.';
ALTER TABLE visits
    ALTER summary SET STATISTICS 0,
    ALTER key_topics SET STATISTICS 0;
CREATE INDEX visits_due ON visits (tenant_id, daily_due_at) WHERE daily_due_at IS NOT NULL;
CREATE INDEX visits_idle ON visits (tenant_id, last_active_at) WHERE ended_at IS NULL;
CREATE INDEX visits_of_conversation ON visits (conversation_id, started_at);
CREATE INDEX visits_of_space ON visits (space_id) WHERE space_id IS NOT NULL;
CREATE INDEX visits_of_user ON visits (user_id, started_at, id);
CREATE UNIQUE INDEX visits_open ON visits (conversation_id, tenant_id) WHERE ended_at IS NULL;
CREATE INDEX visits_with_expert ON visits (user_id, expert_id, last_active_at) INCLUDE (tenant_id);

CREATE TABLE daily_summaries (
    user_id        uuid NOT NULL,
    expert_id      uuid NOT NULL,
    date           date NOT NULL,
    tenant_id      uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    timezone       text NOT NULL,
    summary        text NOT NULL,
    key_topics     jsonb NOT NULL DEFAULT '[]',
    session_count  integer NOT NULL,
    message_count  integer NOT NULL,
    visit_ids      uuid[] NOT NULL,
    updated_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    space_id       uuid,
    id             uuid NOT NULL DEFAULT gen_random_uuid(),
    made_by        jsonb NOT NULL DEFAULT '{}',
    PRIMARY KEY (id, tenant_id),
    UNIQUE NULLS NOT DISTINCT (user_id, expert_id, date, space_id, tenant_id),
    FOREIGN KEY (expert_id, tenant_id) REFERENCES experts (id, tenant_id) ON DELETE CASCADE,
    FOREIGN KEY (space_id, tenant_id) REFERENCES spaces (id, tenant_id) ON DELETE CASCADE,
    FOREIGN KEY (user_id, tenant_id) REFERENCES users (id, tenant_id) ON DELETE CASCADE
);
COMMENT ON TABLE daily_summaries IS 'What a user and an expert talked about on a day of the user''s time zone.';
COMMENT ON COLUMN daily_summaries.visit_ids IS 'what the summary was made from';
ALTER TABLE daily_summaries
    ALTER summary SET STATISTICS 0,
    ALTER key_topics SET STATISTICS 0;
CREATE INDEX daily_summaries_of_space ON daily_summaries (space_id) WHERE space_id IS NOT NULL;

