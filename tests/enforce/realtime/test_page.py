"""docs/realtime.md: what its first block says is typed, and does what the page says."""

from __future__ import annotations

import shlex

from tests.docs.pages import blocks, commands
from tests.enforce.product import Product
from tests.enforce.realtime.test_real_product import NAPS, OURS, becomes
from tests.enforce.realtime.test_real_product import product as product  # the fixture

SERVER = "./server"


def test_the_commands_of_the_page_are_typed(product: Product) -> None:
    run, explain = next([*commands(b)] for b in blocks() if b.page == "docs/realtime.md")
    assert run.endswith(f"-- {SERVER}")
    name = "api"
    words = shlex.split(run.removesuffix(SERVER))[2:]
    words = [w for w in words if w not in ("--name", name)]
    path = product.launch(name, *words, *NAPS)
    assert becomes(product, path, OURS)
    assert "real-time within its floor, 1.4 CPUs" in product(*shlex.split(explain)[1:]).stdout
