"""The kernel of simulated machines, which tests use as a fake."""

from j10ce.sim.cgroups import Cgroup as Cgroup
from j10ce.sim.cgroups import FakeCgroups as FakeCgroups
from j10ce.sim.kernel import Answer as Answer
from j10ce.sim.kernel import FakeKernel as FakeKernel
from j10ce.sim.kernel import refused as refused
