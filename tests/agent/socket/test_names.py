"""One rule for names and labels: what the socket takes is what an object may be called."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from j10ce.agent.socket.admission import LONGEST_NAME, check_names
from j10ce.errors import Invalid
from j10ce.model.kinds import Meta, Workload
from j10ce.policy.validation.validate import validate

TEXT = st.one_of(
    st.text("aZ9-._/", max_size=6), st.text("a-.", min_size=60, max_size=LONGEST_NAME), st.text(max_size=3)
)


def refused(namespace: str, name: str, labels: dict[str, str]) -> set[str]:
    try:
        check_names(namespace, name, labels)
    except Invalid as e:
        return {f"metadata.{f.path}" for f in e.findings}
    return set()


@given(namespace=TEXT.filter(bool), name=TEXT, labels=st.dictionaries(TEXT, TEXT, max_size=3))
def test_the_socket_and_the_objects_agree_on_every_name_and_label(
    namespace: str, name: str, labels: dict[str, str]
) -> None:
    findings = validate(Workload(metadata=Meta(name=name, namespace=namespace, labels=labels)))
    assert refused(namespace, name, labels) == {f.path for f in findings if f.path.startswith("metadata.")}


def test_a_name_is_short_enough_for_the_cgroup_and_the_unit_it_becomes_a_part_of() -> None:
    assert refused("default", "a" * LONGEST_NAME, {}) == set()
    assert refused("default", "a" * (LONGEST_NAME + 1), {}) == {"metadata.name"}
