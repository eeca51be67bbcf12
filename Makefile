# Everything runs in .venv at the top level; `make setup` makes it. Commands for users: setup, demo. For developers: the rest.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
EXPORTS := PYTHONHASHSEED=0 POLYGRAPHY_AUTOINSTALL_DEPS=0

.PHONY: setup demo test soak lint bench contract gpu-test scorecard methods docs clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt "torch==2.14.1" "torchvision==0.29.1"
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev]"
	$(BIN)/python -m compileall -q pipeline
	touch $(STAMP)

demo: setup
	$(BIN)/sparsegate run recipes/quickstart.yaml
	@echo
	@echo "And this is how TensorRT's own log reads (a synthetic sample, see recipes/samples/README.md):"
	$(BIN)/sparsegate tactics recipes/samples/*.log

test: setup
	$(EXPORTS) $(BIN)/python -m pytest -n 2 --dist loadgroup -m "not soak and not gpu and not contract"

soak: setup
	$(EXPORTS) $(BIN)/python -m pytest -m "soak" --durations=20

contract: setup
	$(EXPORTS) $(BIN)/python -m pytest -m contract tests/contract

gpu-test: setup
	$(EXPORTS) $(BIN)/python -m pytest -m gpu

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: setup
	for script in benchmarks/bench_*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

scorecard: setup
	$(BIN)/python benchmarks/scorecard.py --write docs/scorecard.md

methods: setup
	$(BIN)/python benchmarks/methods.py --write docs/methods.md

docs: setup
	$(BIN)/python -m pipeline.recipe.generate docs
	$(BIN)/python -m pipeline.report.troubleshooting > docs/troubleshooting.md
	$(BIN)/python tests/report/journey_docs.py

clean:
	rm -rf $(VENV) .contract .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist *.egg-info
