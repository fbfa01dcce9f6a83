"""API keys: who is asking, and what they may do."""
