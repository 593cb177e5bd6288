"""The statements of the store."""

from typing import LiteralString

_OWNER: LiteralString = """
    SELECT u.id AS user_id, s.id AS space_id
    FROM users u LEFT JOIN spaces s ON s.user_id = u.id AND s.tenant_id = u.tenant_id AND s.name = %(space)s
    WHERE u.tenant_id = %(tenant_id)s AND u.external_id = %(user)s
      AND (%(space)s::text IS NULL OR s.id IS NOT NULL)
"""
# Spaces are compared in a way that the planner can estimate: it expects one row of `IS NOT DISTINCT FROM`.
_LIVES: LiteralString = """
    i.tenant_id = %(tenant_id)s AND i.user_id = owner.user_id
    AND (i.space_id IS NULL) = (%(space)s::text IS NULL)
    AND (%(space)s::text IS NULL OR i.space_id = owner.space_id)
    AND (i.expires_at IS NULL OR i.expires_at > now())
"""
_BELOW: LiteralString = """
    (%(prefix)s = '' OR i.namespace = %(prefix)s OR starts_with(i.namespace, %(prefix)s || '.'))
"""

# The rows of what was asked for, each looked up by the whole index: the planner cannot choose to read all items of
# the user, which it takes for few.
_FOUND: LiteralString = """
    FROM owner CROSS JOIN asked CROSS JOIN LATERAL (
        SELECT * FROM store_items
        WHERE tenant_id = %(tenant_id)s AND user_id = owner.user_id AND namespace = asked.namespace
          AND key = asked.key AND space_id IS NOT DISTINCT FROM owner.space_id
        OFFSET 0
    ) i
"""

GET: LiteralString = f"""
WITH owner AS ({_OWNER}), asked AS (
    SELECT * FROM unnest(%(namespaces)s::text[], %(keys)s::text[]) WITH ORDINALITY AS a (namespace, key, place)
)
SELECT asked.place::integer, i.id, i.namespace, i.key, i.value, i.created_at, i.updated_at, i.ttl_minutes
{_FOUND} WHERE i.expires_at IS NULL OR i.expires_at > now()
"""  # noqa: S608

# Whether a value fits what PostgreSQL compares of a filter (`matching.InSql`). It is never stricter than
# `matching.fits`: what its JSON does not hold is taken.
_FITS: LiteralString = r"""
    CASE WHEN %(equal)s::jsonb IS NULL AND %(path)s::text IS NULL AND %(unequal)s::jsonb[] = '{}' THEN true
         WHEN i.document IS NOT NULL THEN (%(equal)s::jsonb IS NULL OR i.document @> %(equal)s::jsonb)
              AND (%(unequal)s::jsonb[] = '{}' OR NOT i.document @> ANY(%(unequal)s::jsonb[]))
              AND (%(path)s::text IS NULL OR jsonb_path_exists(i.document, %(path)s::text::jsonpath,
                   %(bounds)s::jsonb, true))
         WHEN strpos(i.value, coalesce(%(fragment)s, '')) = 0 THEN false
         WHEN strpos(i.value, '\u0000') > 0 OR strpos(i.value, 'NaN') > 0 OR strpos(i.value, 'Infinity') > 0
              THEN true
         ELSE (%(equal)s::jsonb IS NULL OR i.value::jsonb @> %(equal)s::jsonb)
              AND NOT i.value::jsonb @> ANY(%(unequal)s::jsonb[])
              AND (%(path)s::text IS NULL OR jsonb_path_exists(i.value::jsonb, %(path)s::text::jsonpath,
                   %(bounds)s::jsonb, true)) END
"""

# Newest first, as LangGraph's own stores answer: along the index `store_items_newest`, up to the last item of the
# page, which a join of the whole would first sort.
PAGE: LiteralString = f"""
WITH owner AS ({_OWNER})
SELECT i.* FROM owner CROSS JOIN LATERAL (
    SELECT i.id, i.namespace, i.key, i.value, i.created_at, i.updated_at, i.ttl_minutes
    FROM store_items i WHERE {_LIVES} AND {_BELOW} AND {_FITS}
    ORDER BY i.updated_at DESC, i.id DESC LIMIT %(limit)s OFFSET %(offset)s
) i
"""  # noqa: S608

