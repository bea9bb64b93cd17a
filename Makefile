# make demo: the main job, on a fresh machine. make test: all tests. make lint, make docs, make test-quick, make bench.
SHELL := bash
VENV := .venv
OLD_VENV := .venv-oldest
PY := $(VENV)/bin/python
NEWEST := pyspark[sql]>=4.2.1,<4.4
OLDEST := pyspark[sql]==4.2.1
SOURCES := pyproject.toml hatch_build.py $(shell find java-shim -name '*.java' -o -name '*.py')
PIP := -m pip install --quiet --disable-pip-version-check --no-compile
# Containers often set it. Then each of the hundreds of Python processes of the tests would compile all that it imports.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-quick lint docs bench clean

demo: $(VENV)/.installed
	@$(PY) examples/01_hourly_counts.py

# Two jobs at once, for two cores; the longest start first, and the next where one has ended. Each of the first four
# starts a Spark. No test hangs for more than its seconds.
test: export PYTEST_TIMEOUT := 300
OPERATORS := $(wildcard tests/spark/test_operators_*.py)
JOB_streams := tests/conformance tests/crash tests/golden tests/hostile tests/law7 tests/load tests/documents tests/test_examples.py $(OPERATORS)
JOB_spark := $(filter-out $(OPERATORS),$(wildcard tests/spark/test_*.py))
JOB_oldest := tests -m smoke
JOB_store := tests/store
JOB_kafka := tests/kafka tests/cluster
JOB_quick := $(filter-out $(JOB_streams) $(JOB_store) $(JOB_kafka) tests/spark tests/data tests/__pycache__,$(patsubst %/,%,$(wildcard tests/*/)))
JOBS := streams spark kafka oldest quick store
test:
	@scripts/need-jdk.sh
	@$(MAKE) --no-print-directory -j 2 lint docs $(VENV)/spark-classes.jsa $(OLD_VENV)/spark-classes.jsa
	@printf '%s\n' $(JOBS) | xargs -P 2 -I {} $(MAKE) --no-print-directory job-{}

job-%:
	@$(if $(filter oldest,$*),$(OLD_VENV),$(VENV))/bin/python -m pytest --durations=20 $(JOB_$*) >$(VENV)/$*.log 2>&1; \
	passed=$$?; echo "$*:"; cat $(VENV)/$*.log; exit $$passed

# Without servers and without the searches through many cases. In parts, so that both jobs take as long; in memory, where
# there is room, since a disk's syncs take most of the time.
LONG := postgres or s3 or object or location or oracle or exhaustive
test-quick: export TMPDIR := $(or $(TMPDIR),$(shell scripts/memory-folder.sh))
test-quick: $(VENV)/.installed
	@printf '%s\n' tests/store 'tests/unit/test_[a-c]*.py' 'tests/unit/test_[d-r]*.py' 'tests/unit/test_[s-z]*.py' \
	| xargs -P 2 -I {} $(SHELL) -c '$(PY) -m pytest -k "not ($(LONG))" {}'

# What the drivers of the tests share, to start in half of the time; see tests/javaoptions.py.
%/spark-classes.jsa: %/.installed
	@$*/bin/python -m tests.classarchive

lint: $(VENV)/.installed
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports

# The site in build/site; open index.html. A broken link, or anything from the network, is an error.
docs: $(VENV)/.installed
	@NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --quiet --strict && echo "documentation: build/site/index.html"

bench: $(VENV)/.installed
	@$(PY) $(PIP) --no-build-isolation -e '.[bench]'
	$(PY) benchmarks/run_all.py
	$(PY) benchmarks/plot.py

$(VENV)/.installed $(OLD_VENV)/.installed: %/.installed: $(SOURCES)
	@scripts/need-jdk.sh
	@echo "setting up $* (PySpark is about 450 MB the first time)"
	@[ -d $* ] || "$$(scripts/need-python.sh)" -m venv $*
	@$*/bin/python $(PIP) "$(if $(findstring oldest,$*),$(OLDEST),$(NEWEST))" hatchling editables
	@$*/bin/python $(PIP) --no-build-isolation -e '.[dev]'
	@[ $* = $(OLD_VENV) ] || scripts/need-chromium.sh
	@[ $* = $(OLD_VENV) ] || scripts/need-kafka.sh $*/bin/python
	@touch $@

clean:
	rm -rf $(VENV) $(OLD_VENV) build dist spark_rowtime/jars/*.jar .pytest_cache .mypy_cache .ruff_cache
