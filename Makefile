# `make demo` and `make test` are all a new user needs; both set everything up.
VENV   := .venv
PY     := $(VENV)/bin/python
STAMP  := $(VENV)/.installed
JOBS   ?= 3

# Of the hundreds of interpreters that the tests start, each would compile everything anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test lint chaos bench lock clean setup

setup: $(STAMP)

$(STAMP): pyproject.toml requirements.lock bootstrap.sh
	@sh bootstrap.sh $(VENV)
	@touch $(STAMP)

demo: $(STAMP)
	@$(VENV)/bin/kt demo

test: $(STAMP) lint
	@$(PY) -m pytest -n $(JOBS) --dist worksteal tests

lint: $(STAMP)
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(PY) -m mypy

chaos: $(STAMP) # some 20 minutes; KT_SEED=n repeats, KT_CHAOS_JSON=file keeps the table
	@KT_CHAOS=1 $(PY) -m pytest -m chaos -s --timeout 600 tests

bench: $(STAMP)
	@$(PY) -m bench

lock: # rewrites requirements.lock; needs uv
	@sh bootstrap.sh --lock

clean:
	@rm -rf $(VENV) dist build .pytest_cache .mypy_cache .ruff_cache
