# SPDX-License-Identifier: MIT
#
# A front door for the Meson build: `make help` lists what there is.

BUILD ?= build
comma := ,
# Installs the packages that a target needs and that are missing. Where the
# packages come from elsewhere: make check SETUP=true
SETUP ?= setup/install

MESON = meson
NINJA = ninja
# Quiet: the compiler's words, but not one line a file.
COMPILE = $(NINJA) --quiet -C
COUNT = python3 tests/tools/count.py

# $(call run-tests,BUILD DIRECTORY): the tests, the output of those that fail, and
# the count as the last line. The count decides: it also sees a test that ran
# nothing. SUITE=unit|contract|stress runs one tier, or several.
define run-tests
	@rm -f $(1)/meson-logs/testlog*
	@$(MESON) test -C $(1) --no-rebuild $(addprefix --suite ,$(SUITE)) | \
		sed -un 's/^ *\([0-9]*\/[0-9]* \)/\1/p'
	@$(COUNT) $(1)
endef

# $(call configure,BUILD DIRECTORY,OPTIONS): the build tree, with its log beside
# it and the command at its top. Shown only when it fails.
define configure
	@mkdir -p $(1)
	@$(MESON) setup $(1) $(2) >$(1)/configure.log 2>&1 || { cat $(1)/configure.log; exit 1; }
	@ln -sfn tools/hotline/hotline $(1)/hotline
endef

.PHONY: all
all: $(BUILD)/build.ninja
	@$(COMPILE) $(BUILD)

$(BUILD)/build.ninja:
	$(call configure,$(BUILD),--buildtype=debugoptimized)

.PHONY: setup-build setup-check setup-demo
setup-build setup-check setup-demo: setup-%:
	@$(SETUP) build $(if $(filter-out build,$*),$*) $(if $(filter demo,$*),bench)

# The packages come first, also under -j: configuring needs them.
.PHONY: check
check: setup-check
	@$(MAKE) --no-print-directory all
	$(call run-tests,$(BUILD))

.PHONY: demo
demo: setup-demo
# A build tree from before has not seen the libraries that the bench compares with.
	@[ ! -f $(BUILD)/build.ninja ] || $(MESON) setup --reconfigure $(BUILD) >$(BUILD)/configure.log
	@$(MAKE) --no-print-directory all
	@tools/demo.sh $(BUILD)

# The same tests under AddressSanitizer and UndefinedBehaviorSanitizer.
.PHONY: sanitize
sanitize: setup-check
	@$(MAKE) --no-print-directory build-asan/build.ninja
	@$(COMPILE) build-asan
	$(call run-tests,build-asan)

build-asan/build.ninja:
	$(call configure,build-asan,--buildtype=debugoptimized -Db_sanitize=address$(comma)undefined -Db_lundef=false)

# What runs in several threads under ThreadSanitizer.
.PHONY: tsan
tsan: SUITE = unit stress
tsan: setup-check
	@$(MAKE) --no-print-directory build-tsan/build.ninja
	@$(COMPILE) build-tsan
	$(call run-tests,build-tsan)

build-tsan/build.ninja:
	$(call configure,build-tsan,--buildtype=debugoptimized -Db_sanitize=thread -Db_lundef=false -Dtool=disabled -Dman=disabled)

# CPUs, calls and RCU under torture, each program for SECONDS; SEED repeats a run.
# PROGRAM:THREADS:PROCESSORS, as tests/stress/call.c says.
SECONDS = 60
SEED = $(shell date +%s)
# Of the page cache: operations with each number of frames, and how often it is killed.
OPERATIONS = 1000000
CRASHES = 1000
TORTURES = call_torture:6:0 call_delays:6:0 call_delays_no_membarrier:6:0 \
	call_delays_membarrier_fails:6:0 call_torture:64:0 call_delays:16:0 call_delays:6:1 \
	rcu_torture rcu_delays rcu_delays_no_membarrier rcu_delays_membarrier_fails \
	rcuhash_torture rcuhash_delays rcu_flood rcu_idle
.PHONY: stress
stress: setup-check
	@$(MAKE) --no-print-directory all
	@set -e; for torture in $(TORTURES); do \
		IFS=:; set -- $$torture; unset IFS; \
		echo "$$1 $(SECONDS) $(SEED) $$2 $$3"; \
		$(BUILD)/tests/stress-$$1 $(SECONDS) $(SEED) $$2 $$3; \
	done
	@LIVES=100000 $(BUILD)/tests/stress-wake
	@echo "pagecache_model $(OPERATIONS) $(SEED)"
	@$(BUILD)/tests/stress-pagecache_model $(OPERATIONS) $(SEED)
	@echo "pagecache_crash $(CRASHES) $(SEED)"
	@$(BUILD)/tests/stress-pagecache_crash $(CRASHES) $(SEED)

# Each fence, acquire and release of RCU taken out, and who notices; some minutes.
.PHONY: mutants
mutants: setup-check
	@$(MAKE) --no-print-directory all build-tsan/build.ninja
	@$(COMPILE) build-tsan libhotline.a
	@tests/mutants.py $(BUILD) --tsan build-tsan

# Everything, tests included, without a single warning.
.PHONY: werror werror-gcc werror-clang
werror: werror-gcc werror-clang
werror-gcc werror-clang: werror-%: setup-check
	@$(MAKE) --no-print-directory build-$*/build.ninja
	@$(COMPILE) build-$*

build-gcc/build.ninja: export CC = gcc
build-gcc/build.ninja: export CXX = g++
build-clang/build.ninja: export CC = clang
build-clang/build.ninja: export CXX = clang++
build-gcc/build.ninja build-clang/build.ninja: %/build.ninja:
	$(call configure,$*,--buildtype=debugoptimized -Dwerror=true)

.PHONY: fuzz
fuzz: setup-check
	@tests/fuzz/run.sh

# All types of real programs, and the time it takes, against pahole. Fetches and
# builds the programs, below build/compare.
.PHONY: compare
compare: setup-check setup-demo
	@$(MAKE) --no-print-directory all
	@tests/compare/run.sh $(BUILD)

# make install [prefix=/usr] [DESTDIR=/tmp/root]; the build tree remembers the prefix.
.PHONY: install
install: all
	@$(if $(prefix),$(MESON) configure $(BUILD) -Dprefix=$(prefix))
	@DESTDIR=$(DESTDIR) $(MESON) install -C $(BUILD) --quiet

.PHONY: clean
clean:
	@rm -rf $(BUILD) build-asan build-tsan build-gcc build-clang build-fuzz

.PHONY: help
help:
	@echo 'make            builds into $(BUILD)/; the command is $(BUILD)/hotline'
	@echo 'make check      installs what is missing, builds, runs the tests (SUITE=unit for one tier)'
	@echo 'make demo       installs what is missing, builds, shows what Hotline does'
	@echo 'make sanitize   the tests under ASan and UBSan, in build-asan/'
	@echo 'make tsan       the tests with threads under TSan, in build-tsan/'
	@echo 'make stress     torture for SECONDS=60 each program, with SEED'
	@echo 'make mutants    takes the orders out of RCU one at a time: a test must notice'
	@echo 'make werror     builds everything with gcc and clang, warnings are errors'
	@echo 'make fuzz       feeds broken input to what reads files (FUZZ_SECONDS=3600 for an hour)'
	@echo 'make compare    every type of real programs against pahole, and the speed of both'
	@echo 'make install    installs into prefix=/usr/local, below DESTDIR'
	@echo 'make clean      removes the build trees'