# As few columns as ranking needs, and values only where they are looked at, up to a number of bytes; what is shown
# is read by its ids. With `since`, only what was written from then on.
CANDIDATES: LiteralString = f"""
WITH owner AS ({_OWNER}), newest AS (
    SELECT i.id, i.index_paths, i.updated_at, hashtextextended(i.operation_id::text, 0) AS digest,
           CASE WHEN i.embedded_by = %(embedded_by)s AND NOT %(plain)s THEN i.vector END AS vector,
           CASE WHEN %(filtered)s OR i.embedded_by IS DISTINCT FROM %(embedded_by)s THEN i.value END AS value
    FROM owner JOIN store_items i ON {_LIVES}
    WHERE {_BELOW} AND {_FITS} AND (%(since)s::timestamptz IS NULL OR i.updated_at >= %(since)s)
    ORDER BY i.updated_at DESC, i.id DESC LIMIT %(most)s
), weighed AS (
    SELECT *, sum(octet_length(value)) OVER (ORDER BY updated_at DESC, id DESC) AS bytes FROM newest
)
SELECT id, index_paths, updated_at, digest, vector, value FROM weighed
WHERE coalesce(bytes, 0) <= %(most_bytes)s ORDER BY updated_at DESC, id DESC
"""  # noqa: S608

_LACKS: LiteralString = "i.embedded_by IS DISTINCT FROM %(embedded_by)s AND i.index_paths IS DISTINCT FROM '[]'"

# What changes with every write to the items below a prefix, and when one of them expires; and whether any of them
# lacks its vector.
STAMP: LiteralString = f"""
WITH owner AS ({_OWNER})
SELECT i.user_id, count(*), bit_xor(hashtextextended(i.operation_id::text, 0)), bool_or({_LACKS})
FROM owner JOIN store_items i ON {_LIVES}
WHERE {_BELOW}
GROUP BY i.user_id
"""  # noqa: S608

MISSING: LiteralString = f"""
WITH owner AS ({_OWNER})
SELECT i.id, i.operation_id, i.index_paths, i.value FROM owner JOIN store_items i ON {_LIVES}
WHERE {_LACKS}
ORDER BY i.updated_at DESC, i.id DESC LIMIT %(limit)s
"""  # noqa: S608

ITEMS: LiteralString = """
SELECT id, namespace, key, value, created_at, updated_at, ttl_minutes FROM store_items
WHERE tenant_id = %(tenant_id)s AND id = ANY(%(ids)s)
"""

VALUES: LiteralString = "SELECT id, value FROM store_items WHERE tenant_id = %(tenant_id)s AND id = ANY(%(ids)s)"

NAMESPACES: LiteralString = f"""
WITH owner AS ({_OWNER})
SELECT DISTINCT i.namespace FROM owner JOIN store_items i ON {_LIVES}
"""  # noqa: S608

# An item that was put again meanwhile has another operation.
KEEP_VECTORS: LiteralString = """
UPDATE store_items i SET vector = v.vector, embedded_by = %(embedded_by)s
FROM unnest(%(ids)s::uuid[], %(operation_ids)s::uuid[], %(vectors)s::text[]) AS v (id, operation_id, vector)
WHERE i.id = v.id AND i.tenant_id = %(tenant_id)s AND i.operation_id = v.operation_id
RETURNING i.id
"""

REFRESH: LiteralString = """
UPDATE store_items SET expires_at = now() + ttl_minutes * interval '1 minute'
WHERE tenant_id = %(tenant_id)s AND id = ANY(%(ids)s) AND ttl_minutes IS NOT NULL
RETURNING id
"""

MAKE_OWNER: LiteralString = """
WITH known AS (
    SELECT id FROM users WHERE tenant_id = %(tenant_id)s AND external_id = %(user)s
), made AS (
    INSERT INTO users (id, tenant_id, external_id, timezone, locale)
    SELECT %(new_user_id)s, %(tenant_id)s, %(user)s, %(timezone)s, %(locale)s WHERE NOT EXISTS (SELECT FROM known)
    ON CONFLICT (tenant_id, external_id) DO NOTHING RETURNING id
)
INSERT INTO spaces (id, tenant_id, user_id, name)
SELECT %(new_space_id)s, %(tenant_id)s, person.id, %(space)s
FROM (SELECT id FROM known UNION ALL SELECT id FROM made) person
WHERE %(space)s::text IS NOT NULL
ON CONFLICT (user_id, name, tenant_id) DO NOTHING
"""

