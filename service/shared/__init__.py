"""What several processes use: database, queue, files, settings, errors, messages."""
