"""The images: what they are made of, and so when they are built anew."""

import re

import pytest

from e2e.localcluster import dockerfile
from e2e.localcluster.digests import files_below
from e2e.localcluster.errors import LocalClusterError
from e2e.localcluster.images import IMAGES, Image, chosen
from e2e.localcluster.layout import REPOSITORY

OURS = [image for image in IMAGES if image.dockerfile == "Dockerfile"]
BY_NAME = pytest.mark.parametrize("image", IMAGES, ids=lambda image: image.name)
OURS_BY_NAME = pytest.mark.parametrize("image", OURS, ids=lambda image: image.name)

TEXT = r"""
# A comment.
ARG BASE=debian
FROM ${BASE} AS tools
COPY tools.txt /
FROM tools AS one
COPY --chown=1:1 one/a \
     # of which nothing remains
     one/b /srv/
RUN make   one
FROM tools AS two
ADD two /srv
FROM scratch AS first
COPY --from=one /srv /srv
COPY LICENSE /
FROM scratch AS second
RUN --mount=type=bind,from=two,source=/srv,target=/srv make
FROM first
COPY last /
"""
SOURCES = {
    "first": ("tools.txt", "one/a", "one/b", "LICENSE"),
    "second": ("tools.txt", "two"),
    "two": ("tools.txt", "two"),
    None: ("tools.txt", "one/a", "one/b", "LICENSE", "last"),
}


@pytest.mark.parametrize(("target", "sources"), SOURCES.items())
def test_a_target_is_made_of_what_its_stages_copy_and_of_no_others(target: str | None, sources: tuple[str, ...]) -> None:
    assert dockerfile.recipe(TEXT, target).sources == sources


EDITS = {
    "a stage that it is built upon": ("COPY tools.txt /", "COPY tools.txt /opt", True),
    "a stage that it takes files from": ("make   one", "make all", True),
    "an argument before the first stage": ("BASE=debian", "BASE=alpine", True),
    "a stage that it does not need": ("ADD two /srv", "ADD two /opt", False),
    "a comment": ("# A comment.", "# Another.", False),
    "blanks": ("make   one", "make one", False),
}


@pytest.mark.parametrize(("old", "new", "changes"), EDITS.values(), ids=EDITS)
def test_the_recipe_of_a_target_changes_with_its_own_stages(old: str, new: str, changes: bool) -> None:
    before, after = (dockerfile.recipe(text, "first") for text in (TEXT, TEXT.replace(old, new)))
    assert TEXT.replace(old, new) != TEXT
    assert (before != after) is changes


def test_a_target_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(LocalClusterError, match=r"no stage third; there are tools, one, two, first, second, 5"):
        dockerfile.recipe(TEXT, "third")


@BY_NAME
def test_an_image_is_built_from_files_that_are_there(image: Image) -> None:
    assert [source for source in image.recipe().sources if not (REPOSITORY / source).exists()] == []


@OURS_BY_NAME
def test_what_an_image_copies_is_let_through_to_the_build(image: Image) -> None:
    through = set((REPOSITORY / ".dockerignore").read_text().splitlines())
    assert [path for path in image.recipe().sources if through.isdisjoint({f"!{path}", f"!{path.split('/')[0]}"})] == []


@OURS_BY_NAME
def test_an_edit_of_the_documentation_builds_no_image_anew(image: Image) -> None:
    files = [file for source in image.recipe().sources for file in files_below(REPOSITORY / source)]
    assert len(files) > 5
    assert [file.name for file in files if file.suffix == ".md"] == []


# Whoever edits one component waits for no other's image; the operator and the simulator import the forecaster's planning.
USERS = {
    "operator/warmfront_operator": {"operator"},
    "forecaster/warmfront_forecaster": {"operator", "forecaster", "enginesim"},
    "runtime/warmfront_runtime": {"gateway"},
    "e2e/enginesim": {"enginesim"},
    "crds/warmfront_api": {"operator", "forecaster", "gateway", "enginesim"},
}


@pytest.mark.parametrize(("package", "users"), USERS.items(), ids=USERS)
def test_a_package_is_in_the_images_that_import_it(package: str, users: set[str]) -> None:
    assert {image.name for image in OURS if package in image.recipe().sources} == users


@OURS_BY_NAME
def test_everything_that_is_installed_into_an_image_is_locked_by_its_hash(image: Image) -> None:
    installs = [line for line in image.recipe().instructions if "pip install" in line]
    ours = [line for line in installs if re.search(r"--no-deps --no-build-isolation --root /out \.$", line)]
    locked = [line for line in installs if "--require-hashes --only-binary :all: --requirement /" in line]
    assert len(ours) == 1
    assert {re.search(r"--requirement /(\w+)\.txt", line)[1] for line in locked} >= {"build"}
    assert len(installs) == len(ours) + len(locked)


@BY_NAME
def test_an_image_runs_as_a_user_without_rights(image: Image) -> None:
    *_, user = [line for line in image.recipe().instructions if line.startswith("USER ")]
    assert re.fullmatch(r"USER 6553\d:6553\d", user)


def test_the_pause_image_comes_with_any_choice_of_images() -> None:
    assert [image.name for image in chosen(["gateway", "pause"])] == ["pause", "gateway"]
    with pytest.raises(LocalClusterError, match="operator"):
        chosen(["operato"])
