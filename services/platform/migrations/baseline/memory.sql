-- Memory: core memory, episodes, and the log of what changed them.

CREATE TABLE core_memory_blocks (
    id                 uuid NOT NULL,
    tenant_id          uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    user_id            uuid NOT NULL,
    expert_id          uuid NOT NULL,
    section            text NOT NULL,
    content            jsonb NOT NULL,
    version            integer NOT NULL,
    rewritten_version  integer NOT NULL DEFAULT 0,
    updated_at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    space_id           uuid,
    PRIMARY KEY (id, tenant_id),
    UNIQUE NULLS NOT DISTINCT (user_id, expert_id, section, space_id, tenant_id),
    FOREIGN KEY (expert_id, tenant_id) REFERENCES experts (id, tenant_id),
    FOREIGN KEY (space_id, tenant_id) REFERENCES spaces (id, tenant_id) ON DELETE CASCADE,
    FOREIGN KEY (user_id, tenant_id) REFERENCES users (id, tenant_id) ON DELETE CASCADE,
    CHECK (length(section) BETWEEN 1 AND 64)
);
COMMENT ON TABLE core_memory_blocks IS
    'Core memory: a section of what an expert always knows about a user. A space has sections of its own beside '
    'the shared ones.';
ALTER TABLE core_memory_blocks
    ALTER section SET STATISTICS 0,
    ALTER content SET STATISTICS 0;
CREATE INDEX core_memory_blocks_of_space ON core_memory_blocks (space_id) WHERE space_id IS NOT NULL;

CREATE TABLE core_memory_history (
    block_id            uuid NOT NULL,
    version             integer NOT NULL,
    tenant_id           uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    old                 jsonb,
    new                 jsonb,
    trigger_message_id  uuid,
    actor               text NOT NULL,
    at                  timestamptz NOT NULL DEFAULT clock_timestamp(),
    made_by             jsonb NOT NULL DEFAULT '{}',
    PRIMARY KEY (block_id, version, tenant_id),
    FOREIGN KEY (block_id, tenant_id) REFERENCES core_memory_blocks (id, tenant_id) ON DELETE CASCADE
);
COMMENT ON TABLE core_memory_history IS 'Every content that a section of core memory had.';
ALTER TABLE core_memory_history
    ALTER old SET STATISTICS 0,
    ALTER new SET STATISTICS 0;
CREATE INDEX core_memory_history_message ON core_memory_history (trigger_message_id, tenant_id);

CREATE TABLE core_memory_pins (
    block_id   uuid NOT NULL,
    digest     bytea NOT NULL,
    tenant_id  uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    pinned_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (block_id, digest, tenant_id),
    FOREIGN KEY (block_id, tenant_id) REFERENCES core_memory_blocks (id, tenant_id) ON DELETE CASCADE
);
COMMENT ON TABLE core_memory_pins IS
    'Values of core memory that nothing changes by itself. A value is known by a digest with the section''s id: no '
    'word of it is stored twice.';

CREATE TABLE core_memory_generations (
    user_id     uuid NOT NULL,
    expert_id   uuid NOT NULL,
    tenant_id   uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    generation  bigint NOT NULL,
    PRIMARY KEY (user_id, expert_id, tenant_id),
    FOREIGN KEY (expert_id, tenant_id) REFERENCES experts (id, tenant_id) ON DELETE CASCADE,
    FOREIGN KEY (user_id, tenant_id) REFERENCES users (id, tenant_id) ON DELETE CASCADE
);
COMMENT ON TABLE core_memory_generations IS
    'Grows with every change of a user''s core memory with an expert. Whoever changes it locks its row first.';

