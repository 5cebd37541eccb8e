# Everything a developer does here; `make help` lists it.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

VENV := .venv
BIN := $(VENV)/bin
PYTHON := $(BIN)/python
STAMP := $(VENV)/.installed
# The first that can: a distribution builds its Python with profile-guided optimisation, pyenv does so only when told, and
# the same disasters took a fifth more processor time with one of pyenv's.
PYTHON3 ?= $(shell for each in /usr/bin/python3 python3; do \
	$$each -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$each && exit; done; \
	echo python3)
PIP := $(PYTHON) -m pip install --quiet --no-input --disable-pip-version-check
# It compiles nothing: Python does so when it first imports, unless it may not write what it compiled.
UV := $(BIN)/uv pip install --quiet $(if $(PYTHONDONTWRITEBYTECODE),--compile-bytecode)
# One apt-get at a time: `make test` installs Debian's tools beside Python's packages, and apt-get gives up where another runs.
ALONE := flock Makefile
TOML := $(wildcard pyproject.toml agent.toml strategies/*.toml agent/simulator/climates/*.toml agent/baselines/*.toml \
	deploy/handbook/recipes/*.toml)
TAPLO_FORMAT := --option column_width=120 --option array_auto_collapse=false
PURE_TESTS := $(wildcard tests/domain tests/decide tests/strategies tests/docs)
WORKERS ?= 2
# command:package
TOOLS := promtool:prometheus chromium:chromium busybox:busybox-static haproxy:haproxy pg_ctlcluster:postgresql
MUTANT_SECONDS ?= 1200
# The packages that decide and pay, and the tests that cover them. Tracing makes Python 3.11 three times as slow, so it
# runs at night, without the long rehearsals.
COVERED := agent/domain/*,agent/decide/*,agent/act/*
LONG := tests/scenarios/test_climates.py
COVERING := $(addprefix tests/,domain decide strategies act observe scenarios)
# Twice as many workers as cores, since many tests wait for programs that they started, and one more: one test waits for
# five minutes.
PROCESSES := $(shell echo $$(( 2 * $(WORKERS) + 1 )))
IN_CI := --quiet -p no:schemathesis --numprocesses $(PROCESSES) --dist worksteal -m "not nightly and not guest"
# Each of xdist's workers collects all tests for itself, six seconds of processor time each; forks do not.
FORKED := --quiet -p no:schemathesis -p no:xdist -p tests.support.forked_run --forks $(PROCESSES) -m "not nightly and not guest"

.PHONY: help
help: ## Say what each target does
	@awk 'BEGIN { FS = ":.*## " } /^[a-z-]+:.*## / { printf "  \033[1m%-11s\033[0m %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: setup
setup: $(STAMP) ## Create .venv with everything, at the locked versions, unless it is up to date
	@:

$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON3) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "gpubid needs Python 3.11 or newer; $(PYTHON3) here is $$($(PYTHON3) -V)" >&2; exit 1; }
	@if ! $(PYTHON) -m pip --version >/dev/null 2>&1; then \
		if ! $(PYTHON3) -c 'import ensurepip, venv' 2>/dev/null; then \
			as_root=; [ "$$(id -u)" = 0 ] || as_root=sudo; \
			[ -z "$$as_root" ] || command -v sudo >/dev/null \
				|| { echo "as root: apt-get install python3-venv, then again" >&2; exit 1; }; \
			$(ALONE) $$as_root apt-get install -qq -y python3-venv >/dev/null 2>&1 \
				|| { $(ALONE) $$as_root apt-get update -qq; $(ALONE) $$as_root apt-get install -qq -y python3-venv; }; \
		fi; \
		echo "creating $(VENV) with $$($(PYTHON3) -V), $(PYTHON3)"; $(PYTHON3) -m venv --clear $(VENV); \
	fi
	@echo "installing the locked dependencies; the first time they are downloaded"
	@awk '/^[^ ]/ {is_uv = /^uv==/} is_uv' requirements.lock >$(VENV)/uv.lock
	@{ $(PIP) --require-hashes -r $(VENV)/uv.lock && $(UV) --python $(PYTHON) --require-hashes -r requirements.lock; } \
		|| $(PIP) --require-hashes -r requirements.lock
	@$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

.PHONY: sdk
sdk: setup ## Install RunPod's own package in .venv-runpod, because it and Vast.ai's require different versions of cryptography
	@cmp -s tests/simulator/runpod/sdk.lock .venv-runpod/.installed && exit 0; \
	echo "installing RunPod's package into .venv-runpod"; \
	{ $(PYTHON3) -m venv --clear --without-pip .venv-runpod \
		&& { $(UV) --python .venv-runpod/bin/python --require-hashes -r tests/simulator/runpod/sdk.lock \
			|| $(PYTHON) -m pip --python .venv-runpod/bin/python install --quiet --require-hashes -r tests/simulator/runpod/sdk.lock; } \
		&& cp tests/simulator/runpod/sdk.lock .venv-runpod/.installed; } \
		|| echo "NOT INSTALLED: RunPod's package; the tests that need it skip" >&2

.PHONY: mithril-clients
mithril-clients: setup ## Install Mithril's own clients in .venv-mithril; without it their tests skip
	@cmp -s tests/simulator/mithril/sdk.lock .venv-mithril/.installed && exit 0; \
	echo "installing Mithril's clients into .venv-mithril"; \
	python3 -m venv --clear --without-pip .venv-mithril \
		&& { $(UV) --no-deps --python .venv-mithril/bin/python --require-hashes -r tests/simulator/mithril/sdk.lock \
			|| $(PYTHON) -m pip --python .venv-mithril/bin/python install --quiet --no-deps --require-hashes \
				-r tests/simulator/mithril/sdk.lock; } \
		&& cp tests/simulator/mithril/sdk.lock .venv-mithril/.installed

.PHONY: dstack-server
dstack-server: setup ## Install a real dstack server in .venv-dstack (270 MB), for the nightly tests of its adapter
	@cmp -s tests/simulator/dstack/server.lock .venv-dstack/.installed && exit 0; \
	echo "installing dstack's server into .venv-dstack"; \
	{ $(PYTHON3) -m venv --clear --without-pip .venv-dstack \
		&& $(UV) --python .venv-dstack/bin/python --no-deps --require-hashes -r tests/simulator/dstack/server.lock \
		&& cp tests/simulator/dstack/server.lock .venv-dstack/.installed; } \
		|| echo "NOT INSTALLED: dstack's server; the tests that need it skip" >&2

.PHONY: stores
stores: ## Install s3rver in .node-s3: an S3 server that checks signatures, for the guard's tests
	@cmp -s tests/guard/servers/package-lock.json .node-s3/.installed && exit 0; \
	command -v npm >/dev/null || { echo "NOT INSTALLED: s3rver, npm is not here; the tests that need it skip" >&2; exit 0; }; \
	echo "installing s3rver into .node-s3"; \
	{ rm -rf .node-s3 && mkdir .node-s3 && cp tests/guard/servers/package.json tests/guard/servers/package-lock.json .node-s3/ \
		&& (cd .node-s3 && npm ci --silent --ignore-scripts --no-audit --no-fund --no-update-notifier) \
		&& cp tests/guard/servers/package-lock.json .node-s3/.installed; } \
		|| echo "NOT INSTALLED: s3rver; the tests that need it skip" >&2

.PHONY: frameworks
frameworks: setup ## Install PyTorch and Hugging Face's Trainer in .venv-torch (4 GB), for the nightly tests of the recipes
	@cmp -s tests/guard/frameworks/frameworks.lock .venv-torch/.installed && exit 0; \
	echo "installing PyTorch and Trainer into .venv-torch"; \
	{ $(PYTHON3) -m venv --clear --without-pip .venv-torch \
		&& $(UV) --python .venv-torch/bin/python --no-deps --require-hashes -r tests/guard/frameworks/frameworks.lock \
		&& cp tests/guard/frameworks/frameworks.lock .venv-torch/.installed; } \
		|| echo "NOT INSTALLED: PyTorch and Trainer; the tests that need them skip" >&2

.PHONY: demo
demo: setup ## Rehearse a day of one workload in a bidding war, and print its steps and its cost
	@$(BIN)/gpubid rehearse --climate bidding_war --hours 24 --seed 1

.PHONY: tools
tools: ## Install Debian's tools that some tests need; without them those tests skip and say so
	@missing=; for tool in $(TOOLS); do command -v "$${tool%%:*}" >/dev/null || missing="$$missing $${tool##*:}"; done; \
	[ -z "$$missing" ] && exit 0; \
	as_root=; [ "$$(id -u)" = 0 ] || as_root="sudo -n"; \
	echo "installing$$missing"; \
	{ $(ALONE) $$as_root apt-get install -qq -y --no-install-recommends $$missing >/dev/null 2>&1 \
		|| { $(ALONE) $$as_root apt-get update -qq && $(ALONE) $$as_root apt-get install -qq -y --no-install-recommends $$missing; } \
			>/dev/null 2>&1; } \
		|| echo "NOT INSTALLED:$$missing; the tests that need them skip" >&2

.PHONY: check
check: ## Style, types, import contracts, sizes and the pure tests; under 45 seconds
	@$(MAKE) --jobs 6 style types contracts toml rules pure

.PHONY: style types contracts toml rules pure
style: setup
	@$(BIN)/ruff check --quiet --output-format concise .
	@$(BIN)/ruff format --quiet --check .

types: setup
	@$(BIN)/mypy --no-error-summary

contracts: setup
	@said=$$($(BIN)/lint-imports --no-logo 2>&1) || { echo "$$said"; exit 1; }

toml: setup
	@RUST_LOG=error $(BIN)/taplo fmt --check $(TAPLO_FORMAT) $(TOML)
	@RUST_LOG=error $(BIN)/taplo lint $(TOML)

rules:
	@if command -v promtool >/dev/null; then cd deploy/prometheus \
		&& promtool check rules --lint=all recording.yml alerts.yml >/dev/null && promtool test rules *_test.yml >/dev/null; \
	else echo "promtool is not here: the Prometheus rules are NOT checked (make tools)" >&2; fi

pure: setup
	@OPENBLAS_NUM_THREADS=1 $(PYTHON) -m pytest $(FORKED) $(PURE_TESTS)

.PHONY: test
test: ## Run everything of check and all other tests; print the slowest 20
	@$(MAKE) --jobs 6 setup tools sdk stores types style contracts toml suite

# Files of tests are in memory where it has 4 GB for them and may run programs: a disk costs a twentieth of the processor time.
.PHONY: suite
suite: tools sdk stores
	@place=$$(mktemp -d); \
	if [ "$$(df --output=avail /dev/shm 2>/dev/null | tail -n 1)" -gt 4000000 ] 2>/dev/null \
		&& ! findmnt --noheadings --output OPTIONS --target /dev/shm | grep -q noexec; \
	then rmdir "$$place"; place=$$(mktemp -d -p /dev/shm); fi; \
	trap 'rm -rf "$$place"' EXIT; \
	OPENBLAS_NUM_THREADS=1 $(PYTHON) -m pytest $(FORKED) --durations=20 --basetemp "$$place/tests" tests

.PHONY: cover
cover: setup ## Branch coverage of the packages that decide and pay; fails under 95 %
	@rm -f .coverage .coverage.*
	@$(PYTHON) -m coverage run -m pytest $(IN_CI) $(COVERING) $(addprefix --ignore=,$(LONG))
	@$(PYTHON) -m coverage combine --quiet
	@$(PYTHON) -m coverage report --include='$(COVERED)' --fail-under=95

.PHONY: deb
deb: setup ## Build dist/gpubid_VERSION_ARCH.deb: the program in an environment of its own, on Debian's Python
	@deploy/debian/build.sh

.PHONY: deploy-test
deploy-test: setup ## Install, run, break, upgrade and purge the package in a booted Debian; needs root, see tests/deploy
	@$(PYTHON) -m pytest --quiet -rs -m guest tests/deploy

.PHONY: bench
bench: setup ## Measure speed and memory, each beside a figure to compare it with
	@$(PYTHON) -m tests.bench

.PHONY: soak
soak: setup ## Two simulated days in each of seven climates under ten seeds: no orphan, no double rent, the right spend
	@$(PYTHON) -m tests.soak --processes $(WORKERS)

.PHONY: storm
storm: setup ## Sixty kill -9s a market over real processes, in transport faults and field lies: no orphan, no double rent, the right spend
	@$(PYTHON) -m tests.storm

.PHONY: disasters
disasters: setup ## Play SEEDS disasters from FIRST on, here or on Dask (ON=tls://…): fleets in faults, lies and deaths, judged every cycle
	@$(PYTHON) -m tests.disasters --seeds $(or $(SEEDS),200) --first $(or $(FIRST),1) $(if $(ON),--on $(ON))

.PHONY: ha-demo
ha-demo: setup tools ## Start PostgreSQL, two daemons and a simulated market here, kill the leader while it rents, and show what happened
	@$(PYTHON) -m tests.failovers.demo

.PHONY: failovers
failovers: setup ## RUNS failovers of two real daemons on PostgreSQL; WAY: the leader is killed (at each step of each write), frozen or cut off, the server or its primary dies; or a rehearsed day with 143
	@$(PYTHON) -m tests.failovers --way $(or $(WAY),killed) --runs $(or $(RUNS),200)

.PHONY: nightly
nightly: TOOLS += rclone:rclone caddy:caddy debootstrap:debootstrap systemd-nspawn:systemd-container
nightly: setup tools frameworks mithril-clients dstack-server ## Run what takes long: coverage, guest, pyright, slow tests, more worlds, mutants; a broken night goes on
	@$(PYTHON) -m tests.night --mutant-seconds $(MUTANT_SECONDS)

.PHONY: format
format: setup ## Format code and TOML as check requires
	@$(BIN)/ruff check --quiet --fix-only .
	@$(BIN)/ruff format --quiet .
	@RUST_LOG=error $(BIN)/taplo fmt $(TAPLO_FORMAT) $(TOML)

.PHONY: handbook
handbook: setup ## Write the handbook's generated pages again, and build it as a website into dist/handbook
	@$(PYTHON) -B deploy/handbook/write.py
	@$(PYTHON) -B deploy/handbook/results.py
	@NO_MKDOCS_2_WARNING=1 $(PYTHON) -B -m mkdocs --quiet build --strict --config-file deploy/handbook/mkdocs.yml

.PHONY: pictures
pictures: setup ## Take the pictures of README and handbook again, with Chromium: the page of a rehearsal, a day of bids, and with GPUBID_TRACES a record
	@$(PYTHON) -m tests.web.pictures

.PHONY: measure
measure: setup ## Run the bench BENCH of the handbook again on the records in GPUBID_TRACES, and write its page again
	@$(PYTHON) -B deploy/handbook/results.py $(BENCH)

.PHONY: schema
schema: setup ## Write the JSON schemas of the configuration files again
	@$(PYTHON) deploy/schema/write.py

.PHONY: dashboards
dashboards: setup ## Write the Grafana dashboards again from their source
	@$(PYTHON) deploy/grafana/dashboards.py

.PHONY: lock
lock: setup ## Write requirements.lock again from pyproject.toml, with the newest versions that fit
	@$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-header \
		--no-annotate --group dev --output-file requirements.lock pyproject.toml
	@$(BIN)/uv pip compile --quiet --python-version 3.11 --python-platform x86_64-unknown-linux-gnu --generate-hashes \
		--no-header --no-annotate --override deploy/debian/without.txt --constraint requirements.lock \
		--output-file deploy/debian/requirements.lock pyproject.toml deploy/debian/instead.in
	@$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-header \
		--no-annotate --output-file tests/simulator/runpod/sdk.lock tests/simulator/runpod/sdk.in
	@$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --prerelease allow --generate-hashes \
		--no-header --no-annotate --override tests/simulator/mithril/without.txt \
		--output-file tests/simulator/mithril/sdk.lock tests/simulator/mithril/sdk.in
	@$(BIN)/uv pip compile --quiet --upgrade --python-version 3.11 --python-platform x86_64-unknown-linux-gnu \
		--generate-hashes --no-header --no-annotate --output-file tests/simulator/dstack/server.lock \
		tests/simulator/dstack/server.in
	@$(BIN)/uv pip compile --quiet --upgrade --python-version 3.11 --python-platform x86_64-unknown-linux-gnu \
		--generate-hashes --no-header --no-annotate --override tests/guard/frameworks/without.txt \
		--output-file tests/guard/frameworks/frameworks.lock tests/guard/frameworks/frameworks.in
