"""kube-scheduler's JSON: Go's names out, any case in."""

from __future__ import annotations

import msgspec
import pytest

from j10ce.errors import Invalid
from j10ce.scheduler.extender import wire

POD = '{"metadata":{"name":"web-0","uid":"u"},"spec":{"containers":null},"status":{}}'


@pytest.mark.parametrize(
    "keys", [("Pod", "Nodes", "NodeNames"), ("pod", "nodes", "nodeNames"), ("POD", "nodes", "nodenames")]
)
def test_keys_may_be_in_any_case(keys: tuple[str, str, str]) -> None:
    pod, nodes, names = keys
    call = wire.read_filter(wire.question(f'{{"{pod}":{POD},"{nodes}":null,"{names}":["a","b"]}}'.encode()))
    assert (call.pod.metadata.name, call.nodes) == ("web-0", ["a", "b"])


def test_no_names_are_no_nodes() -> None:
    assert wire.read_filter(wire.question(f'{{"Pod":{POD},"Nodes":null,"NodeNames":null}}'.encode())).nodes == ()


def test_whole_nodes_are_refused_with_what_to_configure() -> None:
    with pytest.raises(Invalid, match="nodeCacheCapable"):
        wire.read_filter(wire.question(f'{{"Pod":{POD},"Nodes":{{"items":[]}},"NodeNames":null}}'.encode()))


@pytest.mark.parametrize(
    "text", [b"", b"[]", b"{", b'{"Pod":null}', b'{"Pod":{"metadata":3}}', b'{"Pod":{},"NodeNames":3}']
)
def test_what_is_no_request_is_refused(text: bytes) -> None:
    with pytest.raises(Invalid):
        wire.read_filter(wire.question(text))


def test_victims_by_node() -> None:
    victims = '{"a":{"Pods":[{"UID":"x"}],"NumPDBViolations":1}}'
    text = f'{{"Pod":{POD},"NodeNameToVictims":null,"NodeNameToMetaVictims":{victims}}}'
    assert wire.read_preempt(text.encode()).victims == {"a": (["x"], 1)}
    assert wire.read_preempt(text.lower().encode()).victims == {"a": (["x"], 1)}


def test_whole_victims_are_refused_with_what_to_configure() -> None:
    with pytest.raises(Invalid, match="nodeCacheCapable"):
        wire.read_preempt(f'{{"Pod":{POD},"NodeNameToVictims":{{"a":{{"Pods":[]}}}}}}'.encode())


def test_answers_have_gos_field_names_and_leave_nothing_out() -> None:
    victims = {"a": wire.MetaVictims([wire.MetaPod("x")], 1)}
    nothing = '{"Nodes":null,"NodeNames":null,"FailedNodes":null,"FailedAndUnresolvableNodes":null,"Error":""}'
    answers = {
        nothing: wire.FilterAnswer(),
        '[{"Host":"a","Score":1}]': [wire.HostPriority("a", 1)],
        '{"NodeNameToMetaVictims":{"a":{"Pods":[{"UID":"x"}],"NumPDBViolations":1}}}': wire.PreemptAnswer(victims),
    }
    assert [msgspec.json.encode(made).decode() for made in answers.values()] == list(answers)
