"""The images that run in the cluster, as archives in the cache under keys made of their sources."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from e2e.localcluster.base_image import BASE, base_key, ensure_base
from e2e.localcluster.buildah import Buildah
from e2e.localcluster.console import step
from e2e.localcluster.digests import digest
from e2e.localcluster.dockerfile import Recipe, recipe
from e2e.localcluster.errors import LocalClusterError
from e2e.localcluster.layout import REPOSITORY, Cache
from e2e.localcluster.locks import locked
from e2e.localcluster.nodes import PAUSE_IMAGE, Archive

# Longer than any command takes from learning where the archives are to having imported them.
_IN_USE_SECONDS = 1800.0
_ATTEMPTS = 3


@dataclass(frozen=True, kw_only=True)
class Image:
    """An image: how pods name it, and which target of which Dockerfile it is (None: the last stage)."""

    name: str
    reference: str
    dockerfile: str
    target: str | None = None

    def recipe(self) -> Recipe:
        """What it is made of."""
        return recipe((REPOSITORY / self.dockerfile).read_text(), self.target)

    def key(self) -> str:
        """Changes with anything that decides the image's content."""
        made = self.recipe()
        return digest(REPOSITORY, made.sources, [*made.instructions, base_key(), self.reference])


def component(name: str) -> Image:
    """An image of the project's own code."""
    return Image(name=name, reference=f"localhost/warmfront/{name}:dev", dockerfile="Dockerfile", target=name)


IMAGES = (
    Image(name="pause", reference=PAUSE_IMAGE, dockerfile="e2e/localcluster/images/pause/Dockerfile"),
    *map(component, ("operator", "forecaster", "gateway", "enginesim")),
    Image(
        name="prometheus",
        reference="localhost/warmfront/prometheus:dev",
        dockerfile="e2e/localcluster/images/prometheus/Dockerfile",
    ),
)


def chosen(names: Sequence[str] | None) -> list[Image]:
    """The images of these names and the pause image, without which no pod starts; None means all.

    Raises:
        LocalClusterError: there is no image of that name.
    """
    if names is None:
        return list(IMAGES)
    known = {image.name: image for image in IMAGES}
    if unknown := [name for name in names if name not in known]:
        raise LocalClusterError(f"No image is called {', '.join(unknown)}; there are {', '.join(known)}.")
    return [known[name] for name in dict.fromkeys(["pause", *names])]


def archive_of(where: Cache, image: Image) -> Archive:
    """Where the archive of the present sources is, built or not."""
    key = image.key()
    return Archive(reference=image.reference, file=where.images / f"{image.name}-{key}.tar", key=key)


def remove_old(where: Cache, newest: Archive, name: str) -> None:
    """Older archives of an image go, but for those that a command at work may be about to import."""
    for old in where.images.glob(f"{name}-*.tar"):
        if old != newest.file and time.time() - old.stat().st_mtime > _IN_USE_SECONDS:
            old.unlink(missing_ok=True)


def build(where: Cache, buildah: Buildah, image: Image) -> Archive:
    """Build one image, again if its sources were edited meanwhile: a key must stand for what is in its archive.

    Raises:
        LocalClusterError: the sources do not keep still.
    """
    for _ in range(_ATTEMPTS):
        archive = archive_of(where, image)
        if not archive.file.exists():
            with step(f"built image {image.name}"):
                buildah.build(image.reference, image.dockerfile, {"BASE": BASE}, image.target)
                if image.key() != archive.key:
                    continue
                buildah.save(image.reference, archive.file)
            remove_old(where, archive, image.name)
        return archive
    raise LocalClusterError(f"The sources of the image {image.name} changed during each of {_ATTEMPTS} builds; try again.")


def ensure_images(where: Cache, names: Sequence[str] | None = None) -> list[Archive]:
    """The archives of these images, built where the sources changed.

    Raises:
        CommandFailedError: a build failed.
    """
    archives = [archive_of(where, image) for image in chosen(names)]
    if all(archive.file.exists() for archive in archives):
        return archives
    buildah = Buildah(where=where)
    with locked(where.locks, "images"):
        buildah.tidy()
        ensure_base(where, buildah)
        return [build(where, buildah, image) for image in chosen(names)]
