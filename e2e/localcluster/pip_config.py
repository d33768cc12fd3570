"""The machine's pip settings, handed to image builds as a secret: they are needed to download, and no part of an image."""

import configparser
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

# Whoever needs others (a proxy is passed by buildah itself) has an unusual setup; better an error than a surprise.
_SETTINGS = (
    "index-url",
    "extra-index-url",
    "trusted-host",
    "cert",
    "client-cert",
    "find-links",
    "no-index",
    "timeout",
    "retries",
)
_ALIASES = {"default-timeout": "timeout"}
_CERTIFICATES = Path("/etc/ssl/certs")


@dataclass(frozen=True, kw_only=True)
class PipConfig:
    """A pip.conf, and the machine's files that it names, which the build has to see at the same paths."""

    text: str
    mounts: tuple[Path, ...]


def config_files(environment: Mapping[str, str]) -> list[Path]:
    """Where pip looks, later ones winning."""
    home = Path(environment.get("HOME", "/root"))
    files = [Path("/etc/xdg/pip/pip.conf"), Path("/etc/pip.conf"), home / ".pip/pip.conf"]
    files.append(Path(environment.get("XDG_CONFIG_HOME", home / ".config")) / "pip/pip.conf")
    if chosen := environment.get("PIP_CONFIG_FILE"):
        files.append(Path(chosen))
    return files


def from_files(files: Iterable[Path]) -> dict[str, str]:
    """The settings in pip's files; section `install` wins over `global`, as with pip."""
    parser = configparser.RawConfigParser()
    parser.read([file for file in files if file.is_file()])
    found: dict[str, str] = {}
    for section in ("global", "install"):
        if parser.has_section(section):
            found.update(parser.items(section))
    return {name.replace("_", "-"): value for name, value in found.items()}


def from_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The settings in variables such as PIP_INDEX_URL."""
    return {
        name.removeprefix("PIP_").lower().replace("_", "-"): value
        for name, value in environment.items()
        if name.startswith("PIP_")
    }


def is_usable_link(link: str) -> bool:
    """A `find-links` that is an address or is there; pip itself only warns about others."""
    return "://" in link or Path(link).exists()


def merged(files: Iterable[Path], environment: Mapping[str, str]) -> dict[str, str]:
    """What holds in the end, under pip's current names."""
    raw = {**from_files(files), **from_environment(environment)}
    settings = {_ALIASES.get(name, name): value for name, value in raw.items()}
    settings = {name: settings[name] for name in _SETTINGS if settings.get(name)}
    links = [link for link in settings.pop("find-links", "").split() if is_usable_link(link)]
    return settings | ({"find-links": " ".join(links)} if links else {})


def paths_named(settings: Mapping[str, str]) -> list[Path]:
    """The local files and folders that the settings name."""
    words = [settings.get("cert", ""), settings.get("client-cert", ""), *settings.get("find-links", "").split()]
    return [Path(word) for word in words if word.startswith("/") and Path(word).exists()]


def pip_config(environment: Mapping[str, str] = os.environ, files: Iterable[Path] | None = None) -> PipConfig:
    """The settings of this machine and user."""
    settings = merged(config_files(environment) if files is None else files, environment)
    lines = ["[global]", *(f"{name} = {value}" for name, value in settings.items())]
    mounts = [path for path in paths_named(settings) if not path.is_relative_to(_CERTIFICATES)]
    return PipConfig(text="\n".join(lines) + "\n", mounts=(_CERTIFICATES, *mounts))
