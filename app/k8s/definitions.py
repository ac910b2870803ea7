"""The CustomResourceDefinitions that are given: read, and made into validators."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from app.k8s.crd import Key, NoSchema, schemas_of
from app.k8s.documents import Unreadable, read

FETCH = "fetch the definition again, as `kubectl get crd NAME -o yaml` or its project has it"


class CannotCheck(Exception):  # noqa: N818  # an outcome for the user
    """What checking needs is not there; `mend` says what to do."""

    def __init__(self, message: str, mend: str) -> None:
        super().__init__(message)
        self.mend = mend


def validators(texts: Mapping[str, str]) -> dict[Key, Any]:
    """A validator for each version of each definition in texts by their files; raises CannotCheck."""
    import jsonschema  # noqa: PLC0415  # of the extra `k8s`

    found: dict[Key, Any] = {}
    for file, text in texts.items():
        for key, schema in _schemas(file, text):
            try:
                jsonschema.Draft7Validator.check_schema(schema)
            except jsonschema.SchemaError as error:
                place = ".".join(str(part) for part in error.absolute_path)
                words = f"{file}: the schema of {key[1]} in {key[0]} is none at {place}: {error.message}"
                raise CannotCheck(words, FETCH) from error
            found[key] = jsonschema.Draft7Validator(schema)
    return found


def _schemas(file: str, text: str) -> Iterator[tuple[Key, dict[str, Any]]]:
    try:
        for document in read(text, file):
            try:
                yield from schemas_of(document)
            except NoSchema as error:
                raise CannotCheck(f"{file}: {error}", FETCH) from error
    except Unreadable as error:
        raise CannotCheck(f"{file}: {error}", "mend that line, or fetch the definition again") from error
