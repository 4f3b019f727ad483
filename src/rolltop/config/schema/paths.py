"""Walk the schema by the paths of a configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

from pydantic import BaseModel

if TYPE_CHECKING:
    from collections.abc import Container, Sequence


def fields_at(model: type[BaseModel], location: Sequence[int | str]) -> list[str]:
    """Return the keys that the section at ``location`` may have; none where it is no section."""
    current: Any = model
    for part in location:
        current = _below(current, part)
    section = _section(current)
    if section is None:
        return []
    return [field.alias or name for name, field in section.model_fields.items()]


def has_path(model: type[BaseModel], path: str, present: Container[str]) -> bool:
    """Return whether the schema has a place for ``path``.

    Args:
        model: The schema.
        path: Dotted.
        present: The dotted paths of a configuration: names that are the user's own, such as those
            of services, are known if they are among them.
    """
    current: Any = model
    parts = path.split(".")
    for number, part in enumerate(parts, start=1):
        if _section(current) is None and ".".join(parts[:number]) not in present:
            return False
        current = _below(current, part)
        if current is None:
            return False
    return True


def _section(annotation: Any) -> type[BaseModel] | None:
    """Return the model of ``Model``, ``Model | None`` or ``Annotated[Model, ...]``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if getattr(annotation, "__origin__", None) in (dict, tuple):
        return None
    found = (_section(argument) for argument in get_args(annotation))
    return next((model for model in found if model is not None), None)


def _below(annotation: Any, part: int | str) -> Any:
    """Return what a section or mapping has at one key; None if it has no such key."""
    section = _section(annotation)
    if section is None:
        arguments = get_args(annotation)
        return arguments[-1] if arguments else None
    fields = section.model_fields.items()
    return next((f.annotation for name, f in fields if part in (name, f.alias)), None)
