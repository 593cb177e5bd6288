-- Tenants and what they set up: keys, users, spaces, experts, rules.

CREATE TABLE tenants (
    id          uuid NOT NULL,
    name        text NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (id),
    UNIQUE (name)
);
COMMENT ON TABLE tenants IS
    'Customers of an installation. Nothing of one tenant can refer to, or be seen by, another.';

CREATE TABLE api_keys (
    id                uuid NOT NULL,
    tenant_id         uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    name              text NOT NULL,
    hash              bytea NOT NULL,
    scopes            text[] NOT NULL,
    created_at        timestamptz NOT NULL DEFAULT now(),
    last_used_at      timestamptz,
    revoked_at        timestamptz,
    acts_for_headers  boolean NOT NULL DEFAULT false,
    default_user      text,
    PRIMARY KEY (id, tenant_id),
    CHECK (octet_length(hash) = 32)
);
COMMENT ON TABLE api_keys IS 'Keys that callers identify themselves with; of each only a digest is kept.';
CREATE INDEX api_keys_of_tenant ON api_keys (tenant_id, created_at, id);

CREATE TABLE users (
    id            uuid NOT NULL,
    tenant_id     uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    external_id   text NOT NULL,
    timezone      text NOT NULL DEFAULT 'Asia/Shanghai',
    locale        text,
    display_name  text,
    memory        boolean NOT NULL DEFAULT true,
    created_at    timestamptz NOT NULL DEFAULT now(),
    quiet_hours   text,
    mood          boolean NOT NULL DEFAULT true,
    PRIMARY KEY (id, tenant_id),
    UNIQUE (tenant_id, external_id)
);
COMMENT ON TABLE users IS 'People who talk to the experts, by the caller''s own ids.';
COMMENT ON COLUMN users.memory IS 'false = their turns neither read memory nor add to it';
COMMENT ON COLUMN users.quiet_hours IS
    'when nothing is said unasked: 22:00-07:00, always, or never; NULL = as the setting says';
COMMENT ON COLUMN users.mood IS 'whether it is noted and told how they feel';
ALTER TABLE users
    ALTER external_id SET STATISTICS 0,
    ALTER display_name SET STATISTICS 0;

CREATE TABLE spaces (
    id          uuid NOT NULL,
    tenant_id   uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    user_id     uuid NOT NULL,
    name        text NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (id, tenant_id),
    UNIQUE (user_id, name, tenant_id),
    FOREIGN KEY (user_id, tenant_id) REFERENCES users (id, tenant_id) ON DELETE CASCADE,
    CHECK (length(name) BETWEEN 1 AND 64)
);
COMMENT ON TABLE spaces IS 'Parts of a user''s memory that are kept apart from each other.';
ALTER TABLE spaces
    ALTER name SET STATISTICS 0;

CREATE TABLE experts (
    id                     uuid NOT NULL,
    tenant_id              uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    name                   text NOT NULL,
    persona                text NOT NULL DEFAULT '',
    system_prompt          text NOT NULL,
    model                  text,
    context_strategy       text NOT NULL DEFAULT 'summary',
    context_window         integer NOT NULL DEFAULT 32000,
    context_threshold      numeric(3,2) NOT NULL DEFAULT 0.70,
    min_archive_messages   integer NOT NULL DEFAULT 20,
    reflection             boolean NOT NULL DEFAULT false,
    created_at             timestamptz NOT NULL DEFAULT now(),
    context_budget_tokens  integer,
    parts_off              text[] NOT NULL DEFAULT '{}',
    PRIMARY KEY (id, tenant_id),
    UNIQUE (tenant_id, name),
    CHECK (context_budget_tokens BETWEEN 500 AND 1000000),
    CHECK (context_strategy IN ('summary', 'topics', 'window')),
    CHECK (context_threshold BETWEEN 0 AND 1),
    CHECK (context_window > 0),
    CHECK (min_archive_messages > 0)
);
COMMENT ON TABLE experts IS 'Who answers: persona, model, and how a conversation is kept within the model''s window.';

CREATE TABLE experiments (
    id           uuid NOT NULL,
    tenant_id    uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    name         text NOT NULL,
    description  text NOT NULL DEFAULT '',
    status       text NOT NULL DEFAULT 'draft',
    variants     jsonb NOT NULL,
    experts      text[],
    share        real NOT NULL DEFAULT 1,
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    started_at   timestamptz,
    stopped_at   timestamptz,
    PRIMARY KEY (id, tenant_id),
    UNIQUE (tenant_id, name),
    CHECK (share > 0 AND share <= 1),
    CHECK (status IN ('draft', 'running', 'stopped'))
);
COMMENT ON TABLE experiments IS 'Settings that are compared on live traffic.';
CREATE INDEX experiments_running ON experiments (tenant_id) WHERE status = 'running';

CREATE TABLE upkeep_policies (
    tenant_id          uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    fading             text NOT NULL,
    fading_days        integer NOT NULL,
    fading_importance  double precision NOT NULL,
    updated_at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant_id),
    CHECK (fading IN ('never', 'archive')),
    CHECK (fading_days BETWEEN 1 AND 36500),
    CHECK (fading_importance BETWEEN 0 AND 1)
);
COMMENT ON TABLE upkeep_policies IS
    'How unused memories fade. A tenant without a row has the defaults.';

CREATE TABLE retention_rules (
    tenant_id  uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    kind       text NOT NULL,
    days       integer NOT NULL,
    set_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant_id, kind),
    CHECK (days BETWEEN 1 AND 36500),
    CHECK (kind IN ('messages', 'turns', 'jobs', 'operations'))
);
COMMENT ON TABLE retention_rules IS 'For how many days a tenant keeps what.';

CREATE TABLE encryption (
    is_on      boolean NOT NULL DEFAULT true,
    store_id   uuid NOT NULL,
    since      timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (is_on),
    CHECK (is_on)
);
COMMENT ON TABLE encryption IS 'One row where users'' words are encrypted, none elsewhere.';

INSERT INTO tenants (id, name) VALUES ('00000000-0000-7000-8000-000000000001', 'default');
INSERT INTO experts (id, tenant_id, name, system_prompt)
VALUES ('00000000-0000-7000-8000-000000000002', '00000000-0000-7000-8000-000000000001', 'default', '');
