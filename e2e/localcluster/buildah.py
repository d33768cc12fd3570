"""buildah with a storage of its own, so that no image of the machine is seen or changed."""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from e2e.localcluster.commands import run
from e2e.localcluster.layout import REPOSITORY, Cache
from e2e.localcluster.pip_config import pip_config

KEY_LABEL = "dev.warmfront.key"
# `chroot` needs neither cgroups nor a network of its own, so it works wherever we are root.
_ISOLATION = "chroot"
_CACHED_LAYERS = 60
# Half the processor time of the default, on both sides.
_COMPRESSION = ("--compression-format", "zstd", "--compression-level", "1")


@dataclass(frozen=True, kw_only=True)
class Buildah:
    """A storage."""

    where: Cache

    def command(self, *arguments: str | Path) -> list[str | Path]:
        """The words of a command on this storage."""
        storage = self.where.buildah
        return ["buildah", "--root", storage / "root", "--runroot", storage / "run", "--storage-driver", "overlay", *arguments]

    def run(self, *arguments: str | Path) -> str:
        """Run a command on this storage.

        Raises:
            CommandFailedError: with the end of what buildah said.
        """
        (self.where.buildah / "run").mkdir(parents=True, exist_ok=True)
        return run(self.command(*arguments)).strip()

    def key_of(self, image: str) -> str | None:
        """The key that an image was labelled with; None when it is not in the storage."""
        listing = self.run("images", "--all", "--filter", f"label={KEY_LABEL}", "--format", "{{.Name}}:{{.Tag}}")
        if image not in listing.split():
            return None
        label = "{{index .Docker.Config.Labels " + f'"{KEY_LABEL}"' + "}}"
        return self.run("inspect", "--type", "image", "--format", label, image)

    def tidy(self) -> None:
        """Remove what killed builds left, and the cached layers once there are many: most are of past sources."""
        self.run("rm", "--all")
        if len(self.run("images", "--quiet", "--filter", "dangling=true").split()) > _CACHED_LAYERS:
            self.run("rmi", "--prune")

    def build(self, tag: str, dockerfile: str, arguments: Mapping[str, str], target: str | None) -> None:
        """Build a target of a Dockerfile of the repository, whose root is the context; None is the last stage."""
        self.where.pip.mkdir(parents=True, exist_ok=True)
        settings = pip_config()
        with tempfile.NamedTemporaryFile("w", suffix=".conf", encoding="utf-8") as secret:
            secret.write(settings.text)
            secret.flush()
            words = ["build", "--layers", "--isolation", _ISOLATION, "--pull-never", "--secret", f"id=pip.conf,src={secret.name}"]
            words += [f"--volume={path}:{path}:ro" for path in settings.mounts]
            words += [f"--volume={self.where.pip}:/root/.cache/pip"]
            words += [word for name, value in arguments.items() for word in ("--build-arg", f"{name}={value}")]
            words += [f"--target={target}"] if target else []
            self.run(*words, "--tag", tag, "--file", str(REPOSITORY / dockerfile), str(REPOSITORY))

    def save(self, tag: str, file: Path) -> None:
        """Write an image to an archive, whole or not at all."""
        file.parent.mkdir(parents=True, exist_ok=True)
        draft = file.with_name(f".{file.name}.draft")
        draft.unlink(missing_ok=True)
        self.run("push", "--quiet", *_COMPRESSION, tag, f"oci-archive:{draft}:{tag}")
        draft.replace(file)

    def commit_tree(self, tag: str, tree: Path, labels: Mapping[str, str], settings: Sequence[str]) -> None:
        """Make an image of one layer from a folder."""
        container = self.run("from", "scratch")
        try:
            self.run("add", "--quiet", container, tree, "/")
            words = [word for name, value in labels.items() for word in ("--label", f"{name}={value}")]
            self.run("config", *words, *settings, container)
            self.run("commit", "--quiet", container, tag)
        finally:
            self.run("rm", container)
