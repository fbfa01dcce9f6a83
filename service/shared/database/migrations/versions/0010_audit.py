"""Who changed what, and when a dataset was uploaded again."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "audit",
        sa.Column("id", sa.String(length=24), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("key_id", sa.String(length=24), nullable=True),
        sa.Column("request_id", sa.Text(), nullable=True),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("details", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_audit_created", "audit", ["created_at", "id"])
    op.add_column("datasets", sa.Column("uploaded_again_at", sa.Double()))


def downgrade() -> None:
    op.drop_column("datasets", "uploaded_again_at")
    op.drop_table("audit")
