"""HTTP below the endpoints: routes, limits, errors."""
