"""A JSON schema as rows of a table: one per leaf, by its dotted path."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

Node = dict[str, Any]


@dataclass(frozen=True)
class Row:
    """One value that can be set."""

    path: str
    type: str
    default: str
    meaning: str


def rows(schema: Node, below: str = "") -> list[Row]:
    """Return the leaves of an object's schema, in its order.

    Args:
        schema: As pydantic makes it, with ``$defs``.
        below: The path that the object lies at.
    """
    return list(_Walk(schema.get("$defs", {})).object(schema, below))


class _Walk:
    """Follows references; a mapping's keys read ``<name>``."""

    def __init__(self, definitions: dict[str, Node]) -> None:
        self._definitions = definitions

    def object(self, node: Node, path: str) -> Iterator[Row]:
        required = set(node.get("required", ()))
        for name, value in node.get("properties", {}).items():
            yield from self.value(value, f"{path}.{name}" if path else name, name in required)

    def value(self, node: Node, path: str, required: bool) -> Iterator[Row]:
        target = self._resolved(node)
        if "properties" in target:
            yield from self.object(target, path)
            return
        entries = {f"{path}.<name>": _values(target), f"{path}[]": target.get("items", {})}
        for below, entry in entries.items():
            if "properties" in self._resolved(entry):
                yield from self.object(self._resolved(entry), below)
                return
        yield Row(path, self._type(node), _default(node, required), _meaning(node, target))

    def _resolved(self, node: Node) -> Node:
        """Follow a reference, also one that may be null instead."""
        if "$ref" in node:
            return self._resolved(self._definitions[node["$ref"].rpartition("/")[2]])
        for one in node.get("anyOf", ()):
            resolved = self._resolved(one)
            if "properties" in resolved:
                return resolved
        return node

    def _type(self, node: Node) -> str:
        if "$ref" in node:
            return self._type(self._definitions[node["$ref"].rpartition("/")[2]])
        if "anyOf" in node:
            return " or ".join(dict.fromkeys(self._type(one) for one in node["anyOf"]))
        if "enum" in node or "const" in node:
            return ", ".join(map(str, node.get("enum", [node.get("const")])))
        kind = node.get("type", "any")
        if kind == "array":
            return f"list of {self._type(node['items'])}" if "items" in node else _pair(node)
        if kind == "object":
            return f"mapping to {self._type(_values(node))}"
        return f"{kind}{_bounds(node)}"


def _values(node: Node) -> Node:
    """Return the schema of a mapping's values, whatever its keys may be; {} takes anything."""
    patterns: Node = node.get("patternProperties") or {}
    entry = next(iter(patterns.values()), node.get("additionalProperties"))
    return entry if isinstance(entry, dict) else {}


def _pair(node: Node) -> str:
    return f"list of {len(node.get('prefixItems', ()))} numbers"


def _bounds(node: Node) -> str:
    signs = {"minimum": ">=", "exclusiveMinimum": ">", "maximum": "<=", "exclusiveMaximum": "<"}
    limits = [f"{sign} {node[key]:g}" for key, sign in signs.items() if key in node]
    return f" {', '.join(limits)}" if limits else ""


def _default(node: Node, required: bool) -> str:
    if required or "default" not in node:
        return "required" if required else ""
    return json.dumps(node["default"])


def _meaning(node: Node, target: Node) -> str:
    return str(node.get("description") or target.get("description") or "")
