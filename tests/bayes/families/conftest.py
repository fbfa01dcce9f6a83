# Collecting doctests would import these families, and other tests must not see them.
collect_ignore = ["added"]
