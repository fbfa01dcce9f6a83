"""Feedback about versions, and the predictions that it is about."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "feedback",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("num_rows", sa.BigInteger(), nullable=False),
        sa.Column("figures", sa.JSON(), nullable=False),
        sa.Column("calibration", sa.JSON(), nullable=False),
        sa.Column("drift", sa.JSON(), nullable=False),
        sa.Column("drift_test", sa.JSON(), nullable=False),
        sa.Column("started_at", sa.Double(), nullable=False),
        sa.Column("updated_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["name", "number"],
            ["model_versions.name", "model_versions.number"],
        ),
        sa.PrimaryKeyConstraint("name", "number"),
    )
    op.create_table(
        "feedback_receipts",
        sa.Column("id", sa.String(length=24), nullable=False),
        sa.Column("key_id", sa.String(length=24), nullable=True),
        sa.Column("idempotency_key", sa.Text(), nullable=False),
        sa.Column("request_sha256", sa.String(length=64), nullable=False),
        sa.Column("answer", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["key_id"],
            ["keys.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("key_id", "idempotency_key"),
    )
    op.create_index(
        "ix_feedback_receipts_created_at", "feedback_receipts", ["created_at"]
    )
    op.create_table(
        "recorded_rows",
        sa.Column(
            "sequence",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            nullable=False,
        ),
        sa.Column("prediction_id", sa.String(length=24), nullable=False),
        sa.Column("row", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("values", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("counted_at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("sequence"),
        sa.UniqueConstraint("prediction_id", "row"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_recorded_rows_created_at", "recorded_rows", ["created_at"])


def downgrade() -> None:
    op.drop_table("recorded_rows")
    op.drop_table("feedback_receipts")
    op.drop_table("feedback")
