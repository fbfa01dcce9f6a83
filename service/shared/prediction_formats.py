"""The formats of tables that `:predict` reads and writes, by media type."""

JSON = "application/json"
ARROW = "application/vnd.apache.arrow.stream"
CSV = "text/csv"

# The names of the codecs.
FORMATS = {JSON: "json", ARROW: "arrow", CSV: "csv"}

# An answer of `:predict-file`: lines of JSON while the service works, and after the
# last of them the file.
PROGRESS = "application/vnd.tfbbb.progress"
