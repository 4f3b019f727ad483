"""No secret that was given to a run is found in what the run writes."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rolltop.model.redact import (
    REDACTED,
    is_secret_name,
    may_hold_secret,
    redact,
    redact_argv,
    redact_mapping,
)

SECRET_NAMES = [
    "password",
    "DB_PASSWORD",
    "api_key",
    "apiKey",
    "API-KEY",
    "X-Api-Key",
    "token",
    "wandb.api_token",
    "hfToken",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_ACCESS_KEY_ID",
    "client_secret",
    "passphrase",
    "Authorization",
    "SLURM_JWT",
    "privateKey",
    "Set-Cookie",
]
PLAIN_NAMES = [
    "max_tokens",
    "tokenizer",
    "keyboard",
    "monkey",
    "key",
    "PWD",
    "secretary",
    "compass",
    "public_key_path",
    "run.seed",
    "PATH",
]
secrets = st.text("abcdefghijklmnopqrstuvwxyzABCXYZ0123456789+/._~", min_size=6, max_size=40).map(
    lambda text: f"Qz{text}"
)
PEM = "-----BEGIN PRIVATE KEY-----"
separators = st.sampled_from(["=", ": ", " = ", ":", '="', "='", '": "', "': '", '\\": \\"'])


@pytest.mark.parametrize("name", SECRET_NAMES)
def test_names_of_secrets_are_known(name):
    assert is_secret_name(name)


@pytest.mark.parametrize("name", PLAIN_NAMES)
def test_other_names_are_left_alone(name):
    assert not is_secret_name(name)
    assert redact(f"{name}=42 {name}: x") == f"{name}=42 {name}: x"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("password=hunter2 next", "password=[redacted] next"),
        ('{"api_key": "a, b", "n": 1}', '{"api_key": "[redacted]", "n": 1}'),
        ("{'token': 'abc'}", "{'token': '[redacted]'}"),
        (r'"{\"password\": \"a b\"}"', r'"{\"password\": \"[redacted]\"}"'),
        ("PASSWORD='don\"t' x", "PASSWORD='[redacted]' x"),
        (r'PASSWORD="a\"b" x', 'PASSWORD="[redacted]" x'),
        ('PASSWORD="never closed', "PASSWORD=[redacted]"),
        ("Authorization: Bearer abc def", "Authorization: [redacted]"),
        ("-H 'Authorization: token abc' x", "-H 'Authorization: [redacted]' x"),
        ("sent Bearer abcdefgh12345.", "sent Bearer [redacted]"),
        ("run --token abc --seed 3", "run --token [redacted] --seed 3"),
        ("run --token --seed 3", "run --token --seed 3"),
        ("run --token=abc", "run --token=[redacted]"),
        ("http://user:pass@host/x?a=1", "http://[redacted]@host/x?a=1"),
        ("postgres://u:p@ss@host/db", "postgres://[redacted]@host/db"),
        ("https://ghp_x@github.com/a", "https://[redacted]@github.com/a"),
        ("https://h/x?access_token=zz&a=1", "https://h/x?access_token=[redacted]&a=1"),
        ("mail me@example.org", "mail me@example.org"),
        ("id AKIAABCDEFGHIJKLMNOP.", "id [redacted]."),
        ("with ghp_" + "a1" * 18, "with [redacted]"),
        ("with github_pat_" + "a1" * 20, "with [redacted]"),
        ("with hf_" + "aB" * 17, "with [redacted]"),
        ("with sk-proj-" + "a1" * 20, "with [redacted]"),
        ("jwt eyJhbGciOiJI.eyJzdWIiOiIx.SflKxwRJSM", "jwt [redacted]"),
        ("token: null, secret: true", "token: null, secret: true"),
        ("token: [redacted]", "token: [redacted]"),
        ("the password is long", "the password is long"),
        (
            "-----BEGIN RSA PRIVATE KEY-----\nabc\ndef\n-----END RSA PRIVATE KEY-----\nx",
            "-----BEGIN RSA PRIVATE KEY-----[redacted]-----END RSA PRIVATE KEY-----\nx",
        ),
        (
            "-----BEGIN PRIVATE KEY-----\ncut off",
            "-----BEGIN PRIVATE KEY-----[redacted]",
        ),
    ],
)
def test_a_text_loses_its_secrets_and_nothing_else(text, expected):
    assert may_hold_secret(text) or text == expected
    assert redact(text) == expected
    assert redact(expected) == expected


@given(st.sampled_from(SECRET_NAMES), separators, secrets, st.sampled_from(["", " x", "\ny=2"]))
def test_no_secret_stays_under_its_name(name, separator, secret, rest):
    closing = separator.strip("=: ").lstrip("'\"\\")
    quote = next((q for q in ('\\"', '"', "'") if separator.endswith(q)), closing)
    shown = redact(f"before {name}{separator}{secret}{quote}{rest}")
    assert secret not in shown
    assert REDACTED in shown
    assert shown.startswith(f"before {name}")
    if rest.startswith("\n"):
        assert shown.endswith(rest)


words = st.sampled_from(
    [*SECRET_NAMES, "=", ":", '"', "'", "\\", "--", " ", "\n", "Bearer ", "://", "@", "x", REDACTED]
)


@given(st.one_of(st.text(max_size=200), st.lists(words, max_size=30).map("".join)))
@example('token="a"b=secret"')
def test_to_redact_twice_is_to_redact_once(text):
    once = redact(text)
    assert redact(once) == once


@given(st.text("abc =:\n,.0123456789/-", max_size=300))
def test_a_text_without_a_secret_stays_as_it_is(text):
    assert redact(text) == text


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text("abc ="),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from([*SECRET_NAMES, *PLAIN_NAMES]), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(st.dictionaries(st.sampled_from([*SECRET_NAMES, *PLAIN_NAMES]), json_values))
def test_a_mapping_loses_its_secrets_and_nothing_else(values):
    before = json.dumps(values)
    shown = redact_mapping(values)
    assert json.dumps(values) == before
    assert redact_mapping(shown) == shown
    assert list(shown) == list(values)
    for name, value in values.items():
        if is_secret_name(name):
            assert shown[name] == REDACTED or value in (None, True, False, "", [], {})
        elif not isinstance(value, dict | list):
            assert shown[name] == value


def test_secrets_are_found_at_any_depth():
    values = {"services": {"renderer": {"env": {"HF_TOKEN": "x", "A": "1"}}}, "n": (1, "pwd=x")}
    assert redact_mapping(values) == {
        "services": {"renderer": {"env": {"HF_TOKEN": REDACTED, "A": "1"}}},
        "n": [1, "pwd=[redacted]"],
    }
    assert redact_mapping({"token": ["a", "b"], "secret": {"a": "b"}, "pwd": 7}) == {
        "token": REDACTED,
        "secret": REDACTED,
        "pwd": REDACTED,
    }


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["a", "--token", "x", "b"], ("a", "--token", REDACTED, "b")),
        (["a", "--token=x", "b"], ("a", "--token=[redacted]", "b")),
        (["a", "--token", "", "b"], ("a", "--token", "", "b")),
        (["sim.api_key=x", "seed=3"], ("sim.api_key=[redacted]", "seed=3")),
        (["a", "-token", "x"], ("a", "-token", REDACTED)),
        (["http://u:p@h", "token", "x"], ("http://[redacted]@h", "token", "x")),
        ([], ()),
    ],
)
def test_a_command_line_loses_its_secrets(argv, expected):
    assert redact_argv(argv) == expected


def test_a_long_text_takes_no_time_to_speak_of():
    """Each of these is what makes a careless expression take for ever."""
    for text in (
        "token=" * 20_000,
        "a" * 200_000,
        "--a" * 50_000,
        '\\"' * 100_000,
        "x://" * 50_000,
        PEM * 5_000,
    ):
        redact(text)


@given(st.text(max_size=200), st.sampled_from(["", *SECRET_NAMES]), separators, secrets)
def test_what_is_changed_was_suspected(text, name, separator, secret):
    written = f"{text}{name}{separator}{secret}"
    assert may_hold_secret(written) or redact(written) == written
    assert may_hold_secret(written) or not name
