"""A table whose every text is an attack, and a small one of houses."""

import csv
import io
import random

ATTACK = "<img src=x onerror=document.title='hacked'>"
SCRIPT = "<script>document.title='hacked'</script>"


def houses(rows=120):
    """Prices by area and street, as CSV; the street's name and values are attacks."""
    chance = random.Random(0)
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["area", ATTACK, "price"])
    for _ in range(rows):
        area = chance.randint(40, 200)
        street = chance.choice([SCRIPT, "mill lane", "park road"])
        price = 1000 * area + 30_000 * (street == "park road") + chance.gauss(0, 9000)
        writer.writerow([area, street, round(price)])
    return text.getvalue()
