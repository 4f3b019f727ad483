"""Small rooms: files of at most 600 lines, functions of at most 60, and most far smaller."""

from __future__ import annotations

import ast
from statistics import median

from scripts.repository import SHIPPED, name, python_files

FILE_MAX, FILE_MEDIAN = 600, 200
FUNCTION_MAX, FUNCTION_MEDIAN = 60, 10


def lines_of(path):
    return path.read_text(encoding="utf-8").count("\n")


def functions_of(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, (node.end_lineno or node.lineno) - node.lineno + 1


def test_no_file_is_too_long():
    assert {name(p): n for p in python_files() if (n := lines_of(p)) > FILE_MAX} == {}


def test_no_function_is_too_long():
    long = {
        f"{name(path)}:{function}": n
        for path in python_files()
        for function, n in functions_of(path)
        if n > FUNCTION_MAX
    }
    assert long == {}


def test_most_are_small():
    paths = python_files(*SHIPPED)
    assert median(lines_of(path) for path in paths) <= FILE_MEDIAN
    assert median(n for path in paths for _, n in functions_of(path)) <= FUNCTION_MEDIAN
