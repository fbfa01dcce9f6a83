"""Models: their versions, states and metadata."""
