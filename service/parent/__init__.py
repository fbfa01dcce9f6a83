"""The parent of the service's processes: starts, restarts and stops them."""
