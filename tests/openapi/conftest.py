"""The manager of tests/manager, for documents."""

from tests.manager.conftest import api, manager

__all__ = ["api", "manager"]
