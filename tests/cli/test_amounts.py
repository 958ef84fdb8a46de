"""Amounts on the command line: what nobody can mean is refused with what they do mean."""

import pytest
from click.testing import CliRunner

from j10ce.cli.main import cli


@pytest.mark.parametrize(
    ("amount", "says"),
    [
        ("512m", "512m is 0.512 bytes, less than a page of memory (4096); did you mean 512Mi?"),
        ("512MB", "unknown suffix 'MB'; did you mean 512Mi?"),
        ("2g", "unknown suffix 'g'; did you mean 2Gi?"),
        ("1.5gb", "unknown suffix 'gb'; did you mean 1.5Gi?"),
        ("100", "100 is 100 bytes, less than a page of memory (4096); write it as 512Mi"),
        ("lots", "not a quantity; write a number"),
    ],
)
@pytest.mark.parametrize("option", ["--memory", "--min-memory", "--request-memory"])
def test_memory_as_other_tools_write_it_is_refused_with_our_spelling(option: str, amount: str, says: str) -> None:
    result = CliRunner().invoke(cli, ["run", option, amount, "--", "true"])
    assert says in result.output
    assert result.exit_code == 2


@pytest.mark.parametrize(
    ("amount", "says"),
    [
        ("512mi", "unknown suffix 'mi'; did you mean 512m?"),
        ("512Mi", "512Mi is more CPUs than any machine has; did you mean 512m?"),
        ("1Gi", "1Gi is more CPUs than any machine has; write it as 2 or 1500m"),
    ],
)
@pytest.mark.parametrize("option", ["--cpu", "--min-cpu"])
def test_cpus_in_the_units_of_memory_are_refused_with_what_was_meant(option: str, amount: str, says: str) -> None:
    result = CliRunner().invoke(cli, ["run", option, amount, "--", "true"])
    assert says in result.output
    assert result.exit_code == 2


def test_a_minimum_of_half_a_byte_is_not_adopted() -> None:
    assert "did you mean 512Mi?" in CliRunner().invoke(cli, ["adopt", "--pid", "2", "--min-memory", "512m"]).output


@pytest.mark.parametrize(
    ("option", "amount", "says"),
    [
        ("--network", "100Mb", "unknown suffix 'Mb'; did you mean 100Mbit?"),
        ("--min-network", "100mbps", "unknown suffix 'mbps'; did you mean 100Mbit?"),
        ("--network", "100mbit", "unknown suffix 'mbit'; did you mean 100Mbit?"),
        ("--network", "100Mbit/s", "did you mean 100Mbit?"),
        ("--min-network", "1 Gbits", "did you mean 1Gbit?"),
        ("--min-network", "100", "100 is 100 bits a second; write it as 100Mbit"),
        ("--network", "1e99bit", "not a quantity"),
        ("--disk-read", "50MB/s", "did you mean 50M?"),
        ("--min-disk-read", "100Mbit", "100Mbit is a line rate, in bits; write bytes a second, such as 50M"),
        ("--min-disk-write", "10", "10 is 10 bytes a second; write it as 50M"),
    ],
)
def test_rates_that_nobody_can_mean_are_refused_with_how_to_write_them(option: str, amount: str, says: str) -> None:
    result = CliRunner().invoke(cli, ["run", option, amount, "--", "true"])
    assert says in result.output
    assert result.exit_code == 2


@pytest.mark.parametrize(
    ("option", "amount"),
    [
        ("--memory", "512Mi"),
        ("--memory", "1G"),
        ("--min-cpu", "500m"),
        ("--min-network", "20%"),
        ("--network", "50Mbit"),
        ("--min-disk-read", "50M"),
        ("--disk-write", "20Mi"),
    ],
)
def test_amounts_in_our_spelling_are_taken(option: str, amount: str) -> None:
    command = cli.get_command(None, "run")  # type: ignore[arg-type]
    assert command is not None
    assert amount in command.make_context("run", [option, amount, "true"]).params.values()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--profle", "ls", "--", "true"], "No such option '--profle'. Did you mean '--profile'?"),
        (["-p", "ls", "--", "true"], "No such option '-p'; did you mean '--profile'?\n"),
        (["--detach", "true"], "No such option '--detach'; write & after the command"),
        (["--dry-run", "true"], "No such option '--dry-run'; `j10ce-qos plan -f FILE` shows"),
        (["-z", "true"], "No such option '-z'."),
    ],
)
def test_run_refuses_an_option_that_it_does_not_know_and_starts_nothing(words: list[str], says: str) -> None:
    result = CliRunner().invoke(cli, ["run", *words])
    assert says in result.output
    assert result.exit_code == 2


def test_options_after_the_command_are_the_commands_own() -> None:
    command = cli.get_command(None, "run")  # type: ignore[arg-type]
    assert command is not None
    assert command.make_context("run", ["ls", "--profle", "-p"]).params["command"] == ("ls", "--profle", "-p")
