"""Take out what looks like a secret, by the name it goes under or by its own form.

Pure. Applied to everything that a run writes of what it was given: configuration, metadata,
plan, log lines. A name is a secret's if one of its words is (``DB_PASSWORD``, ``apiToken``);
``max_tokens`` and ``tokenizer`` are not. To redact twice is to redact once.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from typing import Any

REDACTED = "[redacted]"

_WORDS = frozenset(
    {
        "accesskey",
        "apikey",
        "authorization",
        "cookie",
        "credential",
        "credentials",
        "dsn",
        "jwt",
        "passphrase",
        "passwd",
        "password",
        "privatekey",
        "pwd",
        "secret",
        "secretkey",
        "token",
    }
)
_PAIRS = frozenset(
    {
        ("api", "key"),
        ("access", "key"),
        ("account", "key"),
        ("encryption", "key"),
        ("private", "key"),
        ("secret", "key"),
        ("signing", "key"),
    }
)
_SPLIT = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")

_NAME = r"(?P<name>[A-Za-z_][A-Za-z0-9_.\-]{0,80})"
_ASSIGNED = re.compile(
    rf"""(?<![A-Za-z0-9_]){_NAME}\\?["']?[ \t]*[:=][ \t]*"""
    rf"|(?<![A-Za-z0-9_\-])--{_NAME.replace('name', 'flag')}[ \t]+(?!-)"
)
_VALUE = re.compile(
    r"""\[redacted\]|(?P<quote>\\?["'])(?:[^"'\\\n]|\\[^"'\n]|(?!(?P=quote))\\?["'])*(?P=quote)"""
    r"""|\\?["'][^\n]+|(?:[^\s"'&\\]|\\(?!["']))+"""
)
_HEADER = re.compile(r"""(?:[^\r\n"'\\]|\\(?!["']))+""")
_WHOLE_LINE = ("authorization", "cookie")
_HARMLESS = frozenset({"null", "none", "true", "false"})
_SCHEMES = re.compile(
    r"\b(?P<scheme>bearer|basic|digest|negotiate)[ \t]+(?P<value>[A-Za-z0-9._~+/\-]{8,}=*)",
    re.IGNORECASE,
)
_URL_USER = re.compile(r"(?P<scheme>\b[A-Za-z][A-Za-z0-9+.\-]{0,30}://)[^\s/\"'<>]{1,500}@")
_SHAPES = (
    re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
    re.compile(r"\bgh[pousr]_[A-Za-z0-9]{30,255}\b"),
    re.compile(r"\bgithub_pat_[A-Za-z0-9_]{30,255}\b"),
    re.compile(r"\bglpat-[A-Za-z0-9_\-]{20,255}"),
    re.compile(r"\bxox[abeoprs]-[A-Za-z0-9\-]{10,255}"),
    re.compile(r"\bhf_[A-Za-z0-9]{30,255}\b"),
    re.compile(r"\bsk-[A-Za-z0-9_\-]{20,255}"),
    re.compile(r"\bAIza[A-Za-z0-9_\-]{35}"),
    re.compile(r"\beyJ[A-Za-z0-9_\-]{8,4000}\.eyJ[A-Za-z0-9_\-]{8,8000}\.[A-Za-z0-9_\-]{0,4000}"),
)
_SIGNS = (
    "key",
    *sorted(word for word in _WORDS if not word.endswith("key")),
    *("bearer", "basic", "digest", "negotiate", "://", "-----begin "),
    *("akia", "asia", "gh", "github_pat_", "glpat-", "xox", "hf_", "sk-", "aiza", "eyj"),
)
"""Whatever is redacted has one of these in it, in lower case."""
_PEM = re.compile(
    r"(-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----)(?:(?!-----)[\s\S])*(-----END [A-Z ]{0,40}-----)?"
)


def is_secret_name(name: str) -> bool:
    """Return whether a variable, key or flag of that name holds a secret."""
    words = [word.lower() for word in _SPLIT.findall(name)]
    named = not _WORDS.isdisjoint(words) and name != "PWD"
    return named or not _PAIRS.isdisjoint(itertools.pairwise(words))


def may_hold_secret(text: str) -> bool:
    """Return whether it is worth looking closer: False only where :func:`redact` changes nothing.

    Some fifty times as quick as that, for logs.
    """
    folded = text.casefold()
    return any(sign in folded for sign in _SIGNS)


def redact(text: str) -> str:
    """Return a text without its secrets; names, quotes and all other text stay as they were."""
    text = _PEM.sub(lambda m: f"{m[1]}{REDACTED}{m[2] or ''}", text)
    text = _SCHEMES.sub(lambda m: f"{m['scheme']} {REDACTED}", text)
    text = _URL_USER.sub(lambda m: f"{m['scheme']}{REDACTED}@", text)
    for shape in _SHAPES:
        text = shape.sub(REDACTED, text)
    return _redact_assignments(text)


def redact_argv(argv: Sequence[str]) -> tuple[str, ...]:
    """Return a command line without its secrets, also where ``--token`` and ``x`` are two."""
    return tuple(_redact_sequence(argv))


def redact_mapping(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy, of plain dicts and lists, in which the secrets at any depth are redacted.

    What stands under a secret's name is replaced whole, unless it is None, a bool or empty; other
    texts go through :func:`redact`.
    """
    return {key: _redact_value(key, value) for key, value in values.items()}


def _redact_value(name: object, value: Any) -> Any:
    if isinstance(name, str) and is_secret_name(name) and _says_something(value):
        return REDACTED
    return _redact_any(value)


def _redact_any(value: Any) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        return redact_mapping(value)
    if isinstance(value, (list, tuple)):
        return _redact_sequence(value)
    return value


def _redact_sequence(values: Sequence[Any]) -> list[Any]:
    """As a list of arguments: what follows ``--password`` is one."""
    flags = [False, *(_is_secret_flag(value) for value in values)]
    return [
        REDACTED if after and _says_something(value) else _redact_any(value)
        for after, value in zip(flags, values, strict=False)
    ]


def _is_secret_flag(value: Any) -> bool:
    return (
        isinstance(value, str)
        and value.startswith("-")
        and not set(value) & set("= \t")
        and is_secret_name(value)
    )


def _says_something(value: Any) -> bool:
    return value is not None and not isinstance(value, bool) and value not in ("", {}, [], ())


def _redact_assignments(text: str) -> str:
    """Replace what follows a secret's name and ``=``, ``:``, or the blank after a flag."""
    kept: list[str] = []
    done = at = 0
    while (found := _ASSIGNED.search(text, at)) is not None:
        at = found.end()
        name = found["name"] or found["flag"]
        if not is_secret_name(name):
            continue
        header = _HEADER.match(text, at) if name.lower().endswith(_WHOLE_LINE) else None
        value = header or _VALUE.match(text, at)
        if value is None or value[0].rstrip(",;)]}").lower() in _HARMLESS:
            continue
        quote = value["quote"] if value.re is _VALUE and value["quote"] else ""
        kept += [text[done:at], quote, REDACTED, quote]
        done = at = value.end()
    return "".join([*kept, text[done:]])