CREATE TABLE episodes (
    id                  uuid NOT NULL,
    tenant_id           uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    user_id             uuid NOT NULL,
    expert_id           uuid NOT NULL,
    conversation_id     uuid,
    episode_type        text NOT NULL,
    content             text,
    importance          real NOT NULL,
    origin              text NOT NULL,
    source_message_ids  uuid[] NOT NULL DEFAULT '{}',
    created_at          timestamptz NOT NULL DEFAULT now(),
    last_recalled_at    timestamptz,
    recall_count        integer NOT NULL DEFAULT 0,
    superseded_by       uuid,
    superseded_in       uuid,
    archived_by         uuid,
    indexed_at          timestamptz,
    retracted_at        timestamptz,
    retraction_id       uuid,
    held_at             timestamptz,
    changed_in          xid8 NOT NULL DEFAULT '0',
    space_id            uuid,
    made_by             jsonb NOT NULL DEFAULT '{}',
    learned_at          timestamptz NOT NULL DEFAULT clock_timestamp(),
    pinned_at           timestamptz,
    valid_until         timestamptz,
    indexed_passages    smallint NOT NULL DEFAULT 1,
    PRIMARY KEY (id, tenant_id),
    FOREIGN KEY (conversation_id, tenant_id) REFERENCES conversations (id, tenant_id) ON DELETE CASCADE,
    FOREIGN KEY (expert_id, tenant_id) REFERENCES experts (id, tenant_id),
    FOREIGN KEY (space_id, tenant_id) REFERENCES spaces (id, tenant_id) ON DELETE CASCADE,
    FOREIGN KEY (user_id, tenant_id) REFERENCES users (id, tenant_id) ON DELETE CASCADE,
    FOREIGN KEY (superseded_by, tenant_id) REFERENCES episodes (id, tenant_id) ON DELETE SET NULL (superseded_by),
    FOREIGN KEY (superseded_in, tenant_id) REFERENCES core_memory_blocks (id, tenant_id)
        ON DELETE SET NULL (superseded_in),
    FOREIGN KEY (archived_by, tenant_id) REFERENCES upkeep_runs (id, tenant_id),
    CHECK ((episode_type = 'turn') = (content IS NULL)),
    CHECK (episode_type IN ('turn', 'preference', 'decision', 'context', 'outcome')),
    CHECK (importance BETWEEN 0 AND 1),
    CHECK (origin IN ('user_said', 'assistant_said', 'tool', 'document', 'derived'))
) WITH (fillfactor=85);
COMMENT ON TABLE episodes IS
    'What can be recalled: turns, whose texts stay in messages, and memories that were written.';
COMMENT ON COLUMN episodes.content IS 'of a written memory; of a turn, the texts are in messages';
COMMENT ON COLUMN episodes.superseded_by IS 'the memory that took its place';
COMMENT ON COLUMN episodes.superseded_in IS 'the section of core memory that says it now';
COMMENT ON COLUMN episodes.archived_by IS 'the run of upkeep that took it out of recall';
COMMENT ON COLUMN episodes.held_at IS
    'of a turn of a game or story, which is not recalled; without retraction_id filing has not decided yet';
COMMENT ON COLUMN episodes.valid_until IS 'of a turn: when all that it says was replaced';
COMMENT ON COLUMN episodes.indexed_passages IS
    'the most passages that one of its messages, or it itself, ever had in the index';
COMMENT ON COLUMN episodes.changed_in IS
    'the transaction that changed it last: a reader finds what its snapshot did not see';
COMMENT ON COLUMN episodes.learned_at IS 'when the service learned it, which of an import is not when it was said';
COMMENT ON COLUMN episodes.made_by IS
    '{actor, turn_id, job, job_id, prompt, model}, each only where it applies; no words of a user';
COMMENT ON COLUMN episodes.retraction_id IS 'the operation in memory_operations that changed the row last';
ALTER TABLE episodes
    ALTER content SET STATISTICS 0;
CREATE INDEX episodes_changed ON episodes (user_id, changed_in);
CREATE INDEX episodes_in_order ON episodes (user_id, created_at, id);
CREATE INDEX episodes_not_indexed ON episodes (user_id, created_at, id) WHERE indexed_at IS NULL;
CREATE INDEX episodes_of_conversation ON episodes (conversation_id);
CREATE INDEX episodes_of_space ON episodes (space_id) WHERE space_id IS NOT NULL;
CREATE INDEX episodes_of_tenant ON episodes (tenant_id, id);
CREATE INDEX episodes_retracted ON episodes (retraction_id) WHERE retraction_id IS NOT NULL;
CREATE INDEX episodes_superseded ON episodes (superseded_by) WHERE superseded_by IS NOT NULL;
CREATE INDEX episodes_superseded_in ON episodes (superseded_in) WHERE superseded_in IS NOT NULL;
CREATE INDEX episodes_archived ON episodes (archived_by) WHERE archived_by IS NOT NULL;
CREATE INDEX episodes_to_index ON episodes (tenant_id, id) WHERE indexed_at IS NULL;

