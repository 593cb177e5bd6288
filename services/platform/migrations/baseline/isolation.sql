-- Row-level security: a transaction sees the rows of the tenant that it names, whatever the statement says. The owner
-- is under it as well.

-- `SELECT` around the setting lets the planner read it once a statement instead of once a row; an empty setting (no
-- tenant) is NULL, and nothing equals NULL.
DO $$
DECLARE
    of_tenants text;
BEGIN
    FOR of_tenants IN
        SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant_id'
        WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace
    LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', of_tenants);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', of_tenants);
        EXECUTE format(
            'CREATE POLICY one_tenant ON %I USING '
            '(tenant_id = (SELECT nullif(current_setting(''anamnesis.tenant_id'', true), '''')::uuid))', of_tenants
        );
    END LOOP;
END $$;

-- What the owner's functions read.
CREATE POLICY owner_authenticates ON api_keys TO CURRENT_USER USING (true);
CREATE POLICY owner_finds_expired ON turns FOR SELECT TO CURRENT_USER USING (true);
CREATE POLICY owner_finds_unindexed ON episodes FOR SELECT TO CURRENT_USER USING (true);
CREATE POLICY owner_finds_unindexed ON kb_chunks FOR SELECT TO CURRENT_USER USING (true);
CREATE POLICY owner_finds_due ON promises FOR SELECT TO CURRENT_USER USING (true);
