import pytest

from j10ce.model.text.near import near, one_of


@pytest.mark.parametrize(
    ("word", "meant"),
    [("wbe", "web"), ("WEB", "web"), ("webb", "web"), ("crunc", "crunch"), ("xyzzy", ""), ("", ""), ("x" * 9999, "")],
)
def test_a_mistyped_word_is_the_name_that_it_resembles(word: str, meant: str) -> None:
    assert near(word, ["web", "crunch", "db"]) == meant


def test_a_hint_names_what_was_meant_and_what_there_is() -> None:
    assert one_of("lss", ["be", "ls"]) == "did you mean ls? use one of be, ls"
    assert one_of("xyzzy", ["be", "ls"]) == "use one of be, ls"