CREATE TABLE recall_exclusions (
    id               uuid NOT NULL,
    tenant_id        uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    conversation_id  uuid NOT NULL,
    episode_id       uuid,
    message_id       uuid,
    created_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (id, tenant_id),
    UNIQUE NULLS NOT DISTINCT (conversation_id, episode_id, message_id, tenant_id),
    FOREIGN KEY (conversation_id, tenant_id) REFERENCES conversations (id, tenant_id) ON DELETE CASCADE,
    FOREIGN KEY (episode_id, tenant_id) REFERENCES episodes (id, tenant_id) ON DELETE CASCADE,
    FOREIGN KEY (message_id, tenant_id) REFERENCES messages (id, tenant_id) ON DELETE CASCADE,
    CHECK (num_nonnulls(episode_id, message_id) = 1)
);
COMMENT ON TABLE recall_exclusions IS 'What is not to be recalled in a conversation.';
CREATE INDEX recall_exclusions_of_episode ON recall_exclusions (episode_id) WHERE episode_id IS NOT NULL;
CREATE INDEX recall_exclusions_of_message ON recall_exclusions (message_id) WHERE message_id IS NOT NULL;

CREATE TABLE memory_operations (
    id               uuid NOT NULL,
    tenant_id        uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    user_id          uuid NOT NULL,
    conversation_id  uuid,
    turn_id          uuid,
    type             text NOT NULL,
    field            text,
    old_value        jsonb,
    new_value        jsonb,
    query            text,
    results          jsonb,
    trigger          jsonb NOT NULL,
    at               timestamptz NOT NULL DEFAULT clock_timestamp(),
    undone_at        timestamptz,
    space_id         uuid,
    untold           boolean NOT NULL DEFAULT false,
    PRIMARY KEY (id, tenant_id),
    FOREIGN KEY (conversation_id, tenant_id) REFERENCES conversations (id, tenant_id) ON DELETE CASCADE,
    FOREIGN KEY (space_id, tenant_id) REFERENCES spaces (id, tenant_id) ON DELETE CASCADE,
    FOREIGN KEY (user_id, tenant_id) REFERENCES users (id, tenant_id) ON DELETE CASCADE
);
COMMENT ON TABLE memory_operations IS 'The log of what changed memory, with what undoes it.';
COMMENT ON COLUMN memory_operations.untold IS 'made by filing, and no turn has told the user of it yet';
ALTER TABLE memory_operations
    ALTER field SET STATISTICS 0,
    ALTER old_value SET STATISTICS 0,
    ALTER new_value SET STATISTICS 0,
    ALTER query SET STATISTICS 0,
    ALTER results SET STATISTICS 0,
    ALTER trigger SET STATISTICS 0;
CREATE INDEX memory_operations_in_order ON memory_operations (user_id, at, id);
CREATE INDEX memory_operations_of_conversation ON memory_operations (conversation_id);
CREATE INDEX memory_operations_of_space ON memory_operations (space_id) WHERE space_id IS NOT NULL;
CREATE INDEX memory_operations_parts ON memory_operations ((trigger ->> 'part_of')) WHERE trigger ? 'part_of';
CREATE INDEX memory_operations_proposals ON memory_operations (user_id, at, id) WHERE type = 'memory_proposal';
CREATE INDEX memory_operations_untold ON memory_operations (user_id, tenant_id) WHERE untold;

CREATE TABLE memory_versions (
    id          uuid NOT NULL DEFAULT gen_random_uuid(),
    tenant_id   uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    user_id     uuid NOT NULL,
    space_id    uuid,
    episode_id  uuid,
    message_id  uuid,
    day_id      uuid,
    closed_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    was         jsonb NOT NULL,
    PRIMARY KEY (id, tenant_id),
    FOREIGN KEY (episode_id, tenant_id) REFERENCES episodes (id, tenant_id) ON DELETE CASCADE,
    FOREIGN KEY (message_id, tenant_id) REFERENCES messages (id, tenant_id) ON DELETE CASCADE,
    FOREIGN KEY (space_id, tenant_id) REFERENCES spaces (id, tenant_id) ON DELETE CASCADE,
    FOREIGN KEY (user_id, tenant_id) REFERENCES users (id, tenant_id) ON DELETE CASCADE,
    CHECK (num_nonnulls(episode_id, message_id, day_id) = 1)
);
COMMENT ON TABLE memory_versions IS
    'What a row was before it changed, for questions about an earlier moment. Versions of an episode or a message '
    'go with their row; of the summary of a day, which can go without them, the whole row is kept.';
