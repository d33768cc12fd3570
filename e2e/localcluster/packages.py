"""The Debian packages that the cluster and its images need, installed without starting a service of the machine."""

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from e2e.localcluster.commands import run, succeeds
from e2e.localcluster.console import say, step
from e2e.localcluster.errors import UnsupportedMachineError

NEEDED = (
    "buildah",
    "busybox-static",
    "ca-certificates",
    "conntrack",
    "containerd",
    "containernetworking-plugins",
    "debootstrap",
    "iproute2",
    "iptables",
    "libnuma1",
    "nftables",
    "openssl",
    "prometheus",
    "python3-venv",
    "redis-server",
    "runc",
    "util-linux",
)
_SERVICES = {"prometheus": "prometheus.service", "redis-server": "redis-server.service", "containerd": "containerd.service"}
_POLICY = Path("/usr/sbin/policy-rc.d")
_SAVED_POLICY = Path("/usr/sbin/policy-rc.d.before-warmfront")
_OUR_POLICY = (
    "#!/bin/sh\n# Written by warmfront's e2e/localcluster while it installs packages: no service is started.\nexit 101\n"
)
# Where a package is stood in for by other builds of the same programs, as on machines with docker-ce.
_ALTERNATIVES = {"containerd": ("containerd", "ctr"), "runc": ("runc",)}


def installed() -> set[str]:
    """The packages that are installed whole."""
    listing = run(["dpkg-query", "--show", "--showformat=${Package} ${db:Status-Status}\n"])
    return {name for name, _, status in (line.partition(" ") for line in listing.splitlines()) if status == "installed"}


def missing(present: set[str], programs: Sequence[str] = ()) -> list[str]:
    """What has to be installed, given the installed packages and the programs found on PATH."""

    def stood_in_for(package: str) -> bool:
        wanted = _ALTERNATIVES.get(package, ())
        return bool(wanted) and all(program in programs for program in wanted)

    return [package for package in NEEDED if package not in present and not stood_in_for(package)]


def restore_policy() -> None:
    """Undo `no_services_started`, also after a run that was killed inside it."""
    if _POLICY.exists() and _POLICY.read_text() == _OUR_POLICY:
        _POLICY.unlink()
    if _SAVED_POLICY.exists():
        _SAVED_POLICY.replace(_POLICY)


@contextmanager
def no_services_started() -> Iterator[None]:
    """Debian asks this file before a package's installation starts its service."""
    restore_policy()
    if _POLICY.exists():
        _POLICY.replace(_SAVED_POLICY)
    _POLICY.write_text(_OUR_POLICY)
    _POLICY.chmod(0o755)
    try:
        yield
    finally:
        restore_policy()


def disable_services(packages: Sequence[str]) -> None:
    """What we brought shall not start with the machine either."""
    if not Path("/run/systemd/system").is_dir():
        return
    for package in packages:
        if package in _SERVICES:
            succeeds(["systemctl", "disable", _SERVICES[package]])


def install(packages: Sequence[str]) -> None:
    """Install packages, waiting for another apt at work; a stale package list is fetched anew.

    Raises:
        CommandFailedError: apt could not.
    """
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    command = ["apt-get", "-o", "DPkg::Lock::Timeout=600", "-y", "-q"]
    with no_services_started():
        run([*command, "update"], environment=environment)
        run([*command, "install", "--no-install-recommends", *packages], environment=environment)
    disable_services(packages)


def ensure_packages() -> None:
    """Install what is missing.

    Raises:
        UnsupportedMachineError: this is not Debian or one of its descendants.
    """
    if not shutil.which("apt-get") or not shutil.which("dpkg-query"):
        raise UnsupportedMachineError(
            f"The local cluster installs Debian packages ({', '.join(NEEDED)}); there is no apt-get here."
        )
    programs = [name for names in _ALTERNATIVES.values() for name in names if shutil.which(name)]
    wanted = missing(installed(), programs)
    if wanted:
        say(f"Debian packages to install: {' '.join(wanted)}")
        with step(f"installed {len(wanted)} Debian packages"):
            install(wanted)
