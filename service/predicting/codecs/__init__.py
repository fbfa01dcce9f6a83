"""The wire formats of predictions, and the table of them."""

from service.predicting.codecs import json_rows, open_inference, tables
from service.predicting.codecs.codec import Codec

CODECS = {
    "json": Codec(json_rows.read, json_rows.write),
    "arrow": Codec(
        tables.read_arrow, tables.write_arrow, most=2**20, writes_text=False
    ),
    "csv": Codec(tables.read_csv, tables.write_csv),
    "open_inference": Codec(
        open_inference.read, open_inference.write, open_inference.text_bytes
    ),
}
