"""Events of users that no request of theirs caused, and the webhooks that are told of them."""

from alembic import op

revision = "0117"
down_revision = "0116"

_TABLES = """
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
"""

_ISOLATION = """
DO $$
DECLARE of_tenants text;
BEGIN
    FOREACH of_tenants IN ARRAY ARRAY['user_events', 'webhooks', 'webhook_deliveries'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', of_tenants);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', of_tenants);
        EXECUTE format(
            'CREATE POLICY one_tenant ON %I USING '
            '(tenant_id = (SELECT nullif(current_setting(''anamnesis.tenant_id'', true), '''')::uuid))', of_tenants
        );
    END LOOP;
END $$;
"""

# Events of a user become visible in the order of their ids: a reader that has seen one misses none before it.
_FUNCTIONS = """
CREATE FUNCTION note_event(of_tenant uuid, of_user uuid, what text, ids jsonb) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    noted bigint;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('events ' || of_user, 0));
    DELETE FROM user_events WHERE user_id = of_user AND at < now() - interval '7 days';
    INSERT INTO user_events (tenant_id, user_id, kind, about) VALUES (of_tenant, of_user, what, ids)
    RETURNING id INTO noted;
    WITH told AS (
        INSERT INTO webhook_deliveries (id, tenant_id, webhook_id, event_id)
        SELECT gen_random_uuid(), of_tenant, w.id, noted FROM webhooks w
        WHERE w.tenant_id = of_tenant AND (w.kinds = '{}' OR what = ANY(w.kinds))
        RETURNING id
    )
    INSERT INTO procrastinate_jobs (queue_name, task_name, priority, args)
    SELECT 'default', 'deliver_webhook', 0, jsonb_build_object('tenant_id', of_tenant, 'delivery_id', told.id)
    FROM told;
    PERFORM pg_notify('anamnesis_events', of_user::text);
END $$;
COMMENT ON FUNCTION note_event(uuid, uuid, text, jsonb) IS 'Notes an event, and queues what webhooks are told.';

CREATE FUNCTION note_promise_kept() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM note_event(NEW.tenant_id, NEW.user_id, 'promise.due', jsonb_build_object(
        'promise_id', NEW.id, 'message_id', NEW.kept_in, 'conversation_id',
        (SELECT m.conversation_id FROM messages m WHERE m.id = NEW.kept_in)));
    RETURN NULL;
END $$;
CREATE TRIGGER note_promise_kept AFTER UPDATE OF kept_in ON promises FOR EACH ROW
    WHEN (NEW.kept_in IS NOT NULL AND NEW.kept_in IS DISTINCT FROM OLD.kept_in)
    EXECUTE FUNCTION note_promise_kept();

CREATE FUNCTION note_turn_failed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM note_event(NEW.tenant_id, c.user_id, 'turn.failed', jsonb_build_object(
        'turn_id', NEW.id, 'conversation_id', c.id))
    FROM conversations c WHERE c.id = NEW.conversation_id;
    RETURN NULL;
END $$;
CREATE TRIGGER note_turn_failed AFTER UPDATE OF status ON turns FOR EACH ROW
    WHEN (NEW.status = 'failed' AND OLD.status <> 'failed') EXECUTE FUNCTION note_turn_failed();

-- What programs keep, searches, and notes of filing are no changes of what is known.
CREATE FUNCTION note_memory_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM note_event(a.tenant_id, a.user_id,
        CASE WHEN a.proposes THEN 'proposal.waiting' ELSE 'memory.changed' END,
        jsonb_build_object('operation_ids', to_jsonb(a.ids[1:20])))
    FROM (
        SELECT o.tenant_id, o.user_id, o.type = 'memory_proposal' AS proposes, array_agg(o.id ORDER BY o.id) AS ids
        FROM added o
        WHERE o.type NOT IN ('memory_filing', 'store_put', 'store_delete', 'branch') AND o.type !~ '_search$'
          AND NOT o.trigger ? 'part_of'
        GROUP BY o.tenant_id, o.user_id, o.type = 'memory_proposal'
    ) AS a;
    RETURN NULL;
END $$;
CREATE TRIGGER note_memory_changed AFTER INSERT ON memory_operations REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION note_memory_changed();

CREATE FUNCTION note_erasure_done() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM note_event(NEW.tenant_id, NEW.user_id, 'erasure.done', jsonb_build_object('receipt_id', NEW.id));
    RETURN NULL;
END $$;
CREATE TRIGGER note_erasure_done AFTER INSERT ON forget_receipts FOR EACH ROW
    EXECUTE FUNCTION note_erasure_done();
"""


def upgrade() -> None:
    """Add the tables, and the triggers that fill them."""
    cursor = op.get_bind().connection.cursor()
    for part in (_TABLES, _ISOLATION, _FUNCTIONS):
        cursor.execute(part)
