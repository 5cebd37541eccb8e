"""Alembic's environment: migrations run on the given connection, in its one transaction."""

from alembic import context

from agent.ledger.tables import schema

connection = context.config.attributes.get("connection")
if connection is None:
    raise SystemExit("migrations run when gpubid opens a ledger; there is no other way in")

# Batch mode rebuilds a table where SQLite cannot alter it, and keeps STRICT.
context.configure(connection=connection, target_metadata=schema.METADATA, render_as_batch=True, transactional_ddl=True)
with context.begin_transaction():
    context.run_migrations()
