"""The options of the three daemons: whole names only, and a mistyped one is answered with the one that was meant."""

from __future__ import annotations

import argparse

import pytest

from j10ce.agent.main import arguments
from j10ce.manager.config import parser as of_the_manager
from j10ce.scheduler.process.options import parser as of_the_scheduler


@pytest.mark.parametrize(
    ("parser", "words", "message"),
    [
        (arguments(), ["--srver", "x"], "j10ce-qos-agent: no such option: --srver; did you mean --server?"),
        (arguments(), ["--zzz"], "j10ce-qos-agent: no such option: --zzz\n"),
        (of_the_manager(), ["--store", "x", "--lisen=x"], "no such option: --lisen; did you mean --listen?"),
        (of_the_manager(), ["--store", "x", "--grpc-listn", "x"], "did you mean --grpc-listen?"),
        (of_the_scheduler(), ["--kubeconfg", "/x"], "no such option: --kubeconfg; did you mean --kubeconfig?"),
        (of_the_scheduler(), ["--kubec", "/x"], "no such option: --kubec"),
    ],
)
def test_a_mistyped_option_is_answered_with_the_one_that_was_meant(
    parser: argparse.ArgumentParser, words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        parser.parse_args(words)
    said = capsys.readouterr().err
    assert ended.value.code == 2
    assert message in said
    assert said.endswith(f"`{parser.prog} --help` lists the options\n")
