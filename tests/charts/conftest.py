"""The real Helm, from the cache of `e2e/localcluster` (built there once, about two minutes)."""

import pytest

from e2e.localcluster.golang import HELM, ensure_program
from e2e.localcluster.layout import cache
from tests.charts.helm import Helm, Rendered


@pytest.fixture(scope="session")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """The real Helm, built if it is not in the cache."""
    return Helm(binary=ensure_program(cache(), HELM), home=tmp_path_factory.mktemp("helm"))


@pytest.fixture(scope="session")
def defaults(helm: Helm) -> Rendered:
    """The chart with no value set."""
    return helm.render()
