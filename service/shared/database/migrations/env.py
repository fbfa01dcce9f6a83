"""Runs the migrations on the connection of `service.shared.database.upgrade`."""

from alembic import context

from service.shared.database.tables import Base

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Base.metadata,
    # SQLite alters a table by recreating it.
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
