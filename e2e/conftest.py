"""What every end-to-end test has: a cluster that is there, and on failure a picture of it."""

import os
from collections.abc import Generator, Iterator

import pytest

from e2e.localcluster.inside import EXISTING, INSIDE, existing_kubeconfig
from e2e.support.errors import CommandError
from e2e.support.programs import attempt
from e2e.support.service import Watched
from e2e.vllm.service import running

_LOOKS = (
    ("get", "pods", "--all-namespaces", "--output=wide"),
    ("get", "inferenceservices", "--all-namespaces", "--output=wide"),
    ("events", "--all-namespaces"),
)
_LINES = 60


def has_cluster() -> bool:
    """Whether KUBECONFIG leads to a cluster that is there for tests, and not to one that the user has for other things."""
    return bool(os.environ.get(INSIDE) or existing_kubeconfig())


def in_local_cluster() -> bool:
    """Whether the test runs inside the cluster of this machine, whose pods' processes it can see."""
    return bool(os.environ.get(INSIDE))


@pytest.fixture(scope="session")
def cluster() -> None:
    """Assert that the test runs where the cluster can be reached: nothing outside may send to its addresses."""
    if not has_cluster():
        pytest.exit(
            "This test runs inside the cluster's network: `make test-e2e`, or `python -m e2e.localcluster with -- pytest e2e`, "
            f"which start the cluster. To use a cluster of yours set {EXISTING}.",
            returncode=4,
        )


@pytest.fixture(scope="session")
def vllm_service(cluster: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:  # noqa: ARG001 - asserts
    """Real vLLM as a warm InferenceService; the start takes a minute or two, so all tests that need it share this one."""
    with running(tmp_path_factory.mktemp("vllm")) as service:
        yield service


def look(*arguments: str) -> str:
    """One look at the cluster; what kubectl says, be it an error."""
    try:
        done = attempt("kubectl", *arguments, seconds=20)
    except (OSError, CommandError) as error:
        return str(error)
    return "\n".join((done.stdout + done.stderr).splitlines()[-_LINES:])


def picture() -> str:
    """Pods, services and the last events."""
    return "\n\n".join(f"$ kubectl {' '.join(words)}\n{look(*words)}" for words in _LOOKS)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add a picture of the cluster to the report of a failed test, taken at once, before fixtures clean up."""
    report = yield
    if report.failed and has_cluster():
        report.sections.append((f"the cluster after {item.name}", picture()))
    return report
