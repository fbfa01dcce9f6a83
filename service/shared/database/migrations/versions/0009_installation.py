"""Which programs may use the database, and whose files it describes."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    table = op.create_table(
        "installation",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("oldest_program", sa.Text(), nullable=True),
        sa.Column("store_id", sa.Text(), nullable=True),
        sa.Column("store_place", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    # Its only row.
    op.bulk_insert(table, [{"id": 1}])


def downgrade() -> None:
    op.drop_table("installation")
