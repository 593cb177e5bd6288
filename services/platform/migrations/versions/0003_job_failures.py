"""Why a job failed and how often, and how jobs are found by their tenant."""

from alembic import op

revision = "0003"
down_revision = "0002"

# No tenant column: the job's row, whose arguments name the tenant, owns this one.
FAILURES = """
CREATE TABLE job_failures (
    job_id    bigint PRIMARY KEY REFERENCES procrastinate_jobs ON DELETE CASCADE,
    failures  integer NOT NULL CHECK (failures >= 0),
    reason    text NOT NULL,
    failed_at timestamptz NOT NULL DEFAULT now()
);
"""

# Jobs of no tenant are shown to the default one.
INDEXES = """
CREATE INDEX jobs_of_tenant ON procrastinate_jobs
    ((coalesce(args->>'tenant_id', '00000000-0000-7000-8000-000000000001')), id);
CREATE INDEX jobs_failed ON procrastinate_jobs (id) WHERE status = 'failed';
"""


def upgrade() -> None:
    """Add both."""
    for statements in (FAILURES, INDEXES):
        op.execute(statements)
