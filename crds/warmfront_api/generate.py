"""`warmfront crds`: prints what is generated from the API models, writes it, or checks that written files are current."""

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from warmfront_api.crd import CRD_NAME, chart_yaml, crd_yaml
from warmfront_api.fieldreference import field_reference


@dataclass(frozen=True, kw_only=True)
class Product:
    """Something that the models generate: its file's name and the function that renders it."""

    file_name: str
    render: Callable[[], str]


DEFINITION: Final = Product(file_name=f"{CRD_NAME}.yaml", render=crd_yaml)
CHART: Final = Product(file_name=f"{CRD_NAME}.yaml", render=chart_yaml)
REFERENCE: Final = Product(file_name="api.md", render=field_reference)


def drifted(product: Product, directory: Path) -> bool:
    """Whether the file in `directory` is absent or differs from what the models generate now."""
    path = directory / product.file_name
    return not path.is_file() or path.read_text(encoding="utf-8") != product.render()


def write(product: Product, directory: Path) -> Path:
    """Write the file into `directory`, made if absent. Returns its path."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / product.file_name
    path.write_text(product.render(), encoding="utf-8")
    return path


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="warmfront crds", description=__doc__)
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--chart", action="store_const", dest="product", const=CHART, help="as a Helm template that is kept on uninstall"
    )
    what.add_argument("--reference", action="store_const", dest="product", const=REFERENCE, help="the field reference, Markdown")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--write", type=Path, metavar="DIR", help="write the file into DIR")
    how.add_argument("--check", type=Path, metavar="DIR", help="exit 1 when the file in DIR is not current")
    parser.set_defaults(product=DEFINITION)
    return parser


def main(argv: Sequence[str]) -> int:
    """Entry point of the subcommand. Returns the exit status: 1 when a checked file is not current."""
    options = _parser().parse_args(argv)
    product: Product = options.product
    if options.write is not None:
        print(write(product, options.write))
    elif options.check is None:
        print(product.render(), end="")
    elif drifted(product, options.check):
        print(f"{options.check / product.file_name} is not what the models generate: run `make generate`", file=sys.stderr)
        return 1
    return 0
