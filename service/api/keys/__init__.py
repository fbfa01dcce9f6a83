"""API keys: authentication, scopes and limits of callers."""
