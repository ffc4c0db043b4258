# Two commands matter on a fresh machine: `make demo` and `make test`. Both need only Python >= 3.11 with venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DEMO ?= demo

.PHONY: setup demo test lint help bench proof clean

setup: $(STAMP)

$(STAMP): pyproject.toml .ci/setup
	.ci/setup $(PYTHON) $(VENV)
	touch $@

demo: $(STAMP)
	$(BIN)/python -m examples.demo $(DEMO)

test: $(STAMP)
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not kafka and not browser and not slow"

lint: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

help: $(STAMP)
	$(BIN)/python -c "from tools.logdirctl.main import build_parser; print(build_parser().format_help(), end='')" > tools/logdirctl/help.txt

bench: $(STAMP)
	$(BIN)/python -m benchmarks.run

proof: $(STAMP)
	LOGDIRD_PROOF=1 $(BIN)/python -m pytest -n 2 --timeout 3600 -m "not kafka and not browser" -p no:randomly

clean:
	rm -rf $(VENV) build dist demo *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
