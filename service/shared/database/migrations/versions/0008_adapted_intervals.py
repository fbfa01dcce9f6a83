"""How feedback adapts the intervals of a version."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("feedback", sa.Column("adaptation", sa.JSON(), nullable=True))


def downgrade() -> None:
    op.drop_column("feedback", "adaptation")
