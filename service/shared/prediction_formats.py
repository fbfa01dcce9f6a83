"""The formats of tables that `:predict` reads and writes, by media type."""

JSON = "application/json"
ARROW = "application/vnd.apache.arrow.stream"
CSV = "text/csv"

# The names of the codecs.
FORMATS = {JSON: "json", ARROW: "arrow", CSV: "csv"}
