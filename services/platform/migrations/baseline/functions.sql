-- Functions and triggers: what holds whoever writes.

-- The service's role sees one tenant a transaction. Some questions come before a tenant is known; functions of the
-- owner answer them, with ids only.

-- Turns that have lost their process.
CREATE FUNCTION expired_turns(OUT tenant_id uuid, OUT turn_id uuid, OUT status text)
RETURNS SETOF record
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public AS $$
    (SELECT t.tenant_id, t.id, t.status FROM turns t
     WHERE t.status IN ('waiting', 'running')
       AND (t.lease_expires_at < now() OR t.lease_expires_at > now() + interval '15 minutes')
     ORDER BY t.accepted_at, t.id LIMIT 100)
    UNION ALL
    (SELECT t.tenant_id, t.id, t.status FROM turns t
     WHERE t.status = 'paused' AND t.lease_expires_at < now() LIMIT 100)
$$;

-- A process holds an advisory lock by its number for as long as it is connected. Who has just lost the connection
-- still renews its leases, and after a start of the server everybody first connects again. The process that asks
-- renews what it runs: turns of its own that it does not renew were opened by a statement without an answer.
CREATE FUNCTION is_abandoned(lease_expires_at timestamptz, process bigint) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, public AS $$
    SELECT CASE
        WHEN lease_expires_at > now() + interval '15 minutes' THEN true
        WHEN now() - pg_postmaster_start_time() BETWEEN interval '0 seconds' AND interval '10 seconds'
            AND lease_expires_at > now() - interval '2 minutes' AND process IS DISTINCT FROM 0 THEN false
        WHEN lease_expires_at < now() THEN true
        WHEN process IS NULL OR lease_expires_at > now() + interval '12 seconds' THEN false
        ELSE NOT EXISTS (
            SELECT FROM pg_locks l WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.granted
              AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
              AND (l.classid::bigint << 32) | l.objid::bigint = process)
    END
$$;
CREATE FUNCTION abandoned_turns(asking bigint, OUT tenant_id uuid, OUT turn_id uuid, OUT status text)
RETURNS SETOF record
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public AS $$
    (SELECT t.tenant_id, t.id, t.status FROM turns t
     WHERE t.status IN ('waiting', 'running')
       AND is_abandoned(t.lease_expires_at, CASE WHEN t.process = asking THEN 0 ELSE t.process END)
     ORDER BY t.accepted_at, t.id LIMIT 100)
    UNION ALL
    (SELECT t.tenant_id, t.id, t.status FROM turns t
     WHERE t.status = 'paused' AND t.lease_expires_at < now() LIMIT 100)
$$;

CREATE FUNCTION users_with_due_promises(at timestamptz, OUT tenant_id uuid, OUT user_id uuid)
RETURNS SETOF record
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public AS $$
    SELECT DISTINCT due.tenant_id, due.user_id FROM (
        SELECT p.tenant_id, p.user_id FROM promises p
        WHERE p.state = 'open' AND p.due_at <= at ORDER BY p.due_at LIMIT 1000
    ) AS due
$$;
COMMENT ON FUNCTION users_with_due_promises(timestamptz) IS 'Whose promises are due, of all tenants.';

CREATE FUNCTION tenants_to_index() RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public AS $$
    SELECT t.id FROM tenants t
    WHERE EXISTS (SELECT FROM episodes e WHERE e.tenant_id = t.id AND e.indexed_at IS NULL)
$$;

CREATE FUNCTION tenants_with_passages_to_index() RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public AS $$
    SELECT t.id FROM tenants t
    WHERE EXISTS (SELECT FROM kb_chunks c WHERE c.tenant_id = t.id AND c.indexed_at IS NULL)
$$;

CREATE FUNCTION use_api_key(
    key_id uuid, OUT tenant_id uuid, OUT hash bytea, OUT scopes text[], OUT acts_for_headers boolean,
    OUT default_user text
) RETURNS SETOF record
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, public AS $$
    UPDATE api_keys k SET last_used_at = now()
    WHERE k.id = key_id AND k.revoked_at IS NULL
      AND (k.last_used_at IS NULL OR k.last_used_at < now() - interval '1 minute');
    SELECT k.tenant_id, k.hash, k.scopes, k.acts_for_headers, k.default_user
    FROM api_keys k WHERE k.id = key_id AND k.revoked_at IS NULL;
$$;

-- A message that is committed with an older time than the summary's covered point would be neither in the summary
-- nor behind it. The lock makes the insert wait for a summary that is being written, and a summary for inserts that
-- are under way; each statement of the function sees what was committed meanwhile.
CREATE FUNCTION note_late_message() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM conversations WHERE id = NEW.conversation_id FOR KEY SHARE;
    UPDATE messages SET uncovered = true
    FROM conversation_summaries s
    WHERE messages.id = NEW.id AND s.conversation_id = NEW.conversation_id
      AND (s.covered_through_created_at, s.covered_through_message_id) >= (NEW.created_at, NEW.id);
    RETURN NULL;
