# `make demo` shows Dray, and `make test` runs all checks. Each target installs what it needs by
# scripts/setup.
SHELL := /bin/bash
CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/dray
# Outside the checkout, so that checkouts share a compiled engine.
export CARGO_TARGET_DIR ?= $(CACHE)/target
export PATH := $(CACHE)/tools/bin:$(HOME)/.cargo/bin:$(PATH)
VENV := $(CACHE)/venv
PYTHON := $(VENV)/bin/python
DRAY := $(CARGO_TARGET_DIR)/release/dray
# Tests have a profile of their own, which compiles in half the time and asserts more.
CHECKED := --profile checked --locked --workspace
CHECKED_TARGET := $(CARGO_TARGET_DIR)/checked
CHECKED_PACKAGE := $(CACHE)/checked-package
# Sorting has newer versions of the rivals, and the generator of TPC-DS an older DuckDB.
SORT_VENV := $(CACHE)/lab/sort-venv
TPCDS_VENV := $(CACHE)/lab/tpcds-venv
# The clients of other databases, which have dependencies of their own.
SYSTEMS_VENV := $(CACHE)/lab/systems-venv
SCALE_FACTOR ?= 1
ROUNDS ?= 5
ROWS ?= 1000000
NETWORK_ROWS ?= 500000
PG_CONFIG ?= /usr/lib/postgresql/15/bin/pg_config
SUDO := $(if $(filter 0,$(shell id -u)),,sudo --preserve-env=PATH,CARGO_TARGET_DIR)
FUZZ_SECONDS ?= 6
# Larger numbers for `make test-all`.
ALL_FUZZ_SECONDS ?= 600
ALL_ROUNDS ?= 10000
ALL_FAULTS ?= 800000
ALL_POSTGRES_FAULTS ?= 200000
ALL_EXTENSION_FAULTS ?= 50000
ALL_TEST_ROUNDS ?= 100
ALL_JAVA_ROUNDS ?= 2000000

.PHONY: demo test test-all test-cluster bench bench-java bench-network bench-parquet \
	bench-postgres bench-sort bench-spark bench-systems check-link study study-objects study-test \
	lint rust-test python-test spec-test cpp-test java-test jdbc spark extension-test fuzz miri build \
	python build-checked python-package dist dist-test setup setup-test setup-bench setup-dist \
	setup-miri setup-objects setup-postgres setup-sort setup-spark setup-systems

demo: build python
	$(PYTHON) -m lab.lineitem.demo --scale-factor $(SCALE_FACTOR) --dray $(DRAY)

test: lint rust-test spec-test cpp-test java-test python-test extension-test fuzz
	@echo "all checks passed"

# The same with a million faults on the wire, and longer fuzzing and random tests. It takes hours.
test-all: export FUZZ_SECONDS := $(ALL_FUZZ_SECONDS)
test-all: export DRAY_ROUNDS := $(ALL_ROUNDS)
test-all: export DRAY_SORT_ROUNDS := $(ALL_ROUNDS)
test-all: export DRAY_FAULTS := $(ALL_FAULTS)
test-all: export DRAY_POSTGRES_FAULTS := $(ALL_POSTGRES_FAULTS)
test-all: export DRAY_EXTENSION_FAULTS := $(ALL_EXTENSION_FAULTS)
test-all: export DRAY_TEST_ROUNDS := $(ALL_TEST_ROUNDS)
test-all: export DRAY_JAVA_ROUNDS := $(ALL_JAVA_ROUNDS)
test-all: export DRAY_ALL_VERSIONS := 1
test-all: test

# A cluster of Spark over links between namespaces, whose parts fail. It needs root and takes
# minutes. TESTS selects some: TESTS='-k killed'.
test-cluster: setup-spark python-package spark
	$(SUDO) env PYTHONPATH=$(CHECKED_PACKAGE) DRAY_BINARY=$(CHECKED_TARGET)/dray \
		DRAY_CACHE=$(CACHE) $(PYTHON) -m pytest -q python/tests/cluster $(TESTS)

bench: setup-bench build python
	$(PYTHON) -m lab.lineitem.bench --scale-factor $(SCALE_FACTOR) --rounds $(ROUNDS) \
		--dray $(DRAY)

