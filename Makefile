# make demo: the main job, on a fresh machine. make test: each promise, in ten minutes. make test-long: more of each, in
# twenty. make test-night: what takes longest, of which the others have a part. make test-all: all three. make model,
# make lint, make docs, make wheel, make test-quick, make bench, make clean.
SHELL := bash
VENV := .venv
NEWEST := 4.3
PY := $(VENV)/bin/python
SOURCES := pyproject.toml hatch_build.py $(wildcard requirements/*.txt) $(shell find java-shim -name '*.java' -o -name '*.py' -o -name '*.txt')
PIP := -m pip install --quiet --disable-pip-version-check --no-compile
# Containers often set it. Then each of the hundreds of Python processes of the tests would compile all that it imports.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-long test-night test-all test-quick model lint docs wheel bench clean

demo: $(VENV)/.installed
	@mkdir -p build/logs
	@$(PY) examples/01_hourly_counts.py 2>build/logs/demo.log || { tail -n 50 build/logs/demo.log >&2; exit 1; }

# Every promise on the real thing, in ten minutes on two cores. What takes longer is in test-long: the tests with the mark
# "long" (tests/selection.py), searches with their whole budgets, and other PySparks. In test-night are the tests with
# the mark "night", and what test-long runs on some PySparks alone. scripts/run_tests.py has the jobs.
test: $(VENV)/.programs
	@$(PY) scripts/run_tests.py test

test-long: $(VENV)/.programs $(VENV)/spark-classes.jsa
	@$(PY) scripts/run_tests.py long

test-night: $(VENV)/.programs $(VENV)/spark-classes.jsa
	@$(PY) scripts/run_tests.py night

test-all:
	@$(MAKE) --no-print-directory test
	@$(MAKE) --no-print-directory test-long
	@$(MAKE) --no-print-directory test-night

# One job of make test: make job-spark. One of make test-long: make long-spark. One of make test-night: make night-programs.
job-% long-% night-%: $(VENV)/.programs $(VENV)/spark-classes.jsa
	@$(PY) scripts/run_tests.py $(patsubst job,test,$(firstword $(subst -, ,$@))) $*

# Without servers, most processes, and the searches through many cases. In parts, so that both jobs take as long; in memory, where
# there is room, since a disk's syncs take most of the time.
LONG := postgres or s3 or object or location or in_a_database or oracle or exhaustive or forks or process or damage \
	or crash or unclosed or shell or run_tests or startup or read_only
test-quick: export TMPDIR := $(or $(TMPDIR),$(shell scripts/memory-folder.sh))
test-quick: $(VENV)/.installed
	@printf '%s\n' 'tests/store/test_[a-l]*.py' 'tests/store/test_[m-z]*.py' 'tests/unit/test_[a-c]*.py' 'tests/unit/test_[d-r]*.py' 'tests/unit/test_[s-z]*.py' \
	| xargs -P 2 -I {} $(SHELL) -c '$(PY) -m pytest -m "not long and not night" -k "not ($(LONG))" {}'

# What the drivers of the tests share, to start in half of the time; see tests/javaoptions.py.
%/spark-classes.jsa: %/.installed
	@$*/bin/python -m tests.classarchive

# What the models in model/ say, as a table: minutes. The tests of make test-long have it too.
model: $(VENV)/.installed
	@$(PY) -m model.check

lint: $(VENV)/.installed
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports

# The site in build/site; open index.html. A broken link, or anything from the network, is an error.
docs: $(VENV)/.installed
	@NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --quiet --strict && echo "documentation: build/site/index.html"

bench: $(VENV)/.programs
	@$(PY) $(PIP) --no-build-isolation -e '.[bench]'
	$(PY) benchmarks/run_all.py
	$(PY) benchmarks/plot.py

$(VENV)/.installed: $(SOURCES)
	@scripts/set-up.sh $(VENV) $(NEWEST)
	@touch $@

# What tests, benchmarks and the wheel need besides: Chromium, Maven, and the jars of Kafka.
$(VENV)/.programs: $(VENV)/.installed
	@scripts/need-chromium.sh
	@scripts/need-kafka.sh $(PY)
	@touch $@

# One wheel, with the extension for each minor version of Spark, and the source distribution: in dist. The same jars with
# their POMs, as spark-submit --packages takes them from a repository: in dist/maven. The same bytes each time.
wheel: $(VENV)/.programs
	@$(PY) java-shim/build.py all >/dev/null
	@$(PY) -m hatchling build -d dist
	@$(PY) java-shim/repository.py dist/maven

clean:
	rm -rf $(VENV) build dist spark_rowtime/jars .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	rm -rf *.egg-info spark-warehouse metastore_db derby.log
	find . -name __pycache__ -prune -exec rm -rf {} +
