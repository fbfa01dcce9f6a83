"""The base model of documents that refuse unknown fields."""

import itertools

from pydantic import BaseModel, ConfigDict, model_validator


class KnownFields(BaseModel):
    """A part of a document that refuses fields it does not have.

    Only the first unknown field is reported: an error takes far more memory and time
    than the field, and a document of 1 MB may have 100,000 of them. For the same reason
    lists in such a document are declared with `fail_fast`.
    """

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _keep_first_unknown(cls, given: object) -> object:
        known = cls.model_fields
        if not isinstance(given, dict) or len(given) <= len(known):
            return given
        unknown = (name for name in given if name not in known)
        kept = {*known, *itertools.islice(unknown, 1)}
        return {name: value for name, value in given.items() if name in kept}
