"""The command `sparsegate`, also `python -m pipeline`."""

from __future__ import annotations


def main() -> None:
    """Run the command line."""
    from pipeline.cli import main as cli

    cli()


if __name__ == "__main__":
    main()
