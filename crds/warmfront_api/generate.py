"""`warmfront crds`: prints what the API models generate, writes it into a checkout, or checks that a checkout is current."""

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
    """Something that the models generate: where it is in a checkout, and the function that renders it."""

    path: Path
    render: Callable[[], str]

    def is_current(self, root: Path) -> bool:
        """Whether the checkout at `root` has what the models generate now."""
        file = root / self.path
        return file.is_file() and file.read_text(encoding="utf-8") == self.render()

    def write(self, root: Path) -> Path:
        """Write it into the checkout at `root`. Returns the file's path."""
        file = root / self.path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(self.render(), encoding="utf-8")
        return file


DEFINITION: Final = Product(path=Path("crds", f"{CRD_NAME}.yaml"), render=crd_yaml)
CHART: Final = Product(path=Path("charts", "warmfront-crds", "templates", f"{CRD_NAME}.yaml"), render=chart_yaml)
REFERENCE: Final = Product(path=Path("docs", "reference", "api.md"), render=field_reference)
PRODUCTS: Final = (DEFINITION, CHART, REFERENCE)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="warmfront crds", description=__doc__)
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--chart", action="store_true", help="print it as a Helm template that is kept on uninstall")
    how.add_argument("--reference", action="store_true", help="print the field reference, Markdown")
    how.add_argument("--write", type=Path, metavar="ROOT", help="write all three into the checkout at ROOT")
    how.add_argument("--check", type=Path, metavar="ROOT", help="exit 1 when one of them in the checkout at ROOT is not current")
    return parser


def _write(root: Path) -> int:
    for product in PRODUCTS:
        print(product.write(root))
    return 0


def _check(root: Path) -> int:
    stale = [product for product in PRODUCTS if not product.is_current(root)]
    for product in stale:
        print(f"{root / product.path} is not what the models generate: run `make generate`", file=sys.stderr)
    return 1 if stale else 0


def main(argv: Sequence[str]) -> int:
    """Entry point of the subcommand. Returns the exit status: 1 when a checked file is not current."""
    options = _parser().parse_args(argv)
    if options.write is not None:
        return _write(options.write)
    if options.check is not None:
        return _check(options.check)
    product = CHART if options.chart else REFERENCE if options.reference else DEFINITION
    print(product.render(), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
