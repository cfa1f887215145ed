# Bare `make` explains itself.
SHELL := /bin/bash
.DEFAULT_GOAL := help

export PATH := $(CURDIR)/.venv/bin:$(PATH)
export PYSPARK_PYTHON := $(CURDIR)/.venv/bin/python
# Or every worker would rewrite the assertions of all tests anew, ten seconds of a core.
unexport PYTHONDONTWRITEBYTECODE
PYTHON_DIRECTORIES := include demo tools tests dags plugins spark_jobs benchmarks docs/examples
# What has a target of its own is not among the tests.
ALL := not parity and not migration and not node_clients and not bounces and not rights and not matrix and not services and not drill and not spark_drill and not airflow_drill and not installing and not production and not image
# Of tests at a time: a third of the time a worker waits for brokers, so three keep two cores busy.
WORKERS ?= 3
# A file stays on one worker, with its clusters; tests/conftest.py puts the files that take longest first.
PARALLEL := -n $(WORKERS) --dist loadfile --no-loadscope-reorder
SEED ?= 1
ROUNDS ?= 40
SEEDS ?= 1000
JOBS ?= 1
EXAMPLES ?= 5000
ROOM ?= wire
# What the image and the tests need: the locks have all of it.
EXTRAS := --extra airflow --extra spark --extra otel
MINUTES ?= 5

.PHONY: help setup browser prometheus demo demo-stop test test-long test-all test-unit test-brokers lint types format migration node-clients model simulate fuzz parity rights drill matrix services spark-drill yarn airflow-drill airflow-releases airflow-production image exactness endings faults bounces soak hours page situations pictures coverage mutants bench spark-connector latency quiet scale width tiered distance docs how-tos lock pythons dist spark-environment clean

help: ## Show this
	@printf 'Ferry: exactly-once Kafka replication. Targets:\n\n'
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

setup: ## Install everything into .venv (and Java 17 where it is missing)
	@setup/install.sh

demo: setup ## Two clusters, sample topics, Airflow and its first runs: then look at the UI
	@python -m demo up

demo-stop: setup ## Stop the demo and remove what it made
	@python -m demo down

browser: setup
	@setup/browser.sh

prometheus: setup
	@setup/prometheus.sh

test: browser prometheus lint types ## Format, lint, types and all tests that do not take long; some use brokers, Spark, Airflow, a browser, kills
	pytest -m "$(ALL) and not long" $(PARALLEL) --durations 15

test-long: browser ## The tests that take long and are left out of test; those with a target of their own apart
	pytest -m "$(ALL) and long" $(PARALLEL) --durations 30

test-all: test test-long ## As test, then test-long

test-unit: setup ## Tests without I/O
	pytest -m unit $(PARALLEL)

test-brokers: setup ## Tests against real brokers, also those that take long
	pytest -m "brokers and $(ALL)" $(PARALLEL)

lint: setup ## Format, lint and import checks, and English that reads badly
	ruff format --check $(PYTHON_DIRECTORIES)
	ruff check $(PYTHON_DIRECTORIES)
	lint-imports --no-cache
	python -m tools.english include/ferry tools/english.py
	hadolint Dockerfile

types: setup ## Type checks
	mypy

format: setup ## Format and fix what can be fixed
	ruff format $(PYTHON_DIRECTORIES)
	ruff check --fix $(PYTHON_DIRECTORIES)

migration: setup ## From MirrorMaker 2 to Ferry and back, with MirrorMaker 2 itself
	pytest -m migration

node-clients: setup ## Records of registry clients for Node, and Python's, read by them from copies; needs Node 20 with npm
	pytest -m node_clients

faults: setup ## A long series of kills: make faults SEED=7 ROUNDS=40, of runs that follow with FOLLOW=--follow
	python -m tests.drills.faults.run --seed $(SEED) --rounds $(ROUNDS) $(FOLLOW)

soak: setup ## Two clusters under load while everything breaks: make soak MINUTES=30 SEED=7, with runs that follow with FOLLOW=--follow
	python -m tests.drills.soak.run --minutes $(MINUTES) --seed $(SEED) $(FOLLOW)

hours: setup ## Memory, files and disk over many hours, in pieces that go on where the last one ended: make hours MINUTES=60
	python -m tests.drills.hours.run --minutes $(MINUTES)

endings: setup ## Many short commands at a time, interrupted and not: none may crash: make endings SEED=7
	python -m tests.drills.endings.run --seed $(SEED)

bounces: setup ## Brokers and copiers bounced, networks broken: Kafka's transactions_test and kafka-mirror-tester's experiments
	python -m tests.drills.bounces.run

model: setup ## The model of exactly-once in larger worlds than in the tests
	FERRY_MODEL_LARGER=1 pytest -s --timeout 0 -m unit tests/drills/model

simulate: setup ## Runs with faults on simulated clusters, one for each seed: make simulate SEEDS=1000 SEED=0, on two cores with JOBS=2
	python -m tests.simulation.simulate --seed $(SEED) --seeds $(SEEDS) --jobs $(JOBS)

fuzz: setup ## Damaged input for every decoder, more of it than in the tests: make fuzz EXAMPLES=5000
	FERRY_FUZZ_EXAMPLES=$(EXAMPLES) pytest --timeout 0 tests/drills/fuzz

parity: setup ## Every combination of properties side by side with MirrorMaker 2
	pytest -m parity

drill: setup ## Failover and failback under load with kills, there and back: make drill SEED=7
	FERRY_DRILL_SEED=$(SEED) pytest -s --timeout 0 -m drill

rights: setup ## Every right that a flow needs, taken away in turn
	pytest tests/permissions

