"""The process that reads an uploaded table, which a hostile file may end."""
