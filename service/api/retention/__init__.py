"""What the service removes by itself, and when."""