END $$;
CREATE TRIGGER note_late AFTER INSERT OR UPDATE OF completed, created_at ON messages
FOR EACH ROW WHEN (NEW.completed) EXECUTE FUNCTION note_late_message();

-- The generation of what can be recalled. It is renewed as the last thing of a transaction: so its row is locked for
-- a moment only, and nobody who has it waits for anything else.
CREATE FUNCTION begin_memory_generations() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO memory_generations (user_id, tenant_id) VALUES (NEW.id, NEW.tenant_id) ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
CREATE TRIGGER begin_memory_generations AFTER INSERT ON users
FOR EACH ROW EXECUTE FUNCTION begin_memory_generations();

CREATE FUNCTION renew_memory_generation(of_user uuid, removes boolean) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    at bigint := (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;
BEGIN
    -- Once in a transaction, and once more where something is removed after that.
    IF EXISTS (
        SELECT FROM memory_generations WHERE user_id = of_user AND changed_in = pg_current_xact_id()
            AND (NOT removes OR removed_at = generation)
    ) THEN
        RETURN;
    END IF;
    UPDATE memory_generations SET
        generation = greatest(generation + 1, at),
        removed_at = CASE WHEN removes THEN greatest(generation + 1, at) ELSE removed_at END,
        changed_in = pg_current_xact_id()
    WHERE user_id = of_user;
END $$;

CREATE FUNCTION mark_changed_episode() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.changed_in := pg_current_xact_id();
    RETURN NEW;
END $$;
CREATE TRIGGER mark_changed_episode BEFORE INSERT OR UPDATE OF user_id, expert_id, conversation_id, episode_type,
    content, importance, origin, source_message_ids, created_at, superseded_by, superseded_in, archived_by,
    indexed_at, retracted_at, held_at ON episodes
FOR EACH ROW EXECUTE FUNCTION mark_changed_episode();

CREATE FUNCTION note_changed_episode() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM renew_memory_generation(coalesce(NEW.user_id, OLD.user_id), TG_OP = 'DELETE');
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER note_changed_episode AFTER INSERT OR DELETE OR UPDATE OF user_id, expert_id,
    conversation_id, episode_type, content, importance, origin, source_message_ids, created_at, superseded_by,
    superseded_in, archived_by, indexed_at, retracted_at, held_at ON episodes
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION note_changed_episode();

CREATE FUNCTION note_changed_message() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM renew_memory_generation(user_id, true) FROM conversations WHERE id = NEW.conversation_id;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER note_changed_message
AFTER UPDATE OF content, memory_text, retracted_at, speaker, branch_id ON messages
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (
    (OLD.content, OLD.memory_text, OLD.retracted_at, OLD.speaker, OLD.branch_id)
    IS DISTINCT FROM (NEW.content, NEW.memory_text, NEW.retracted_at, NEW.speaker, NEW.branch_id)
) EXECUTE FUNCTION note_changed_message();

-- Versions, for questions about an earlier moment. One of an episode is in no index: the index holds what the row
-- says now. The content of a message never changes but to be removed for good, so that no version has to hold it.
CREATE FUNCTION keep_episode_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO memory_versions (tenant_id, user_id, episode_id, was)
    VALUES (OLD.tenant_id, OLD.user_id, OLD.id, jsonb_build_object('episode_type', OLD.episode_type,
        'content', OLD.content, 'importance', OLD.importance, 'source_message_ids', OLD.source_message_ids,
        'superseded_by', OLD.superseded_by, 'superseded_in', OLD.superseded_in, 'archived_by', OLD.archived_by,
        'retracted_at', OLD.retracted_at, 'held_at', OLD.held_at, 'indexed_at', NULL));
    RETURN NULL;
END $$;
CREATE TRIGGER keep_version AFTER UPDATE OF episode_type, content, importance, source_message_ids, superseded_by,
    superseded_in, archived_by, retracted_at, held_at ON episodes
FOR EACH ROW WHEN (
    (OLD.episode_type, OLD.content, OLD.importance, OLD.source_message_ids, OLD.superseded_by, OLD.superseded_in,
     OLD.archived_by, OLD.retracted_at, OLD.held_at)
    IS DISTINCT FROM (NEW.episode_type, NEW.content, NEW.importance, NEW.source_message_ids, NEW.superseded_by,
     NEW.superseded_in, NEW.archived_by, NEW.retracted_at, NEW.held_at)
) EXECUTE FUNCTION keep_episode_version();

CREATE FUNCTION keep_message_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO memory_versions (tenant_id, user_id, message_id, was)
    SELECT OLD.tenant_id, c.user_id, OLD.id, jsonb_build_object('memory_text', OLD.memory_text,
        'retracted_at', OLD.retracted_at, 'branch_id', OLD.branch_id)
    FROM conversations c WHERE c.id = OLD.conversation_id;
    RETURN NULL;
END $$;
CREATE TRIGGER keep_version AFTER UPDATE OF memory_text, retracted_at, branch_id ON messages
FOR EACH ROW WHEN (
    (OLD.memory_text, OLD.retracted_at, OLD.branch_id)
    IS DISTINCT FROM (NEW.memory_text, NEW.retracted_at, NEW.branch_id)
) EXECUTE FUNCTION keep_message_version();

CREATE FUNCTION keep_day_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- Not where the day goes together with its user or its space.
    INSERT INTO memory_versions (tenant_id, user_id, space_id, day_id, was)
    SELECT OLD.tenant_id, OLD.user_id, OLD.space_id, OLD.id, to_jsonb(OLD)
    FROM users u
    WHERE u.id = OLD.user_id AND (OLD.space_id IS NULL OR EXISTS (SELECT FROM spaces s WHERE s.id = OLD.space_id));
    RETURN NULL;
END $$;
CREATE TRIGGER keep_version AFTER DELETE OR UPDATE ON daily_summaries
FOR EACH ROW EXECUTE FUNCTION keep_day_version();

-- What was removed from memory is shown in no stored prompt. Deferred: the turn that removes something stores its
-- own prompt in the same transaction.
CREATE FUNCTION withdraw_prompts(of_user uuid) RETURNS void LANGUAGE sql AS $$
    UPDATE turns SET prompt = NULL FROM conversations c
    WHERE c.user_id = of_user AND turns.conversation_id = c.id AND turns.prompt IS NOT NULL
$$;

CREATE FUNCTION withdraw_prompts_of_row() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM withdraw_prompts(OLD.user_id);
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER withdraw_prompts AFTER UPDATE OF content, retracted_at ON episodes
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
WHEN ((OLD.content, OLD.retracted_at) IS DISTINCT FROM (NEW.content, NEW.retracted_at))
EXECUTE FUNCTION withdraw_prompts_of_row();

CREATE FUNCTION withdraw_prompts_of_removed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM withdraw_prompts(user_id) FROM (SELECT DISTINCT user_id FROM removed) AS users;
    RETURN NULL;
END $$;
CREATE TRIGGER withdraw_prompts_of_removed AFTER DELETE ON episodes REFERENCING OLD TABLE AS removed
FOR EACH STATEMENT EXECUTE FUNCTION withdraw_prompts_of_removed();

CREATE FUNCTION withdraw_prompts_of_message() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM withdraw_prompts(user_id) FROM conversations WHERE id = NEW.conversation_id;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER withdraw_prompts AFTER UPDATE OF content, memory_text, retracted_at ON messages
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (
    (OLD.content, OLD.memory_text, OLD.retracted_at) IS DISTINCT FROM (NEW.content, NEW.memory_text, NEW.retracted_at)
) EXECUTE FUNCTION withdraw_prompts_of_message();

-- A block that only gains something hides nothing; nor does one that background work changes.
CREATE FUNCTION withdraw_prompts_of_block() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        PERFORM withdraw_prompts(OLD.user_id);
    ELSIF NOT NEW.content @> OLD.content AND NOT EXISTS (
        SELECT FROM core_memory_history h
        WHERE h.block_id = NEW.id AND h.version = NEW.version AND NEW.version > OLD.version
          AND h.actor IN ('filing', 'compression')
    ) THEN
        PERFORM withdraw_prompts(OLD.user_id);
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER withdraw_prompts AFTER DELETE OR UPDATE OF content ON core_memory_blocks
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION withdraw_prompts_of_block();

CREATE FUNCTION drop_feeling() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.feeling := NULL;
    NEW.feeling_span := NULL;
    RETURN NEW;
END $$;
COMMENT ON FUNCTION drop_feeling() IS 'Words that have changed may say nothing of what the user feels any more.';
CREATE TRIGGER drop_feeling BEFORE UPDATE OF content, memory_text ON messages FOR EACH ROW WHEN (
    OLD.feeling IS NOT NULL AND (OLD.content, OLD.memory_text) IS DISTINCT FROM (NEW.content, NEW.memory_text)
) EXECUTE FUNCTION drop_feeling();

-- Events of a user become visible in the order of their ids: a reader that has seen one misses none before it.
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
