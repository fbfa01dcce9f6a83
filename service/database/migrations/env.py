"""Runs the migrations on the connection that `service.database.upgrade` gives."""

from alembic import context

from service.database.tables import Base

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Base.metadata,
    # SQLite alters a table by making it anew.
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
