.DEFAULT_GOAL := help
# Compiled tests are kept: to compile them all takes each process of tests ten seconds
export PYTHONDONTWRITEBYTECODE :=
PYTHON ?= python3
BIN := .venv/bin
# Every process of tests has stores of its own
AT_ONCE := -n 3 --dist worksteal
# CI measures coverage
COVERAGE ?=
PIP := $(BIN)/python -m pip --disable-pip-version-check
GUIDE := api/guide/site/index.html

.PHONY: help
help: ## Show what each target does
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Anamnesis needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Name another one: make PYTHON=python3.12")'
	@$(PYTHON) -m venv .venv

.venv/.installed: requirements.lock requirements-docs.lock pyproject.toml | $(BIN)/python
	@echo "Installing Anamnesis into .venv: two minutes and 1 GB, once"
	@$(BIN)/python .ci/install.py requirements.lock requirements-docs.lock
	@$(PIP) install -qq --no-deps --no-build-isolation --editable .
	@touch $@

.venv/.installed-dev: requirements-dev.lock .venv/.installed
	@echo "Installing the development tools into .venv: a minute and 0.7 GB, once"
	@$(BIN)/python .ci/install.py requirements-dev.lock
	@touch $@

$(GUIDE): $(shell find docs mkdocs.yml -type f) .venv/.installed
	@echo "Building the guide from docs/: ten seconds, after each change"
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	@find api/guide/site -name '*.map' -delete -o -name 404.html -delete
	@find api/guide/site/assets/javascripts/lunr -name '*.js' ! -name '*.zh.*' ! -name '*.multi.*' ! -name '*.support.*' -delete
	@touch $@

.PHONY: setup
setup: .venv/.installed ## Create .venv and install the service

.PHONY: setup-dev
setup-dev: .venv/.installed-dev ## Install the development tools too

.PHONY: run
run: setup $(GUIDE) ## Start the service with everything embedded
	@exec $(BIN)/anamnesis serve

.PHONY: open
open: setup $(GUIDE) ## The same, and open the console in a browser
	@exec $(BIN)/anamnesis serve --open

.PHONY: demo
demo: setup ## Give the running service a month of made-up conversations; REMOVE=1 takes them away
	@exec $(BIN)/anamnesis demo $(if $(REMOVE),--remove)

.PHONY: chat
chat: setup ## Talk to the running service in the terminal
	@exec $(BIN)/anamnesis chat

.PHONY: doctor
doctor: setup ## Check the running service and all that it needs, and say what to do
	@exec $(BIN)/anamnesis doctor

.PHONY: studio
studio: setup-dev ## Open the graph in LangGraph Studio's server, with the embedded engines
	@exec $(BIN)/langgraph dev --no-browser --no-reload

.PHONY: check
check: setup-dev ## Format, lint, types, import contracts and the unit tests, in about a minute
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target style unit

.PHONY: style
style: setup-dev
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/python .ci/docstrings.py anamnesis_agent anamnesis_client api benchmarks graph langchain_anamnesis nodes services state training
	@$(BIN)/lint-imports
	@$(BIN)/mypy

.PHONY: unit
unit: setup-dev
	@$(BIN)/python -m pytest -q -m unit -n 2

.PHONY: test
test: setup-dev ## Run all tests
	@$(BIN)/python -m pytest $(AT_ONCE) $(COVERAGE)

.PHONY: soak
soak: setup-dev ## The long tests: chaos, simulated nights, fuzzing, every endpoint in depth
	@$(BIN)/python -m pytest $(AT_ONCE) -m soak
	@$(BIN)/python -m tests.chaos.run --turns 1000

.PHONY: scenarios
scenarios: setup-dev ## Play the dialogues of tests/scenarios, one line for each
	@$(BIN)/python -m pytest -q -n 2 --dist worksteal tests/scenarios

.PHONY: screenshots
screenshots: setup-dev ## Write every screen of the console to screenshots/, with the system's Chromium
	@$(BIN)/python -m benchmarks.screenshots screenshots

