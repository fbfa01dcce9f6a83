"""No canaries and shadows: a label is a name for one version."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

# Programs before it read the columns.
breaking = True

_NUMBERS = ("canary", "shadow")


def upgrade() -> None:
    op.drop_index("ix_recorded_rows_shadow_of", "recorded_rows")
    op.drop_column("recorded_rows", "shadow_of")
    with op.batch_alter_table("labels") as labels:
        labels.drop_column("canary_weight")
        for column in _NUMBERS:
            labels.drop_constraint(f"labels_name_{column}_fkey", type_="foreignkey")
            labels.drop_column(column)


def downgrade() -> None:
    # SQLite adds a foreign key only to a new table, into which the rows are copied.
    with op.batch_alter_table("labels") as labels:
        for column in _NUMBERS:
            labels.add_column(sa.Column(column, sa.BigInteger(), nullable=True))
            labels.create_foreign_key(
                f"labels_name_{column}_fkey",
                "model_versions",
                ["name", column],
                ["name", "number"],
            )
        labels.add_column(sa.Column("canary_weight", sa.Double(), nullable=True))
    op.add_column(
        "recorded_rows", sa.Column("shadow_of", sa.String(length=24), nullable=True)
    )
    op.create_index("ix_recorded_rows_shadow_of", "recorded_rows", ["shadow_of"])
