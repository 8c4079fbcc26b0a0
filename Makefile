# Every target installs what it needs; only Python 3.11 or newer and pip are required.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

# Logic tests, which also run with the kernels as plain Python.
LOGIC := tests/game/test_game.py tests/engine tests/test_golden.py \
  $(addprefix tests/solver/test_,$(addsuffix .py,successors keys enumeration induction threads problem))
LOGIC_QUICK := $(addprefix tests/players/test_,$(addsuffix .py,search_step expectimax minimax sparse_sampling \
  monte_carlo mcts player time_limit heuristics))

.PHONY: tour studio test browser quick coverage lint format site clean

tour: $(VENV)/core  ## install the core and run the tour
	$(BIN)/lab2048 tour

studio: $(VENV)/studio  ## install and open the web page
	$(BIN)/lab2048 studio --open

test: lint $(VENV)/test browser  ## run the linter, the type checker and the whole test suite
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest --numprocesses 2 --dist worksteal $(LOGIC)
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest --numprocesses 2 --dist worksteal -m "not slow" $(LOGIC_QUICK)

browser:  ## install Debian's chromium if it is missing and may be installed
	@command -v chromium >/dev/null || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null; } || \
	  echo "chromium is missing and cannot be installed here: tests of the page are skipped, or fail if CI is set"

quick: $(VENV)/test  ## run the tests that install nothing and train nothing
	$(BIN)/python -m pytest -m "not slow" --numprocesses 2 --dist loadfile

coverage: $(VENV)/test  ## report the lines that the quick tests reach, by file and by package; TESTS=... selects tests
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -m "not slow" --numprocesses 2 --dist loadfile $(TESTS)
	NUMBA_DISABLE_JIT=1 $(BIN)/coverage run -m pytest -m "not slow" --numprocesses 2 --dist worksteal $(or $(TESTS),$(LOGIC) $(LOGIC_QUICK))
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report
	@for each in src/lab2048/*/__init__.py; do each=$$(dirname $$each); \
	  echo "$$($(BIN)/coverage report --format=total --include "$$each/*")% $$(basename $$each)"; done

lint: $(VENV)/test
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/mypy --allow-untyped-defs --allow-untyped-calls benchmarks/*.py docs/make_api.py

format: $(VENV)/test
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

site: $(VENV)/test  ## write the documentation as a site to site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

clean:
	rm -rf $(VENV) .coverage* .mypy_cache .pytest_cache .ruff_cache .hypothesis dist site

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/core: $(VENV)/bin/python pyproject.toml constraints.txt
	$(PIP) --editable .
	touch $@

$(VENV)/studio: $(VENV)/core
	$(PIP) --editable '.[studio]'
	touch $@

$(VENV)/test: $(VENV)/core
	$(PIP) --editable '.[test]'
	touch $@
