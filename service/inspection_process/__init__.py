"""The inspection process, which reads one table that may be hostile."""
