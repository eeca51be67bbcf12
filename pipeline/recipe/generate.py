"""Write what is made from schemas and registries: recipes.md, rules.md and schema/*.json (`python -m pipeline.recipe.generate DOCS`)."""

from __future__ import annotations

import sys
from pathlib import Path

from pipeline.codes import document as rules
from pipeline.recipe import document
from pipeline.records import schemas


def generated() -> dict[str, str]:
    """Content by path below docs/."""
    return {
        "recipes.md": document.markdown(),
        "rules.md": rules.markdown(),
        "schema/recipe.json": document.schema_text(),
        **{f"schema/{name}.json": schemas.schema_text(name) for name in schemas.RECORDS},
    }


def main(folder: Path) -> None:
    """Write every generated file."""
    for name, text in generated().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs"))
