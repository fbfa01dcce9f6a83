"""The first tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "dispatchers",
        sa.Column("id", sa.String(length=24), nullable=False),
        sa.Column("machine", sa.Text(), nullable=False),
        sa.Column("process", sa.Integer(), nullable=False),
        sa.Column("slots", sa.Integer(), nullable=False),
        sa.Column("started_at", sa.Double(), nullable=False),
        sa.Column("seen_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "keys",
        sa.Column("id", sa.String(length=24), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("prefix", sa.Text(), nullable=False),
        sa.Column("secret_sha256", sa.String(length=64), nullable=False),
        sa.Column("scopes", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("expires_at", sa.Double(), nullable=True),
        sa.Column("revoked_at", sa.Double(), nullable=True),
        sa.Column("last_used_at", sa.Double(), nullable=True),
        sa.Column("max_datasets", sa.Integer(), nullable=True),
        sa.Column("max_dataset_bytes", sa.BigInteger(), nullable=True),
        sa.Column("max_queued_jobs", sa.Integer(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("prefix"),
    )
    op.create_table(
        "model_versions",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("job_id", sa.String(length=24), nullable=True),
        sa.Column("lineage", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("deleted_at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("name", "number"),
        sa.UniqueConstraint("job_id"),
    )
    op.create_table(
        "datasets",
        sa.Column("id", sa.String(length=24), nullable=False),
        sa.Column("key_id", sa.String(length=24), nullable=True),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("format", sa.Text(), nullable=False),
        sa.Column("num_bytes", sa.BigInteger(), nullable=False),
        sa.Column("num_rows", sa.BigInteger(), nullable=False),
        sa.Column("columns", sa.JSON(), nullable=False),
        sa.Column("problems", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["key_id"],
            ["keys.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("key_id", "sha256"),
    )
    with op.batch_alter_table("datasets", schema=None) as batch_op:
        batch_op.create_index("ix_datasets_created", ["created_at", "id"], unique=False)
        batch_op.create_index(
            batch_op.f("ix_datasets_sha256"), ["sha256"], unique=False
        )

    op.create_table(
        "labels",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("moved_at", sa.Double(), nullable=False),
        sa.Column("key_id", sa.String(length=24), nullable=True),
        sa.ForeignKeyConstraint(
            ["key_id"],
            ["keys.id"],
        ),
        sa.ForeignKeyConstraint(
            ["name", "number"],
            ["model_versions.name", "model_versions.number"],
        ),
        sa.PrimaryKeyConstraint("name", "label"),
    )
    op.create_table(
        "jobs",
        sa.Column("id", sa.String(length=24), nullable=False),
        sa.Column("key_id", sa.String(length=24), nullable=True),
        sa.Column("idempotency_key", sa.Text(), nullable=True),
        sa.Column("request_sha256", sa.String(length=64), nullable=True),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("dataset_id", sa.String(length=24), nullable=True),
        sa.Column("dataset_sha256", sa.String(length=64), nullable=False),
        sa.Column("dataset_format", sa.Text(), nullable=False),
        sa.Column("spec", sa.JSON(), nullable=False),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("deaths", sa.Integer(), nullable=False),
        sa.Column("machine", sa.Text(), nullable=True),
        sa.Column("leased_by", sa.Text(), nullable=True),
        sa.Column("lease_expires_at", sa.Double(), nullable=True),
        sa.Column("not_before", sa.Double(), nullable=True),
        sa.Column("cancel_requested_at", sa.Double(), nullable=True),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("started_at", sa.Double(), nullable=True),
        sa.Column("finished_at", sa.Double(), nullable=True),
        sa.Column("progress", sa.JSON(), nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("version", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(["dataset_id"], ["datasets.id"], ondelete="SET NULL"),
        sa.ForeignKeyConstraint(
            ["key_id"],
            ["keys.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("key_id", "idempotency_key"),
    )
    with op.batch_alter_table("jobs", schema=None) as batch_op:
        batch_op.create_index("ix_jobs_created", ["created_at", "id"], unique=False)
        batch_op.create_index(
            batch_op.f("ix_jobs_dataset_id"), ["dataset_id"], unique=False
        )
        batch_op.create_index(batch_op.f("ix_jobs_machine"), ["machine"], unique=False)
        batch_op.create_index(
            "ix_jobs_name_created", ["name", "created_at", "id"], unique=False
        )
        batch_op.create_index(
            "ix_jobs_queue", ["state", "priority", "created_at"], unique=False
        )
        batch_op.create_index(
            "ix_jobs_state_created", ["state", "created_at", "id"], unique=False
        )

    op.create_table(
        "events",
        sa.Column("job_id", sa.String(length=24), nullable=False),
        sa.Column("sequence", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("data", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "sequence"),
    )


def downgrade() -> None:
    op.drop_table("events")
    with op.batch_alter_table("jobs", schema=None) as batch_op:
        batch_op.drop_index("ix_jobs_state_created")
        batch_op.drop_index("ix_jobs_queue")
        batch_op.drop_index("ix_jobs_name_created")
        batch_op.drop_index(batch_op.f("ix_jobs_machine"))
        batch_op.drop_index(batch_op.f("ix_jobs_dataset_id"))
        batch_op.drop_index("ix_jobs_created")

    op.drop_table("jobs")
    op.drop_table("labels")
    with op.batch_alter_table("datasets", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_datasets_sha256"))
        batch_op.drop_index("ix_datasets_created")

    op.drop_table("datasets")
    op.drop_table("model_versions")
    op.drop_table("keys")
    op.drop_table("dispatchers")
