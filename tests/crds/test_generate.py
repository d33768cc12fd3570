"""`warmfront crds`: what is committed is what the models generate, and a difference is told."""

from pathlib import Path

import pytest
import yaml

from warmfront_api.cli import main
from warmfront_api.crd import chart_yaml, crd_yaml, custom_resource_definition

REPOSITORY = Path(__file__).parents[2]
Capture = pytest.CaptureFixture[str]
FILES = [
    "crds/inferenceservices.warmfront.dev.yaml",
    "charts/warmfront-crds/templates/inferenceservices.warmfront.dev.yaml",
    "docs/reference/api.md",
]


def test_the_committed_files_are_current():
    assert main(["crds", "--check", str(REPOSITORY)]) == 0


def test_the_files_that_are_written_are_those_that_are_committed(tmp_path: Path):
    assert main(["crds", "--write", str(tmp_path)]) == 0
    written = {str(path.relative_to(tmp_path)): path.read_text() for path in tmp_path.rglob("*") if path.is_file()}
    assert written == {name: (REPOSITORY / name).read_text() for name in FILES}


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_drifted_is_named(name: str, tmp_path: Path, capsys: Capture):
    main(["crds", "--write", str(tmp_path)])
    (tmp_path / name).write_text((tmp_path / name).read_text() + "\n")
    capsys.readouterr()
    assert main(["crds", "--check", str(tmp_path)]) == 1
    assert capsys.readouterr().err == f"{tmp_path / name} is not what the models generate: run `make generate`\n"


def test_every_absent_file_is_named(tmp_path: Path, capsys: Capture):
    assert main(["crds", "--check", str(tmp_path)]) == 1
    assert all(name in capsys_line for name, capsys_line in zip(FILES, capsys.readouterr().err.splitlines(), strict=True))


@pytest.mark.parametrize(("option", "name"), [(["--chart"], FILES[1]), (["--reference"], FILES[2])])
def test_the_other_products_can_be_printed(option: list[str], name: str, capsys: Capture):
    assert main(["crds", *option]) == 0
    assert capsys.readouterr().out == (REPOSITORY / name).read_text()


def test_without_options_the_definition_is_printed(capsys: Capture):
    assert main(["crds"]) == 0
    assert yaml.safe_load(capsys.readouterr().out) == custom_resource_definition()


def test_the_charts_definition_differs_only_in_being_kept():
    plain, kept = yaml.safe_load(crd_yaml()), yaml.safe_load(chart_yaml())
    assert kept["metadata"].pop("annotations") == {"helm.sh/resource-policy": "keep"}
    assert kept == plain


def test_the_reference_has_every_field_under_its_object():
    sections = dict(part.split("`\n", 1) for part in (REPOSITORY / "docs/reference/api.md").read_text().split("\n## `")[1:])
    root = custom_resource_definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert "| `targetUtilizationPercent` | integer | `75` | >= 5, <= 100 |" in sections["spec.scaling.capacity"]
    assert '| `mode` | `Active`, `Advisory`, `Paused` | `"Active"` |' in sections["spec.scaling"]
    assert "| `env` | list of object |" in sections["spec.engine"]
    assert "| `limits` | map of integer or string |" in sections["spec.engine.resources"]
    for path, section in sections.items():
        node = root
        for name in path.replace("[]", "").split("."):
            node = node["properties"][name]
            node = node.get("items", node)
        assert all(f"| `{name}` |" in section for name in node["properties"])
