"""Every link leads somewhere, every manifest is valid, every command exists."""

import re
import shlex
from pathlib import Path

import click
import pytest
import yaml

from j10ce.agent.config import load as load_config
from j10ce.cli.main import cli
from j10ce.cli.manifests import load
from j10ce.errors import Invalid
from j10ce.model.schema import decode
from j10ce.policy.validation.validate import validate
from tests.docs.pages import CLONE, Block, blocks, commands, pages

LINK = re.compile(r"\]\(([^)#\s]+)(#[^)]*)?\)")


@pytest.mark.parametrize("page", [pytest.param(p, id=str(p.relative_to(CLONE))) for p in pages()])
def test_links_lead_somewhere(page: Path) -> None:
    for target, anchor in LINK.findall(page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page}: {target}"
            assert not anchor or anchor[1:] in anchors(page.parent / target), f"{page}: {target}{anchor}"


def anchors(page: Path) -> set[str]:
    """The names that renderers give to headings."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def manifests() -> list[object]:
    return [pytest.param(b, id=f"{b.page}:{b.line}") for b in blocks() if "apiVersion: j10ce.io" in b.text]


@pytest.mark.parametrize("block", manifests())
def test_every_manifest_in_the_docs_is_valid(block: Block) -> None:
    for raw in yaml.safe_load_all(block.text):
        assert validate(decode(raw)) == []


@pytest.mark.parametrize("folder", ["standalone", "what-if", "fleet", "network"])
def test_every_example_is_valid(folder: str) -> None:
    assert load([str(CLONE / "examples" / folder)])


def test_the_configuration_of_a_fleets_agents_is_valid(tmp_path: Path) -> None:
    (tmp_path / "fleet.yaml").write_text((CLONE / "deploy/fleet/agent.yaml").read_text())
    assert load_config(tmp_path, {}).server.count("https://") == 3


def test_the_example_configuration_is_valid(tmp_path: Path) -> None:
    assert load_config(CLONE / "examples/config", {}).period.seconds == 1
    (tmp_path / "a.yaml").write_text("period: 1s\nperiodd: 2s\n")
    with pytest.raises(Invalid, match="periodd"):
        load_config(tmp_path, {})


def typed() -> list[object]:
    commands_typed = [(b, c) for b in blocks() for c in commands(b) if c.startswith("j10ce-qos ")]
    return [pytest.param(c, id=f"{b.page}:{b.line} {c[:100]}") for b, c in commands_typed]


@pytest.mark.parametrize("command", typed())
def test_every_command_in_the_docs_parses(command: str) -> None:
    words = shlex.split(command.split(" > ")[0].split(" | ")[0].removesuffix("&").split(" # ")[0])[1:]
    group: click.Command = cli
    while isinstance(group, click.Group):
        ctx = click.Context(group)
        _, words, _ = group.make_parser(ctx).parse_args(words)  # options may stand before a command
        inner = group.get_command(ctx, words.pop(0))
        assert inner is not None, command
        group = inner
    assert group.make_context(group.name, words) is not None


def test_there_is_something_to_check() -> None:
    assert len(manifests()) >= 1
    assert len(typed()) >= 15


def inline() -> list[object]:
    """Commands in the tables of the pages that people open when something is wrong."""
    pages = ("docs/troubleshooting.md", "docs/operations.md")
    mentioned = [(page, c) for page in pages for c in re.findall(r"`(j10ce-qos [^`]+)`", (CLONE / page).read_text())]
    return [pytest.param(re.sub(r"\[[^]]*]", "", c), id=f"{page} {c}") for page, c in dict.fromkeys(mentioned)]


@pytest.mark.parametrize("command", inline())
def test_every_command_in_a_table_of_remedies_parses(command: str) -> None:
    test_every_command_in_the_docs_parses(command)
