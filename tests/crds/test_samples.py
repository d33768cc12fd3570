"""The samples: the good ones parse; each bad one has one fault and says in which words the API refuses it."""

from pathlib import Path

import pytest
import yaml
from pydantic import ValidationError

from warmfront_api.crd import custom_resource_definition
from warmfront_api.inferenceservice import InferenceService

SAMPLES = Path(__file__).parents[2] / "crds" / "samples"
GOOD = sorted((SAMPLES / "good").glob("*.yaml"))
BAD = sorted((SAMPLES / "bad").glob("*.yaml"))


def rules(schema: object) -> list[dict[str, str]]:
    """Every CEL rule below a schema."""
    if isinstance(schema, list):
        return [rule for item in schema for rule in rules(item)]
    if not isinstance(schema, dict):
        return []
    own = schema.get("x-kubernetes-validations", [])
    return [*own, *(rule for key, inner in schema.items() if key != "x-kubernetes-validations" for rule in rules(inner))]


RULES = rules(custom_resource_definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"])


def expected(path: Path) -> str:
    """The words of the refusal, from the sample's header."""
    [line] = [line for line in path.read_text().splitlines() if line.startswith("# refused: ")]
    return line.removeprefix("# refused: ")


def refused_by_the_model(path: Path) -> bool:
    *_, last = yaml.safe_load_all(path.read_text())
    try:
        InferenceService.model_validate(last)
    except ValidationError:
        return True
    return False


@pytest.mark.parametrize("path", GOOD, ids=lambda path: path.stem)
def test_a_good_sample_parses(path: Path):
    document = yaml.safe_load(path.read_text())
    assert document["apiVersion"] == "warmfront.dev/v1alpha1"
    assert document["kind"] == "InferenceService"
    assert InferenceService.model_validate(document).name == document["metadata"]["name"] == path.stem


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.stem)
def test_a_bad_sample_is_refused_by_the_model_or_by_a_rule_in_the_words_it_says(path: Path):
    by_rule = [rule for rule in RULES if expected(path) in rule["message"]]
    of_a_keyed_list = "Duplicate value" in expected(path)
    assert by_rule or of_a_keyed_list or refused_by_the_model(path)


def test_every_rule_has_a_sample_that_it_refuses():
    said = [expected(path) for path in BAD]
    # Rules that differ in their field's name only are one rule.
    covered = {rule["rule"] for rule in RULES if any(words in rule["message"] for words in said)}
    assert {rule["rule"] for rule in RULES} - covered == set()


def test_there_are_as_many_bad_samples_as_kinds_of_fault():
    assert len(BAD) == len({path.read_text() for path in BAD}) >= 30
