# Two commands matter on a fresh machine: `make demo` and `make test`. Both need only Python >= 3.11 with venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DEMO ?= demo
PROOF := .proof
PREFIX ?= /usr/local
DESTDIR ?=
INSTALL := PYTHON='$(PYTHON)' PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)' .ci/install
# Some images forbid it: then each of the thousand commands that the tests start compiles its sources anew.
export PYTHONDONTWRITEBYTECODE :=
# Commands here import this checkout, not what somebody's PYTHONPATH names.
unexport PYTHONPATH

.PHONY: setup demo test lint bench crash proof install uninstall clean

setup: $(STAMP)

# The version, too: an environment keeps that of its last setup.
$(STAMP): pyproject.toml setup.py tools/version.py migrate/logdird-spark.pth .ci/setup
	.ci/setup $(PYTHON) $(VENV)
	touch $@

demo: $(STAMP)
	$(BIN)/python -m examples.demo $(DEMO) $(if $(KAFKA),--kafka)

test: $(STAMP)
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not kafka and not browser and not root and not spark and not slow"

lint: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tests.house

# Every operation on a disk, crashed at every call under every model: states of each, and "0 violations" at the end.
crash: $(STAMP)
	$(BIN)/python -m tests.crash

bench: $(STAMP)
	$(BIN)/python -m benchmarks.run

# Everything at full size: a run of hours. docs/proof.md is replaced only if nothing failed and every claim was shown.
proof: $(STAMP)
	.ci/proof $(PROOF)

# On a host, as root: docs/install.md says which files, and what to do before and after.
install:
	$(INSTALL) install

uninstall:
	$(INSTALL) uninstall

clean:
	rm -rf $(VENV) $(PROOF) build dist demo *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