.PHONY: format
format: setup-dev ## Format the code and mend what the linter can mend
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

.PHONY: reference
reference: setup ## Write the files that list all settings from the settings class
	@$(BIN)/anamnesis init --stdout > .env.example
	@$(BIN)/anamnesis config --markdown > docs/settings.md

.PHONY: client
client: setup-dev ## Write the synchronous client from the asynchronous one
	@$(BIN)/python -m tests.support.sync_client

.PHONY: schema
schema: setup-dev ## Write the page that describes the schema from a database that the migrations made
	@$(BIN)/python -m tests.support.schema_page

.PHONY: docs
docs: $(GUIDE) ## Build the documentation as a site, which the service serves at /guide

.PHONY: wheel
wheel: setup $(GUIDE) ## Build the wheels of the service, with its guide, and of both clients in dist/
	@for package in . anamnesis_client langchain_anamnesis; do \
		(cd $$package && $(CURDIR)/$(BIN)/python -m hatchling build -t wheel -d $(CURDIR)/dist) || exit 1; \
	done

.PHONY: versions
versions: setup-dev ## Check types and wheels for every Python and machine that is named; asks the package index
	@for version in 3.12 3.13 3.14; do \
		echo "Python $$version"; \
		$(BIN)/mypy --python-version $$version --cache-dir .mypy_cache/$$version \
			-p state -p services -p nodes -p graph -p api -p anamnesis_agent -p anamnesis_client -p langchain_anamnesis || exit 1; \
	done
	@for version in 3.11 3.12 3.13 3.14; do for machine in x86_64 aarch64; do \
		$(BIN)/uv pip install --quiet --dry-run --target build/none --python-version $$version \
			--python-platform $$machine-manylinux_2_28 --only-binary :all: --no-binary jieba \
			-r requirements.lock && echo "Python $$version, $$machine: every package has a wheel" || exit 1; \
	done; done

.PHONY: bench
bench: setup-dev ## Measure what a turn costs, as ratios to the floor, and what happens around saturation
	@$(BIN)/python -m benchmarks.turn_overhead
	@$(BIN)/python -m benchmarks.knee

.PHONY: load
load: setup-dev ## Open 500 streams at once, in the service and in the floor
	@$(BIN)/python -m benchmarks.load --streams 500

.PHONY: storms
storms: setup-dev ## Attack with half bodies, deaf readers, cancels and half headers, and weigh what stays
	@$(BIN)/python -m benchmarks.storms

.PHONY: steps
steps: setup-dev ## Send the strangest input that is accepted, and time single steps of the event loop
	@$(BIN)/python -m benchmarks.loop_steps

.PHONY: chaos
chaos: setup-dev ## Kill and pause processes under 1,000 turns, then check every promise
	@$(BIN)/python -m tests.chaos.run --turns 1000

.PHONY: faults
faults: setup-dev ## Play the fault table under load, or ONLY=part of it, and print how long users waited beyond each
	@$(BIN)/python -m tests.chaos.faults $(if $(ONLY),--only "$(ONLY)")

.PHONY: scorecard
scorecard: setup-dev ## Compare recall with BM25, the encoder and their sum on the sets in DATA=folder
	@$(BIN)/python -m training.scorecard $(DATA) training/data/kinds --json scorecard.json

.PHONY: lock
lock: setup-dev ## Pin every dependency again: names, versions and hashes only
	@$(BIN)/uv pip compile --quiet --no-header --no-annotate --no-emit-index-url --generate-hashes --universal --python-version 3.11 --extra install --extra otel --extra dev pyproject.toml -o requirements-dev.lock
	@$(BIN)/uv pip compile --quiet --no-header --no-annotate --no-emit-index-url --generate-hashes --universal --python-version 3.11 --extra install --extra otel -c requirements-dev.lock pyproject.toml -o requirements.lock
	@$(BIN)/uv pip compile --quiet --no-header --no-annotate --no-emit-index-url --generate-hashes --universal --python-version 3.11 --group docs -c requirements-dev.lock -o requirements-docs.lock
