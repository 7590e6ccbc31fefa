# Each target works alone in a fresh clone: it makes .venv first, and again when pyproject.toml or what is compiled changes.
PYTHON ?= python3
VENV ?= .venv
ARGS ?=
COMPILED = $(wildcard sfu/plane/*.pyx sfu/plane/native/*.pxi bench/*/*.pyx bench/generator/native/*.pxi bench/janus/*.c)

.PHONY: up test test-quick test-slow check bench test-compose clean

up: $(VENV)/.installed-run
	@exec $(VENV)/bin/sluice up $(ARGS)

test: $(VENV)/.installed-dev
	@scripts/test.sh $(VENV) test $(ARGS)

test-quick: $(VENV)/.installed-dev
	@scripts/test.sh $(VENV) quick $(ARGS)

test-slow: $(VENV)/.installed-dev
	@scripts/test.sh $(VENV) slow $(ARGS)

check: $(VENV)/.installed-dev
	$(VENV)/bin/ruff check . && $(VENV)/bin/ruff format --check . && $(VENV)/bin/mypy --strict
	PATH="$(VENV)/bin:$$PATH" cython-lint --max-line-length 120 sfu bench

bench: $(VENV)/.installed-run
	$(VENV)/bin/sluice bench notify $(ARGS)

test-compose:
	@scripts/test-compose.sh $(ARGS)

clean:
	rm -rf $(VENV) .peers build *.egg-info

$(VENV)/.installed-run $(VENV)/.installed-dev: $(VENV)/.installed-%: pyproject.toml scripts/setup.sh $(COMPILED)
	@PYTHON=$(PYTHON) scripts/setup.sh $(VENV) $*
