# The two that matter: `make up` and `make test`.
.PHONY: up test lint venv dev lock format clean help

VENV := .venv
RUNTIME := $(VENV)/.devos-runtime
DEV := $(VENV)/.devos-dev
LOCKED := uv.lock pyproject.toml requirements/runtime.txt requirements/dev.txt

help: ## show this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1\t/'

up: $(RUNTIME) ## start the whole platform on this machine; Ctrl-C stops it
	@exec $(VENV)/bin/python -m devos.cli up

test: $(DEV) ## run all tests
	@exec scripts/test.sh

lint: $(DEV) ## ruff, mypy, import rules, migrations, requirements
	@exec scripts/lint.sh

venv: $(RUNTIME) ## make .venv with what DevOS needs to run

dev: $(DEV) ## make .venv with the development tools too

format: $(DEV) ## format the code
	@$(VENV)/bin/ruff check --fix-only --quiet . && $(VENV)/bin/ruff format .

lock: ## resolve again, and write the requirements for pip
	uv lock
	scripts/export.sh runtime > requirements/runtime.txt
	scripts/export.sh dev > requirements/dev.txt

clean: ## remove .venv and caches; the data in DEVOS_HOME stays
	rm -rf $(VENV) build *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache static_root
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(RUNTIME): $(LOCKED)
	@scripts/venv.sh runtime
	@touch $@

$(DEV): $(LOCKED)
	@scripts/venv.sh dev
	@touch $(RUNTIME) $@
