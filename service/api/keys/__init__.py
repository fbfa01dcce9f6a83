"""API keys: the caller of a request, and its scopes."""
