"""How much computing a prediction request costs."""

from service.predicting.query import Query
from service.shared.errors import RequestTooLarge
from tfbbb.export.manifest import Manifest
from tfbbb.prediction import questions


def answers_per_draw(query: Query, manifest: Manifest) -> int:
    """Returns how many numbers per row and draw a request asks for.

    The moments count as one number. Beside them, each level is one number per target
    to sort for, each sample one per target to return, and targets are one number.
    """
    count = 1
    width = max((1, *(k or 1 for k in manifest.targets.shape)))
    for question in questions.served_questions():
        if query.asks(question):
            levels = query.parameters.levels(question)
            ordered = question.needs_order or question.draws_first
            count += (len(levels) if levels else 1) * (width if ordered else 1)
    return count


def check_work(num_rows: int, num_samples: int, per_draw: int, most: int) -> None:
    """Refuses a request that costs too much, before anything is allocated for it."""
    if num_rows * num_samples * per_draw > most:
        raise RequestTooLarge(
            f"A request may have at most {most} units of work (TFBBB_MAX_WORK), which "
            "are rows × draws × answers: the moments, and each level or sample of each "
            "target. Send fewer rows at a time, lower `num_samples` or ask for fewer "
            f"levels. Received: {num_rows} rows × {num_samples} draws × {per_draw} "
            "answers"
        )