# Installs the extension into the server that the rivals are measured on.
bench-postgres: setup-postgres build python
	$(SUDO) $(MAKE) -C pg_extension install PG_CONFIG=$(PG_CONFIG)
	$(PYTHON) -m lab.postgres.bench --scale-factor $(SCALE_FACTOR) --rounds $(ROUNDS) \
		--rows $(ROWS) --dray $(DRAY)

# Sizes and encoding times of the samples, beside Parquet.
bench-parquet: setup-bench
	cargo build --release --locked --workspace --example speed
	$(PYTHON) -m lab.study.parquet --rounds $(ROUNDS) \
		--speed $(CARGO_TARGET_DIR)/release/examples/speed

# Links between namespaces need root. A small run: SCALE_FACTOR=0.1 NETWORK_ROWS=50000 ROUNDS=1.
bench-network: setup-bench build python
	$(SUDO) $(PYTHON) -m lab.network.bench --scale-factor $(SCALE_FACTOR) --rounds $(ROUNDS) \
		--rows $(NETWORK_ROWS) --dray $(DRAY) $(NETWORK_OPTIONS)

bench-java: setup-test
	cd java && mvn -q -Dmaven.repo.local=$(CACHE)/maven test-compile
	java -cp java/page/target/classes:java/page/target/test-classes dray.page.Speed

# A small run: SCALE_FACTOR=0.1 ROUNDS=1 SORT_OPTIONS='--parts duckdb,curve'.
bench-sort: setup-sort build python
	$(SORT_VENV)/bin/pip install --quiet --force-reinstall --no-deps \
		"$$($(PYTHON) scripts/wheel $(CARGO_TARGET_DIR)/release/lib_dray.so $(CACHE)/wheels)"
	DRAY_LAB_TPCDS_PYTHON=$(TPCDS_VENV)/bin/python $(SORT_VENV)/bin/python -m lab.sort.bench \
		--scale-factor $(SCALE_FACTOR) --rounds $(ROUNDS) --dray $(DRAY) $(SORT_OPTIONS)

# Spark's connector beside its JDBC source. A small run: SCALE_FACTOR=0.1 ROUNDS=2.
# SPARK_OPTIONS='--note "…"' says what a reader should know about the machine.
bench-spark: setup-spark setup-postgres build python jdbc
	scripts/spark $(CACHE) $(CARGO_TARGET_DIR)/release/libdray_jni.so
	$(SUDO) $(MAKE) -C pg_extension install PG_CONFIG=$(PG_CONFIG)
	$(PYTHON) -m lab.spark.bench --scale-factor $(SCALE_FACTOR) --rounds $(ROUNDS) \
		--dray $(DRAY) $(SPARK_OPTIONS)

# Many systems over three networks. Links between namespaces need root. A small run:
# SCALE_FACTOR=0.01 ROWS=20000 ROUNDS=1 SYSTEMS_OPTIONS='--systems netcat,mariadb'.
bench-systems: setup-systems build python
	$(SYSTEMS_VENV)/bin/pip install --quiet --force-reinstall --no-deps \
		"$$($(PYTHON) scripts/wheel $(CARGO_TARGET_DIR)/release/lib_dray.so $(CACHE)/wheels)"
	$(SUDO) $(MAKE) -C pg_extension install PG_CONFIG=$(PG_CONFIG)
	$(SUDO) $(SYSTEMS_VENV)/bin/python -m lab.systems.bench --scale-factor $(SCALE_FACTOR) \
		--rounds $(ROUNDS) --rows $(ROWS) --dray $(DRAY) $(SYSTEMS_OPTIONS)

# Checks that links behave as they are set. Needs root.
check-link: setup-bench
	$(SUDO) $(PYTHON) -m lab.link --rate 100mbit --round-trip 25ms --loss 1% --check
	$(SUDO) $(PYTHON) -m lab.link --rate 1gbit --veth --check

