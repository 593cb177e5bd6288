"""Say of a document what its text leaves out; write users' and conversations' names as they are compared."""

from alembic import op

revision = "0112"
down_revision = "0109"

_UPGRADE = """
ALTER TABLE kb_documents ADD COLUMN left_out text[];
COMMENT ON COLUMN kb_documents.left_out IS
    'what of the document is not in its text, such as "2 comments"; null: read before this was noted';

ALTER TABLE users NO FORCE ROW LEVEL SECURITY;
ALTER TABLE conversations NO FORCE ROW LEVEL SECURITY;
UPDATE users u SET external_id = normalize(external_id, NFC)
WHERE external_id IS NOT NFC NORMALIZED AND NOT EXISTS (
    SELECT FROM users o WHERE o.tenant_id = u.tenant_id AND o.id <> u.id
    AND normalize(o.external_id, NFC) = normalize(u.external_id, NFC));
UPDATE conversations c SET session_key = normalize(session_key, NFC)
WHERE session_key IS NOT NFC NORMALIZED AND NOT EXISTS (
    SELECT FROM conversations o WHERE o.tenant_id = c.tenant_id AND o.user_id = c.user_id AND o.id <> c.id
    AND normalize(o.session_key, NFC) = normalize(c.session_key, NFC));
ALTER TABLE users FORCE ROW LEVEL SECURITY;
ALTER TABLE conversations FORCE ROW LEVEL SECURITY;
"""


def upgrade() -> None:
    """Add the column; a document without a note is read anew when it is added again. A name whose composed form
    another one has stays, and is no longer reached by it."""
    op.get_bind().connection.cursor().execute(_UPGRADE)
