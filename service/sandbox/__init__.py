"""The sandbox, which does one task on a file that may be hostile."""
