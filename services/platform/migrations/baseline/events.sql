-- Events of users that no request of theirs caused, and the webhooks that are told of them.

CREATE TABLE user_events (
    id         bigint GENERATED ALWAYS AS IDENTITY,
    tenant_id  uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    user_id    uuid NOT NULL,
    kind       text NOT NULL,
    about      jsonb NOT NULL,
    at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (id, tenant_id),
    FOREIGN KEY (user_id, tenant_id) REFERENCES users (id, tenant_id) ON DELETE CASCADE
);
COMMENT ON TABLE user_events IS 'What happened to users lately: kinds and ids, without any words.';
CREATE INDEX user_events_of_user ON user_events (user_id, id);

CREATE TABLE webhooks (
    id           uuid NOT NULL,
    tenant_id    uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    url          text NOT NULL,
    secret       text NOT NULL,
    kinds        text[] NOT NULL DEFAULT '{}',
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (id, tenant_id)
);
COMMENT ON TABLE webhooks IS 'Addresses that are told of events of a tenant''s users.';
COMMENT ON COLUMN webhooks.kinds IS 'of which events; empty = of all';
CREATE INDEX webhooks_of_tenant ON webhooks (tenant_id, created_at, id);

CREATE TABLE webhook_deliveries (
    id          uuid NOT NULL,
    tenant_id   uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    webhook_id  uuid NOT NULL,
    event_id    bigint NOT NULL,
    state       text NOT NULL DEFAULT 'waiting',
    tries       integer NOT NULL DEFAULT 0,
    status      integer,
    error       text,
    created_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    settled_at  timestamptz,
    PRIMARY KEY (id, tenant_id),
    FOREIGN KEY (webhook_id, tenant_id) REFERENCES webhooks (id, tenant_id) ON DELETE CASCADE,
    FOREIGN KEY (event_id, tenant_id) REFERENCES user_events (id, tenant_id) ON DELETE CASCADE,
    CHECK (state IN ('waiting', 'delivered', 'failed'))
);
COMMENT ON TABLE webhook_deliveries IS 'What webhooks were told, or are to be told.';
COMMENT ON COLUMN webhook_deliveries.status IS 'the status of the last answer';
CREATE INDEX webhook_deliveries_of_webhook ON webhook_deliveries (webhook_id, created_at, id);
CREATE INDEX webhook_deliveries_of_event ON webhook_deliveries (event_id);
ALTER TABLE webhook_deliveries ALTER error SET STATISTICS 0;
