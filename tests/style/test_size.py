"""Files stop at 400 lines, functions at 40 (rule 4).  A failure prints the ten biggest, offenders first."""

from __future__ import annotations

import ast

from tests.style.sources import Function, everything

FILE_STOP = 400
FUNCTION_STOP = 40


def test_files_stop_at_400_lines() -> None:
    sizes = [(source.text.count("\n"), source.path) for source in everything()]
    assert max(sizes)[0] <= FILE_STOP, top_ten(sizes)


def test_functions_stop_at_40_lines() -> None:
    sizes = [
        (lines_of(function), f"{source.path}:{function.lineno} {function.name}")
        for source in everything()
        for function in source.functions()
    ]
    assert max(sizes)[0] <= FUNCTION_STOP, top_ten(sizes)


def lines_of(function: Function) -> int:
    """Lines from `def` to the end, without the docstring: a contract may take the words it needs."""
    lines = (function.end_lineno or function.lineno) - function.lineno + 1
    match function.body[0]:
        case ast.Expr(value=ast.Constant(value=str())) as docstring:
            return lines - ((docstring.end_lineno or docstring.lineno) - docstring.lineno + 1)
    return lines


def top_ten(sizes: list[tuple[int, str]]) -> str:
    return "\n" + "\n".join(f"{lines:5} {name}" for lines, name in sorted(sizes, reverse=True)[:10])
