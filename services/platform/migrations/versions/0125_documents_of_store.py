"""Small values of the store as documents, so that filters need not read their text."""

from alembic import op

revision = "0125"
down_revision = "0120"


def upgrade() -> None:
    """Add the document, which PostgreSQL makes of each value that its JSON holds as it is. Values that are
    encrypted have none."""
    op.execute(r"""
        ALTER TABLE store_items ADD COLUMN document jsonb GENERATED ALWAYS AS (
            CASE WHEN starts_with(value, '{') AND octet_length(value) <= 8192 AND strpos(value, '\u0000') = 0
                      AND strpos(value, 'NaN') = 0 AND strpos(value, 'Infinity') = 0 THEN value::jsonb END
        ) STORED;
        ALTER TABLE store_items ALTER document SET STATISTICS 0;
        COMMENT ON COLUMN store_items.document IS
            'the value for filters; NULL = it is large, encrypted, or more than JSON of PostgreSQL holds';
    """)
