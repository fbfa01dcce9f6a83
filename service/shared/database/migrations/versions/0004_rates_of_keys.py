"""The rate of a key, in units of work per second."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("keys", sa.Column("max_work_per_second", sa.Double(), nullable=True))


def downgrade() -> None:
    op.drop_column("keys", "max_work_per_second")
