"""The command line of the scheduler."""

from __future__ import annotations

from pathlib import Path

import pytest

from j10ce.scheduler.process.options import read


@pytest.mark.parametrize(
    ("words", "level"),
    [([], "info"), (["--v=2"], "info"), (["-v", "5"], "debug"), (["--v=9", "--log-level=warning"], "warning")],
    ids=["nothing said", "a little", "much, as of kube-scheduler", "said in our own words"],
)
def test_verbosity_is_understood_as_kubernetes_writes_it(words: list[str], level: str) -> None:
    assert read(["--store", "kube:", *words]).log_level == level


def test_a_kubeconfig_is_a_store(tmp_path: Path) -> None:
    assert read(["--kubeconfig", str(tmp_path / "admin.conf")]).store == f"kube://{tmp_path}/admin.conf"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ([], "where the API server is"),
        (["--store", "kube:", "--kubeconfig", "x"], "where the API server is"),
        (["--store", "etcd://127.0.0.1:2379"], "j10ce-qos place"),
        (["--store", "kube:", "--leader-elect", "perhaps"], "write true or false"),
    ],
    ids=["no API server", "two of them", "a fleet", "no truth"],
)
def test_what_cannot_be_is_refused_with_the_way_out(
    words: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        read(words)
    assert text in capsys.readouterr().err
