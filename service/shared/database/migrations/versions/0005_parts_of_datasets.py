"""The files of datasets of several files."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    empty = sa.Column("parts", sa.JSON(), nullable=False, server_default="[]")
    op.add_column("datasets", empty)


def downgrade() -> None:
    op.drop_column("datasets", "parts")
