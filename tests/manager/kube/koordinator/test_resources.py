"""What may be lent, by Koordinator's names: nobody else's amounts are written over."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from j10ce.errors import NotFound
from j10ce.manager.kube.nodes import TheirNames
from j10ce.model.kube.native import NativeMeta, Node, NodeStatus
from j10ce.model.quantity import Quantity

BATCH = "kubernetes.io/batch-cpu"
LENT = {"batch-cpu": Quantity.parse("1500m")}


class Api:
    def __init__(self, *managers: str, there: bool = True) -> None:
        fields = {"f:status": {"f:allocatable": {f"f:{BATCH}": {}}}}
        self._there, self.asked = there, 0
        self._entries = [{"manager": name, "fieldsV1": fields} for name in managers] + [{"manager": "kubelet"}]

    async def get(self, path: str) -> bytes:
        self.asked += 1
        if not self._there:
            raise NotFound(path)
        return msgspec.json.encode({"metadata": {"managedFields": self._entries}})


def node(amount: int | None = None) -> Node:
    has = {} if amount is None else {BATCH: Quantity(amount)}
    return Node(metadata=NativeMeta(name="n1"), status=NodeStatus(allocatable=has))


@pytest.mark.parametrize(
    ("managers", "amount", "patch"),
    [
        ((), None, {BATCH: "1500"}),
        (("j10ce-qos",), 7, {BATCH: "1500"}),
        (("koord-manager",), 7, {}),
        (("koord-manager", "j10ce-qos"), 7, {}),
    ],
    ids=["nobody's", "ours", "theirs", "of both"],
)
async def test_amounts_are_written_where_nobody_else_does(
    managers: tuple[str, ...], amount: int | None, patch: dict[str, str]
) -> None:
    api: Any = Api(*managers)
    assert await TheirNames(api).difference(node(amount), LENT) == patch


async def test_whose_they_are_is_not_asked_when_nothing_differs_nor_again_and_again() -> None:
    same: Any = Api()
    assert await TheirNames(same).difference(node(1500), LENT) == {}
    assert same.asked == 0
    theirs: Any = Api("koord-manager")
    names = TheirNames(theirs)
    assert [await names.difference(node(7), LENT) for _ in range(3)] == [{}, {}, {}]
    assert theirs.asked == 1


async def test_what_is_no_longer_lent_is_taken_back_where_it_is_ours() -> None:
    api: Any = Api("j10ce-qos")
    assert await TheirNames(api).difference(node(7), {}) == {BATCH: None}
    gone: Any = Api(there=False)
    assert await TheirNames(gone).difference(node(), LENT) == {BATCH: "1500"}
