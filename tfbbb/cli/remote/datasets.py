"""`tfbbb remote datasets`."""

from itertools import islice

from tfbbb.cli.listing import AsJson, Limit, format_time, print_list
from tfbbb.cli.remote.service import Key, Url, service


def datasets(
    limit: Limit = 20, as_json: AsJson = False, url: Url = None, key: Key = None
) -> None:
    """List the datasets, newest first.

    Example: tfbbb remote datasets --limit 5
    """
    with service(url, key) as client:
        print_list(
            [dataset.details for dataset in islice(client.datasets(), limit)],
            {
                "dataset": lambda dataset: dataset["id"],
                "name": lambda dataset: dataset["name"],
                "rows": lambda dataset: dataset["num_rows"],
                "bytes": lambda dataset: dataset["num_bytes"],
                "uploaded": lambda dataset: format_time(dataset["created_at"]),
            },
            as_json=as_json,
            if_none="There is no dataset; create one with `tfbbb remote upload`.",
        )
