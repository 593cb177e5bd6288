-- What is counted, and the queue of background jobs, whose tables the migration makes first.

CREATE TABLE usage (
    tenant_id      uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    day            date NOT NULL,
    user_id        uuid,
    expert_id      uuid,
    purpose        text NOT NULL,
    model          text NOT NULL,
    calls          bigint NOT NULL,
    input_tokens   bigint NOT NULL,
    output_tokens  bigint NOT NULL,
    cached_tokens  bigint NOT NULL,
    UNIQUE NULLS NOT DISTINCT (tenant_id, day, user_id, expert_id, purpose, model),
    FOREIGN KEY (user_id, tenant_id) REFERENCES users (id, tenant_id) ON DELETE CASCADE
);
COMMENT ON TABLE usage IS
    'Tokens and calls by day, user, expert, purpose and model. An expert''s rows outlive the expert.';
COMMENT ON COLUMN usage.user_id IS 'NULL = nobody in particular caused it; so with expert_id';
CREATE INDEX usage_of_users ON usage (user_id);

CREATE TABLE job_failures (
    job_id     bigint NOT NULL,
    failures   integer NOT NULL,
    reason     text NOT NULL,
    failed_at  timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (job_id),
    FOREIGN KEY (job_id) REFERENCES procrastinate_jobs (id) ON DELETE CASCADE,
    CHECK (failures >= 0)
);
COMMENT ON TABLE job_failures IS 'Why a job failed. Its row in the queue, whose arguments name the tenant, owns it.';

-- Jobs of no tenant are shown to the default one.
CREATE INDEX jobs_of_tenant ON procrastinate_jobs
    ((coalesce(args ->> 'tenant_id', '00000000-0000-7000-8000-000000000001')), id);
CREATE INDEX jobs_failed ON procrastinate_jobs (id) WHERE status = 'failed';

CREATE TABLE tool_accounts (
    tenant_id   uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    user_id     uuid NOT NULL,
    server      text NOT NULL,
    signed_in   text NOT NULL,
    tools       text NOT NULL,
    updated_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (user_id, server, tenant_id),
    FOREIGN KEY (user_id, tenant_id) REFERENCES users (id, tenant_id) ON DELETE CASCADE
);
COMMENT ON TABLE tool_accounts IS 'Accounts that users have connected at servers of tools.';
COMMENT ON COLUMN tool_accounts.signed_in IS
    'tokens, the registered client and its authorization server, as JSON; never exported';
COMMENT ON COLUMN tool_accounts.tools IS 'the tools that the server listed when it was connected, as JSON';
