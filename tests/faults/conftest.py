"""Real agents for tests that harm them: each below a top cgroup of its own, everything removed afterwards."""

from tests.agent.conftest import agent

__all__ = ["agent"]
