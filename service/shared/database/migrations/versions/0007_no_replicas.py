"""No table of services: the rates of keys hold per machine."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

# Programs before it count work in the table.
breaking = True


def upgrade() -> None:
    op.drop_table("replicas")


def downgrade() -> None:
    op.create_table(
        "replicas",
        sa.Column("id", sa.String(length=24), nullable=False),
        sa.Column("work", sa.JSON(), nullable=False),
        sa.Column("seen_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