# One statement for all that a batch writes, with what undoes it: it runs under a lock on the user's name, so that
# it sees every write before. What has a time to live is not kept in the log, which would outlive it.
WRITE: LiteralString = f"""
WITH owner AS ({_OWNER}), asked AS (
    SELECT * FROM unnest(%(ids)s::uuid[], %(operation_ids)s::uuid[], %(namespaces)s::text[], %(keys)s::text[],
                         %(contents)s::text[], %(ttls)s::float8[], %(paths)s::jsonb[])
        AS a (id, operation_id, namespace, key, value, ttl, paths)
), before AS (
    SELECT i.* {_FOUND}
), gone AS (
    DELETE FROM store_items i USING before JOIN asked USING (namespace, key)
    WHERE i.id = before.id AND i.tenant_id = %(tenant_id)s AND asked.value IS NULL
), kept AS (
    INSERT INTO store_items (id, tenant_id, user_id, space_id, namespace, key, value, index_paths, ttl_minutes,
        expires_at, operation_id)
    SELECT asked.id, %(tenant_id)s, owner.user_id, owner.space_id, asked.namespace, asked.key, asked.value,
        nullif(asked.paths, 'null'), asked.ttl, now() + asked.ttl * interval '1 minute', asked.operation_id
    FROM owner CROSS JOIN asked WHERE asked.value IS NOT NULL
    ON CONFLICT (user_id, namespace, key, space_id, tenant_id) DO UPDATE SET
        value = EXCLUDED.value, index_paths = EXCLUDED.index_paths, ttl_minutes = EXCLUDED.ttl_minutes,
        expires_at = EXCLUDED.expires_at, operation_id = EXCLUDED.operation_id, updated_at = clock_timestamp(),
        created_at = CASE WHEN store_items.expires_at <= now() THEN EXCLUDED.created_at
                          ELSE store_items.created_at END,
        vector = NULL, embedded_by = NULL
), logged AS (
    INSERT INTO memory_operations (id, tenant_id, user_id, space_id, type, field, old_value, trigger)
    SELECT asked.operation_id, %(tenant_id)s, owner.user_id, owner.space_id,
        CASE WHEN asked.value IS NULL THEN 'store_delete' ELSE 'store_put' END,
        asked.namespace || '/' || asked.key,
        CASE WHEN before.id IS NOT NULL THEN jsonb_build_object(
            'namespace', before.namespace, 'key', before.key, 'index_paths', before.index_paths,
            'created_at', before.created_at,
            'value', CASE WHEN before.ttl_minutes IS NULL THEN before.value END
        ) END,
        jsonb_strip_nulls(jsonb_build_object('actor', 'user', 'space_id', owner.space_id))
    FROM owner CROSS JOIN asked LEFT JOIN before USING (namespace, key)
    WHERE asked.value IS NOT NULL OR before.id IS NOT NULL
)
SELECT user_id FROM owner
"""  # noqa: S608

OF_OPERATION: LiteralString = """
SELECT id FROM store_items WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s
  AND operation_id = %(operation_id)s FOR UPDATE
"""

REMOVE: LiteralString = "DELETE FROM store_items WHERE id = %(id)s AND tenant_id = %(tenant_id)s"

PUT_BACK: LiteralString = """
INSERT INTO store_items (id, tenant_id, user_id, space_id, namespace, key, value, index_paths, created_at,
    operation_id)
VALUES (%(id)s, %(tenant_id)s, %(user_id)s, %(space_id)s, %(namespace)s, %(key)s, %(content)s, %(paths)s,
    %(created_at)s, %(operation_id)s)
ON CONFLICT (user_id, namespace, key, space_id, tenant_id) DO NOTHING RETURNING id
"""

SWEEP: LiteralString = """
DELETE FROM store_items WHERE tenant_id = %(tenant_id)s AND expires_at <= now() RETURNING id
"""

EXPORT: LiteralString = """
SELECT i.id, s.name AS space, i.namespace, i.key, i.value, i.index_paths AS index, i.ttl_minutes AS ttl,
       i.created_at, i.updated_at
FROM store_items i LEFT JOIN spaces s ON s.id = i.space_id AND s.tenant_id = i.tenant_id
WHERE i.tenant_id = %(tenant_id)s AND i.user_id = %(user_id)s AND (i.expires_at IS NULL OR i.expires_at > now())
  AND (%(space)s::text IS NULL OR s.name = %(space)s) AND i.id > %(id)s
ORDER BY i.id LIMIT %(limit)s
"""

IMPORT: LiteralString = """
INSERT INTO store_items (id, tenant_id, user_id, space_id, namespace, key, value, index_paths, ttl_minutes,
    expires_at, created_at, updated_at, operation_id)
SELECT g.id, %(tenant_id)s, g.user_id, g.space_id, g.namespace, g.key, g.value, nullif(g.paths, 'null'),
    g.ttl, now() + g.ttl * interval '1 minute', g.created_at, g.updated_at, g.id
FROM unnest(%(ids)s::uuid[], %(user_ids)s::uuid[], %(space_ids)s::uuid[], %(namespaces)s::text[],
            %(keys)s::text[], %(contents)s::text[], %(paths)s::jsonb[], %(ttls)s::float8[],
            %(created_ats)s::timestamptz[], %(updated_ats)s::timestamptz[])
    AS g (id, user_id, space_id, namespace, key, value, paths, ttl, created_at, updated_at)
ON CONFLICT (user_id, namespace, key, space_id, tenant_id) DO NOTHING RETURNING id
"""
