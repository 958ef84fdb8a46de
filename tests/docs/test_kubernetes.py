"""What the pages on Kubernetes tell people to type by hand does what they say."""

from __future__ import annotations

import json
import subprocess

from j10ce.manager.kube.nodes import LENT, difference
from j10ce.model.kube.native import NativeMeta, Node, NodeStatus
from j10ce.model.quantity import Quantity
from tests.docs.pages import blocks, commands


def test_what_was_lent_is_removed_by_hand_as_the_manager_removes_it() -> None:
    (block,) = (b for b in blocks() if b.page == "docs/kubernetes-manager.md" and "kubectl patch node" in b.text)
    typed = "\n".join(commands(block)).replace("kubectl", "printf '%s\\n'")
    words = subprocess.run(["bash", "-ec", typed], capture_output=True, text=True, check=True).stdout.splitlines()
    lent = {f"j10ce.io/{name}": Quantity(1) for name in LENT}
    removed = difference(Node(metadata=NativeMeta(name="n1"), status=NodeStatus(allocatable=lent)), {})
    assert set(removed) == set(lent)
    assert json.loads(words[-1]) == {"status": {"capacity": removed, "allocatable": removed}}
    assert "--type=merge" in words, "what is not there is no mistake"
