"""Sessions of browsers, notes of people, and feedback over time.

Only adds to the tables: services of the version before go on beside this one.
"""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "browser_sessions",
        sa.Column("prefix", sa.String(length=24), nullable=False),
        sa.Column("secret_sha256", sa.String(length=64), nullable=False),
        sa.Column("key_id", sa.String(length=24), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("expires_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["key_id"], ["keys.id"]),
        sa.PrimaryKeyConstraint("prefix"),
    )
    op.create_index("ix_browser_sessions_key_id", "browser_sessions", ["key_id"])
    op.create_table(
        "notes",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("changed_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("name", "number"),
    )
    op.add_column("feedback", sa.Column("history", sa.JSON(), nullable=True))


def downgrade() -> None:
    op.drop_column("feedback", "history")
    op.drop_table("notes")
    op.drop_index("ix_browser_sessions_key_id", "browser_sessions")
    op.drop_table("browser_sessions")