# The study is a workspace of its own. Links between namespaces need root.
study: setup-bench
	cargo build --release --locked --manifest-path lab/study/Cargo.toml \
		--target-dir $(CARGO_TARGET_DIR)/study
	$(SUDO) $(PYTHON) -m lab.study.bench --scale-factor $(SCALE_FACTOR) --rounds $(ROUNDS) \
		--program $(CARGO_TARGET_DIR)/study/release/study

# Implementations of objects. Links and limits on memory need root. A small run:
# OBJECTS_OPTIONS='--scale small'.
study-objects: setup-objects python
	$(SUDO) $(PYTHON) -m lab.objects.bench $(OBJECTS_OPTIONS)

study-test: setup-objects
	cd lab/study && cargo fmt --check && cargo clippy --release --locked --all-targets \
		--target-dir $(CARGO_TARGET_DIR)/study -- -D warnings
	cd lab/study && cargo test --release --locked --target-dir $(CARGO_TARGET_DIR)/study
	cd lab/objects/rust && cargo fmt --check && cargo clippy --release --locked --all-targets \
		--target-dir $(CARGO_TARGET_DIR)/objects -- -D warnings
	cd lab/objects/rust && cargo test --release --locked --target-dir $(CARGO_TARGET_DIR)/objects
	$(PYTHON) -m pytest -q lab/objects lab/systems

# Always the whole workspace: another selection of crates would compile the engine again.
build: setup
	cargo build --release --locked --workspace

build-checked: setup
	cargo build $(CHECKED)

python: build
	$(PYTHON) -m pip install --quiet --force-reinstall --no-deps \
		"$$($(PYTHON) scripts/wheel $(CARGO_TARGET_DIR)/release/lib_dray.so $(CACHE)/wheels)"

# The packages that users install: packaging/README.md. PARTS selects some of them.
dist: setup-dist
	packaging/build $(CACHE) $(CACHE)/dist $(PARTS)

dist-test: setup-dist
	$(SUDO) packaging/test $(CACHE) $(CACHE)/dist $(PARTS)

lint: setup-test
	cargo fmt --check
	cargo clippy $(CHECKED) --all-targets -- -D warnings
	cargo deny --locked check bans licenses sources
	cargo run --quiet --profile checked --locked --package xtask -- dependencies
	cargo run --quiet --profile checked --locked --package xtask -- text
	$(VENV)/bin/ruff format --check --quiet
	$(VENV)/bin/ruff check --quiet
	$(VENV)/bin/mypy --strict python/dray python/adbc_driver_dray python/adbc_driver_drays
	cd lab/link && cargo fmt --check && cargo clippy --release --locked --all-targets \
		--target-dir $(CARGO_TARGET_DIR)/link -- -D warnings

rust-test: setup-test build-checked
	cargo test $(CHECKED)
	cargo test --release --locked --manifest-path lab/link/Cargo.toml \
		--target-dir $(CARGO_TARGET_DIR)/link

spec-test: setup-test
	$(PYTHON) -m pytest -q spec/decoder

# Maven keeps what it downloads, and needs no network the next time.
# The headers that read, build and change pages.
cpp-test: setup-test
	$(MAKE) -C cpp test OUT=$(CACHE)/cpp PYTHON=$(PYTHON)

java-test: setup-test
	cd java && mvn -q -Dmaven.repo.local=$(CACHE)/maven test

# The bridge to JDBC drivers, and drivers.
jdbc: setup-test
	scripts/jdbc $(CACHE)

# The connector for Spark, with the tested library.
spark: setup-test build-checked
	scripts/spark $(CACHE) $(CHECKED_TARGET)/libdray_jni.so

# The tested package. It goes into a folder of its own: the one in the virtual environment stays a
# release.
python-package: build-checked
	rm -rf $(CHECKED_PACKAGE)
	$(PYTHON) -m pip install --quiet --no-deps --target $(CHECKED_PACKAGE) \
		"$$($(PYTHON) scripts/wheel $(CHECKED_TARGET)/lib_dray.so $(CACHE)/checked-wheels)"

