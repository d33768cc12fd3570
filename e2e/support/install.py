"""Warmfront as a user installs it: two charts, the images of this working tree."""

from typing import Final

from e2e.localcluster.layout import REPOSITORY
from e2e.support import kube, prometheus

NAMESPACE: Final = "warmfront-system"
RELEASE: Final = "warmfront"
CHARTS: Final = REPOSITORY / "charts"


def install_warmfront(*, tick_seconds: int) -> None:
    """Install the definitions and then the operator and the forecaster; returns when both are ready."""
    kube.helm_install("warmfront-crds", CHARTS / "warmfront-crds", namespace=NAMESPACE)
    values = [*_image_values(), f"prometheus.url={prometheus.URL}", f"operator.tickSeconds={tick_seconds}"]
    kube.helm_install(RELEASE, CHARTS / "warmfront", namespace=NAMESPACE, values=values)


def _image_values() -> list[str]:
    values = []
    for component in ("operator", "forecaster", "gateway"):
        values += [f"{component}.image.repository=localhost/warmfront/{component}", f"{component}.image.tag=dev"]
    return values
