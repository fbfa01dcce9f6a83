"""The wire formats of predictions: one file per format, and the table of them."""

from service.predicting.codecs import (
    arrow,
    csv,
    json_rows,
    open_inference,
)
from service.predicting.codecs.codec import Codec

CODECS = {
    "json": Codec(json_rows.read, json_rows.write),
    "arrow": Codec(arrow.read, arrow.write, arrow.is_large, writes_text=False),
    "csv": Codec(csv.read, csv.write),
    "open_inference": Codec(
        open_inference.read, open_inference.write, open_inference.is_large
    ),
}
