"""`warmfront crds`: what is committed is what the models generate, and a difference is told."""

from pathlib import Path

import pytest
import yaml

from warmfront_api.cli import main
from warmfront_api.crd import chart_yaml, crd_yaml, custom_resource_definition

REPOSITORY = Path(__file__).parents[2]
Capture = pytest.CaptureFixture[str]
PRODUCTS = [
    pytest.param([], "crds", "inferenceservices.warmfront.dev.yaml", id="the definition"),
    pytest.param(["--chart"], "charts/warmfront-crds/templates", "inferenceservices.warmfront.dev.yaml", id="its chart template"),
    pytest.param(["--reference"], "docs/reference", "api.md", id="the field reference"),
]


@pytest.mark.parametrize(("product", "directory", "file_name"), PRODUCTS)
def test_the_committed_file_is_current(product: list[str], directory: str, file_name: str):
    assert (REPOSITORY / directory / file_name).is_file()
    assert main(["crds", *product, "--check", str(REPOSITORY / directory)]) == 0


@pytest.mark.parametrize(("product", "_directory", "file_name"), PRODUCTS)
def test_a_file_that_drifted_is_found_and_written_anew(
    product: list[str], _directory: str, file_name: str, tmp_path: Path, capsys: Capture
):
    assert main(["crds", *product, "--check", str(tmp_path)]) == 1
    assert main(["crds", *product, "--write", str(tmp_path)]) == 0
    assert main(["crds", *product, "--check", str(tmp_path)]) == 0
    path = tmp_path / file_name
    path.write_text(path.read_text() + "\n")
    capsys.readouterr()
    assert main(["crds", *product, "--check", str(tmp_path)]) == 1
    assert "run `make generate`" in capsys.readouterr().err


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
