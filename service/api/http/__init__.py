"""HTTP below the endpoints: what is refused, or told otherwise, before they see it."""