python-test: setup-test python-package jdbc
	if [ -n "$$DRAY_ALL_VERSIONS" ]; then $(MAKE) spark; fi
	PYTHONPATH=$(CHECKED_PACKAGE) DRAY_BINARY=$(CHECKED_TARGET)/dray DRAY_CACHE=$(CACHE) \
		CARGO_TARGET_DIR=$(CARGO_TARGET_DIR)/pg_extension \
		$(PYTHON) -m pytest -q -n 3 --dist loadfile --no-loadscope-reorder python/tests \
		--ignore python/tests/engines --ignore python/tests/cluster
	PYTHONPATH=$(CHECKED_PACKAGE):$(CACHE)/engines:$(CACHE)/ray:$(CACHE)/spark \
		DRAY_BINARY=$(CHECKED_TARGET)/dray DRAY_CACHE=$(CACHE) \
		$(PYTHON) -m pytest -q -W default python/tests/engines

# The tests copy and start servers. Each version of PostgreSQL has a process of its own.
extension-test: setup-test
	cd pg_extension/rust && cargo fmt --check && cargo clippy --release --locked --all-targets \
		--target-dir $(CARGO_TARGET_DIR)/pg_extension -- -D warnings
	cd pg_extension/rust && cargo test --release --locked --lib \
		--target-dir $(CARGO_TARGET_DIR)/pg_extension
	pg_extension/rust/check-boundary
	DRAY_CACHE=$(CACHE) CARGO_TARGET_DIR=$(CARGO_TARGET_DIR)/pg_extension \
		$(PYTHON) -m pytest -q -n 3 --dist loadgroup pg_extension/tests

fuzz: setup-test
	fuzz/run.sh $(FUZZ_SECONDS)
	$(MAKE) -C cpp fuzz OUT=$(CACHE)/cpp FUZZ_SECONDS=$(FUZZ_SECONDS)

# Runs the small tests of pages, of the sort, and of output buffers (`crates/format/src/output.rs`)
# under Miri. It is not part of `make test`, because it needs a nightly toolchain. Isolation is off,
# because the sort uses a folder.
miri: export MIRIFLAGS = -Zmiri-disable-isolation
miri: MIRI_TEST = cargo +nightly miri test --locked --target-dir $(CARGO_TARGET_DIR)/miri \
	-p dray-format -p dray-page -p dray-sort
miri: setup-miri
	$(MIRI_TEST) --test build --test keys --test small
	$(MIRI_TEST) --lib -- output::tests

setup:
	scripts/setup $(CACHE)

setup-test: setup
	scripts/setup $(CACHE) test

setup-bench: setup
	scripts/setup $(CACHE) bench

setup-dist: setup
	scripts/setup $(CACHE) dist

setup-miri: setup
	scripts/setup $(CACHE) miri

setup-objects: setup
	scripts/setup $(CACHE) objects
	$(VENV)/bin/pip install --quiet --requirement python/requirements-test.txt

setup-postgres: setup
	scripts/setup $(CACHE) postgres

setup-sort: setup
	[ -x $(SORT_VENV)/bin/python ] || python3 -m venv $(SORT_VENV)
	[ -x $(TPCDS_VENV)/bin/python ] || python3 -m venv $(TPCDS_VENV)
	$(SORT_VENV)/bin/pip install --quiet --requirement lab/sort/requirements.txt
	$(TPCDS_VENV)/bin/pip install --quiet --requirement lab/sort/requirements-tpcds.txt

setup-spark: setup-test
	scripts/setup $(CACHE) spark

# What cannot be installed is named, and the others are measured. So is what fails in the report.
setup-systems: setup
	scripts/setup $(CACHE) systems
	[ -x $(SYSTEMS_VENV)/bin/python ] || python3 -m venv $(SYSTEMS_VENV)
	grep -v '^#' lab/systems/requirements.txt | while read -r requirement; do \
		$(SYSTEMS_VENV)/bin/pip install --quiet "$$requirement" \
			|| echo "setup: cannot install $$requirement" >&2; done
	[ -e $(CACHE)/lab/pymongoarrow ] || $(SYSTEMS_VENV)/bin/pip install --quiet --no-compile \
		--target $(CACHE)/lab/pymongoarrow pymongoarrow==1.15.0 \
		|| echo "setup: cannot install pymongoarrow" >&2
	scripts/jdbc $(CACHE)
	cd lab/systems/java && mvn -q -Dmaven.repo.local=$(CACHE)/maven compile