matrix: setup ## Every release of Kafka as source and as target, about 50 minutes
	pytest -m matrix --durations 20

services: setup ## Every managed service that Ferry knows, played before real brokers: exact, or refused before any write
	pytest -m services --durations 20

spark-drill: setup ## A Spark cluster of two workers that are killed during runs; other environments for its executors
	pytest -m spark_drill --durations 5

yarn: setup ## Spark on YARN: archive, py-files, a container that is killed, Airflow: make yarn SEED=7
	FERRY_YARN_SEED=$(SEED) pytest -s -m spark_drill tests/spark/test_yarn.py --durations 5

airflow-drill: setup ## Runs that follow, arrivals, lineage and new passwords in a real Airflow
	pytest -m airflow_drill $(PARALLEL) --durations 5

airflow-releases: setup ## Ferry installed by pip into every minor release of Airflow, and beside every one of Spark 4; a run in each
	pytest -m installing --durations 5

airflow-production: setup ## PostgreSQL with CeleryExecutor over Redis and with LocalExecutor, also killed workers and schedulers
	FERRY_PRODUCTION=1 pytest -m production --durations 20

image: setup ## Every step of the Dockerfile, without Docker: in a bare Debian, and a run there; needs root and debootstrap
	pytest -m image --timeout 3600 --durations 5

exactness: setup ## Translated offsets of 500 groups beside MirrorMaker 2's: make exactness SEED=7
	python -m tests.drills.exactness.run --seed $(SEED)

page: browser ## The page in a browser; pictures of every view and state in .ferry/page-screenshots
	rm -rf .ferry/page-screenshots
	FERRY_PAGE_SCREENSHOTS=$(CURDIR)/.ferry/page-screenshots pytest -m browser --durations 5

situations: browser ## What page, status, Airflow and alerts say in sixteen situations on real clusters, for a person to read: about 25 minutes
	python -m tests.drills.situations.run

pictures: browser ## The pictures in docs/images, anew, of the demo that runs (make demo), and the recording of a killed run
	python -m tests.drills.situations.pictures
	python -m tests.drills.situations.recording

coverage: browser prometheus ## As test-all, and which lines no test reached
	pytest -m "$(ALL)" $(PARALLEL) --cov --cov-report=term:skip-covered

mutants: setup ## One change at a time that a unit test must notice: make mutants ROOM=wire
	python tests/drills/mutation/run.py --room $(ROOM)

bench: setup ## Side by side with MirrorMaker 2
	python -m benchmarks.run
	python -m benchmarks.idle

spark-connector: setup ## Spark's own Kafka source and sink beside Ferry, in situations that a copy meets: a table
	python -m benchmarks.spark_connector

latency: setup ## How old records are on the target while runs follow, beside MirrorMaker 2: a table
	python -m benchmarks.latency

quiet: setup ## What a run costs that follows and has nothing to copy: a table
	python -m benchmarks.quiet

width: setup ## Throughput with 1, 2 and 4 Spark tasks on each kind of Spark master: a table
	python -m benchmarks.width

scale: setup ## 10,000 partitions and 2,000 groups, a plan of 100,000 partitions, one large partition, the ledger of a year of runs, and of a day of runs that follow: tables
	python -m benchmarks.scale
	python -m benchmarks.scale.many
	python -m benchmarks.scale.tail
	python -m benchmarks.scale.year
	python -m benchmarks.scale.day

distance: setup ## Over a line of 100 ms and 100 Mbit/s, without lost packets and with 1 %, MirrorMaker 2 beside it; needs root for network namespaces
	python -m benchmarks.distance
	python -m benchmarks.distance --loss 0.01

tiered: setup ## A backlog in the source's remote storage, MirrorMaker 2 beside it
	python -m benchmarks.tiered

docs: setup ## The documentation as a site in .docs; a broken link is an error
	NO_MKDOCS_2_WARNING=1 mkdocs build

how-tos: setup ## Every how-to as written, in a fresh clone
	python -m tests.documents.how_tos

lock: setup ## Compile the locks anew from pyproject.toml
	uv pip compile pyproject.toml $(EXTRAS) --generate-hashes --no-emit-index-url --no-header \
		--python-version 3.11 --quiet -o requirements.txt
	uv pip compile pyproject.toml $(EXTRAS) --group dev -c requirements.txt --generate-hashes \
		--no-emit-index-url --no-header --python-version 3.11 --quiet -o requirements-dev.txt
	uv pip compile --group executors -c requirements.txt --generate-hashes \
		--no-emit-index-url --no-header --python-version 3.11 --quiet -o requirements-executors.txt
	sed -i '1i # Compiled by `make lock` (uv); install with --no-deps: the list is complete.' requirements*.txt

# What of UP is left out rewrites to syntax that 3.11 lacks.
pythons: setup ## Requirements resolved, code linted and typed for Python 3.12 and 3.13 as well
	for version in 3.12 3.13; do \
		echo "Python $$version" && ruff check --quiet --ignore UP040,UP046,UP047 --target-version py$${version/./} $(PYTHON_DIRECTORIES) && mypy --python-version $$version && \
		uv pip compile pyproject.toml $(EXTRAS) --group dev -c requirements.txt --no-annotate --no-header \
			--no-emit-index-url --python-version $$version --quiet >/dev/null || exit 1; \
	done

dist: setup ## The files of a release, built from the commit that is checked out: wheel, sdist, executors' archive, SBOM, checksums
	python -m tools.release

spark-environment: setup ## An archive of the Python that Spark's executors need: dist/ferry-executors.tar.gz
	setup/spark-environment.sh dist/ferry-executors.tar.gz

clean: ## Remove caches and build products (not .venv, not data)
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis dist build
	find include demo tools tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
