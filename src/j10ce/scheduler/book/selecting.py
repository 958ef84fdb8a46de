"""What selectors of labels choose, by the rules of Kubernetes."""

from __future__ import annotations

from collections.abc import Mapping

from j10ce.scheduler.book.shape import LabelTest, NodeExpression


def chosen(test: LabelTest | None, labels: Mapping[str, str]) -> bool:
    """None chooses nothing, an empty test everything."""
    if test is None:
        return False
    return all(labels.get(key) == value for key, value in test.labels) and all(
        holds(expression, labels) for expression in test.expressions
    )


def holds(expression: NodeExpression, labels: Mapping[str, str]) -> bool:
    """NotIn holds without the label, too; Gt and Lt need two whole numbers."""
    value = labels.get(expression.key)
    match expression.operator:
        case "In":
            return value is not None and value in expression.values
        case "NotIn":
            return value is None or value not in expression.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            have, bound = whole(value), whole(expression.values[0] if len(expression.values) == 1 else None)
            if have is None or bound is None:
                return False
            return have > bound if expression.operator == "Gt" else have < bound


def whole(text: str | None) -> int | None:
    """As Go reads an integer of 64 bits: with a sign or without."""
    digits = text[1:] if text and text[0] in "+-" else text
    if not text or not digits or not digits.isascii() or not digits.isdigit() or len(digits) > 19:
        return None
    number = int(text)
    return number if -(1 << 63) <= number < 1 << 63 else None
