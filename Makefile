# Bare `make` explains itself.
SHELL := /bin/bash
.DEFAULT_GOAL := help

export PATH := $(CURDIR)/.venv/bin:$(PATH)
export PYSPARK_PYTHON := $(CURDIR)/.venv/bin/python
PYTHON_DIRECTORIES := include tests dags plugins spark_jobs benchmarks
# What has a target of its own is not among the tests.
QUICK := "not parity and not migration and not bounces and not rights"
SEED ?= 1
ROUNDS ?= 40
EXAMPLES ?= 5000
ROOM ?= wire
MINUTES ?= 5

.PHONY: help setup demo demo-stop test test-unit test-brokers lint types format migration model fuzz parity rights exactness faults bounces soak coverage mutants bench scale lock clean

help: ## Show this
	@printf 'Ferry: exactly-once Kafka replication. Targets:\n\n'
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

setup: ## Install everything into .venv (and Java 17 where it is missing)
	@setup/install.sh

demo: setup ## Two clusters, sample topics, Airflow, one run: then look at the UI
	@python -m ferry.airflow.demo up

demo-stop: setup ## Stop the demo and remove what it made
	@python -m ferry.airflow.demo down

test: setup lint types ## Lint, types and all tests but those with a target of their own, with a short series of kills
	pytest -m $(QUICK) -n 2 --dist loadfile --durations 15

test-unit: setup ## Tests without I/O
	pytest -m unit

test-brokers: setup ## Tests against real brokers
	pytest -m "brokers and not rights"

lint: setup ## Format and lint checks
	ruff format --check $(PYTHON_DIRECTORIES)
	ruff check $(PYTHON_DIRECTORIES)

types: setup ## Type checks
	mypy

format: setup ## Format and fix what can be fixed
	ruff format $(PYTHON_DIRECTORIES)
	ruff check --fix $(PYTHON_DIRECTORIES)

migration: setup ## From MirrorMaker 2 to Ferry and back, with MirrorMaker 2 itself
	pytest -m migration

faults: setup ## A long series of kills: make faults SEED=7 ROUNDS=40
	python tests/faults/run.py --seed $(SEED) --rounds $(ROUNDS)

soak: setup ## Two clusters under load while everything breaks: make soak MINUTES=30 SEED=7
	python -m tests.soak.run --minutes $(MINUTES) --seed $(SEED)

bounces: setup ## Brokers and copiers bounced, networks broken: Kafka's transactions_test and kafka-mirror-tester's experiments
	python -m tests.bounces.run

model: setup ## The model of exactly-once in larger worlds than in the tests
	FERRY_MODEL_LARGER=1 pytest -s --timeout 0 -m unit tests/model

fuzz: setup ## Damaged input for every decoder, more of it than in the tests: make fuzz EXAMPLES=5000
	FERRY_FUZZ_EXAMPLES=$(EXAMPLES) pytest --timeout 0 tests/fuzz

parity: setup ## Every combination of properties side by side with MirrorMaker 2
	pytest -m parity

rights: setup ## Every right that a flow needs, taken away in turn
	pytest tests/permissions

exactness: setup ## Translated offsets of 500 groups beside MirrorMaker 2's: make exactness SEED=7
	python -m tests.exactness.run --seed $(SEED)

coverage: setup ## As test, and which lines no test reached
	pytest -m $(QUICK) -n 2 --dist loadfile --cov --cov-report=term:skip-covered

mutants: setup ## One change at a time that a unit test must notice: make mutants ROOM=wire
	python tests/mutation/run.py --room $(ROOM)

bench: setup ## Side by side with MirrorMaker 2
	python -m benchmarks.run

scale: setup ## 10,000 partitions and 2,000 groups, and the ledger of a year of runs: tables
	python -m benchmarks.scale
	python -m benchmarks.scale.year

lock: setup ## Compile the locks anew from pyproject.toml
	uv pip compile pyproject.toml --override requirements-override.txt --generate-hashes --no-emit-index-url --no-header \
		--python-version 3.11 --quiet -o requirements.txt
	uv pip compile pyproject.toml --group dev -c requirements.txt --override requirements-override.txt --generate-hashes \
		--no-emit-index-url --no-header --python-version 3.11 --quiet -o requirements-dev.txt
	sed -i '1i # Compiled by `make lock` (uv); install with --no-deps: the list is complete.' requirements.txt requirements-dev.txt

clean: ## Remove caches and build products (not .venv, not data)
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis dist build
	find include tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