COMMENT ON COLUMN memory_versions.was IS 'the columns that can change, as they were until closed_at';
ALTER TABLE memory_versions
    ALTER was SET STATISTICS 0;
CREATE INDEX memory_versions_of_episode ON memory_versions (episode_id, closed_at) WHERE episode_id IS NOT NULL;
CREATE INDEX memory_versions_of_message ON memory_versions (message_id, closed_at) WHERE message_id IS NOT NULL;
CREATE INDEX memory_versions_of_space ON memory_versions (space_id) WHERE space_id IS NOT NULL;
CREATE INDEX memory_versions_of_user ON memory_versions (user_id, closed_at);

CREATE TABLE memory_generations (
    user_id     uuid NOT NULL,
    tenant_id   uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    generation  bigint NOT NULL DEFAULT 0,
    removed_at  bigint NOT NULL DEFAULT 0,
    changed_in  xid8 NOT NULL DEFAULT '0',
    PRIMARY KEY (user_id, tenant_id),
    FOREIGN KEY (user_id, tenant_id) REFERENCES users (id, tenant_id) ON DELETE CASCADE
) WITH (fillfactor=50);
COMMENT ON TABLE memory_generations IS
    'Grows with every change of what can be recalled of a user. In microseconds, so that two histories of one '
    'user, as after a restore, have no generation in common.';
COMMENT ON COLUMN memory_generations.removed_at IS
    'the generation after the last change that leaves no row by which it could be found';

CREATE TABLE store_items (
    id            uuid NOT NULL,
    tenant_id     uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    user_id       uuid NOT NULL,
    space_id      uuid,
    namespace     text NOT NULL,
    key           text NOT NULL,
    value         text NOT NULL,
    index_paths   jsonb,
    ttl_minutes   double precision,
    expires_at    timestamptz,
    operation_id  uuid NOT NULL,
    vector        text,
    embedded_by   text,
    created_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    document      jsonb GENERATED ALWAYS AS (
        CASE WHEN starts_with(value, '{') AND octet_length(value) <= 8192 AND strpos(value, '\u0000') = 0
                  AND strpos(value, 'NaN') = 0 AND strpos(value, 'Infinity') = 0 THEN value::jsonb END
    ) STORED,
    PRIMARY KEY (id, tenant_id),
    UNIQUE NULLS NOT DISTINCT (user_id, namespace, key, space_id, tenant_id),
    FOREIGN KEY (space_id, tenant_id) REFERENCES spaces (id, tenant_id) ON DELETE CASCADE,
    FOREIGN KEY (user_id, tenant_id) REFERENCES users (id, tenant_id) ON DELETE CASCADE
);
COMMENT ON TABLE store_items IS
    'What programs keep of a user under a namespace and a key, as LangGraph''s stores do: nothing of it is recalled.';
COMMENT ON COLUMN store_items.namespace IS 'labels, separated by periods';
COMMENT ON COLUMN store_items.value IS 'the text of a JSON object, as it was given';
COMMENT ON COLUMN store_items.index_paths IS 'paths of what a search reads; NULL = every text';
COMMENT ON COLUMN store_items.operation_id IS 'the operation in memory_operations that wrote it last';
COMMENT ON COLUMN store_items.vector IS 'made when it is first searched';
COMMENT ON COLUMN store_items.document IS
    'the value for filters; NULL = it is large, encrypted, or more than JSON of PostgreSQL holds';
ALTER TABLE store_items
    ALTER value SET STATISTICS 0,
    ALTER index_paths SET STATISTICS 0,
    ALTER vector SET STATISTICS 0,
    ALTER document SET STATISTICS 0;
CREATE INDEX store_items_of_space ON store_items (space_id) WHERE space_id IS NOT NULL;
CREATE INDEX store_items_newest ON store_items (tenant_id, user_id, updated_at, id);
CREATE INDEX store_items_expiring ON store_items (tenant_id, expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX store_items_of_operation ON store_items (user_id, operation_id);
