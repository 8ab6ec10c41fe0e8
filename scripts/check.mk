# Lint, tests, benchmarks, demo. A test is a program that prints TAP:
#
#	tests/unit/ROOM/test_*.c  unit tests, one program per room: make check, also under ASan+UBSan; those with threads under TSan
#	tests/*.t, tests/*/*.t    scripts (executable): make check; tests/lint/*.t: make lint
#	tests/long_*.c            stress and soak: make check-long
#	tests/long/*.t            the same as scripts
#	tests/*_plugin.c          a small plugin for a test: $BUILD/tests/*_plugin.so
#	fuzz/fuzz_*.c             LLVMFuzzerTestOneInput(): a few inputs in make check, LONG_SECONDS each in check-long
#
# Scripts find the build through $BUILD, an absolute path.

LONG_SECONDS ?= 60
# A test that takes longer is considered hung and killed. On a busy machine a test of half a minute takes minutes.
TEST_SECONDS ?= 1800
LONG_TEST_SECONDS ?= 9000
JOBS := $(shell nproc)
# Tests that simulate a job mostly wait, so others use the CPUs meanwhile.
TEST_JOBS := $(shell echo $$((4 * $(JOBS))))
# As many jobs as CPUs, unless -j was given. Recipes that use it begin with +: make recognizes only a literal
# $(MAKE) by itself, and would not share its job slots otherwise.
SUBMAKE = $(MAKE) --no-print-directory $(if $(filter -j%,$(MAKEFLAGS)),,-j$(JOBS))
# Where tests keep their files: in memory, as in a real job, if there is enough and programs can run from it. Regions on a disk
# that blocks init fall back to private memory, which readers cannot see.
TEST_TMP := $(shell scripts/test-tmp)
# GOGC: programs in Go (Prometheus, Podman) live for seconds and have memory enough; collecting garbage is a fifth of their time.
test_environment = TMPDIR=$(call quoted,$(TEST_TMP)) BUILD=$(call quoted,$(BUILD_PATH)) CC='$(CC)' LONG_SECONDS=$(LONG_SECONDS) HARNESS_RULESFILE=tests/testrules.yml \
	GOGC=400
prove_options = -j$(TEST_JOBS) --failures --comments --exec 'timeout $(1) scripts/alone'
prove = $(test_environment) prove $(call prove_options,$(1))

binaries = $(patsubst %.c,$(2)/%,$(1))
TESTS := $(addprefix $(BUILD)/tests/unit/,$(UNIT_PROGRAMS))
LONG_TESTS := $(call binaries,$(LONG_TEST_SOURCES),$(BUILD))
FUZZERS := $(call binaries,$(FUZZ_SOURCES),$(BUILD))
BENCHES := $(call binaries,$(PERF_SOURCES),$(BUILD))
SMALL_PLUGINS := $(patsubst %.c,$(BUILD)/%.so,$(SMALL_PLUGIN_SOURCES))

LINT_SCRIPTS := $(wildcard tests/lint/*.t)
LONG_SCRIPTS := $(wildcard tests/long/*.t)
TEST_SCRIPTS := $(filter-out $(LINT_SCRIPTS) $(LONG_SCRIPTS) $(wildcard tests/gpu/*.t), \
	$(wildcard tests/*.t tests/*/*.t))
# Unit tests of the plugin link all of its objects except its exports.
CAPTURE_OBJECTS := $(call objects,$(filter src/plugin/%,$(PLUGIN_SOURCES)))
# What the test programs of a room are linked with besides the library.
unit_parts_agent := $(AGENT_LIBRARY) $(FETCH_LIBRARY) $(CLI_LIBRARY)
unit_parts_bench := $(BENCH_LIBRARY) $(CLI_LIBRARY)
# The whole tool and the simulator, so that commands run inside a test.
unit_parts_cmds := $(BUILD)/unit/cmds_main.o $(BUILD)/unit/sim_main.o $(call objects,$(filter-out src/cmds/main.c,$(CMDS_SOURCES))) $(AGENT_LIBRARY) $(TOP_LIBRARY) \
	$(FETCH_LIBRARY) $(SIM_LIBRARY) $(CLI_LIBRARY)
unit_parts_cli := $(unit_parts_cmds)
unit_parts_hub := $(unit_parts_agent)
unit_parts_serve := $(unit_parts_agent)
unit_parts_fetch := $(FETCH_LIBRARY)
unit_parts_plugin := $(CAPTURE_OBJECTS) $(SIM_LIBRARY) $(CLI_LIBRARY)
unit_parts_recording := $(unit_parts_plugin)
unit_parts_sim := $(SIM_LIBRARY) $(CLI_LIBRARY)
unit_parts_top := $(TOP_LIBRARY) $(CLI_LIBRARY)
unit_libs_agent := $(if $(HAS_AGENT),-lcrypt -lgnutls)
unit_libs_hub := $(unit_libs_agent)
unit_libs_serve := $(unit_libs_agent)
# Not of the room cmds, which loads a driver of its own.
unit_libs_plugin := $(SIM_LDFLAGS)
unit_libs_recording := $(SIM_LDFLAGS)
unit_libs_sim := $(SIM_LDFLAGS)

# A unit test program consists of the files' objects, each with its main() renamed, a table of them and tests/support/runner.c.
# $(BUILD)/tests/race/PROGRAM has only the files that can race: those that start threads, play NCCL or run a live job.
RACE_FILES := $(shell grep -lE 'pthread\.h|"sim/host|\bsim_live_run\b' $(foreach program,$(UNIT_PROGRAMS),$(unit_files_$(program))) /dev/null)
$(foreach program,$(UNIT_PROGRAMS),$(eval race_files_$(program) := $(filter $(RACE_FILES),$(unit_files_$(program)))))
RACE_PROGRAMS := $(foreach program,$(UNIT_PROGRAMS),$(if $(race_files_$(program)),$(program)))
RACE_TESTS := $(addprefix $(BUILD)/tests/race/,$(RACE_PROGRAMS))
# Tests start themselves hundreds of times, and relocating AddressSanitizer's list of globals is a quarter of a start.
UNIT_LDFLAGS := $(if $(findstring address,$(SANITIZE)),-no-pie)
unit_room = $(firstword $(subst _, ,$(1)))
unit_objects = $(patsubst tests/unit/%.c,$(BUILD)/unit/%.o,$(1))
define unit_program
$(BUILD)/tests/$(1)/$(2): $(call unit_objects,$($(1)_files_$(2))) $(BUILD)/unit/$(1)_$(2)_table.o $(BUILD)/tests/support/runner.o \
		$(unit_parts_$(call unit_room,$(2))) $(LIBRARY)
	@mkdir -p $$(@D)
	$$(call quiet,LINK  )$$(CC) $$(ALL_LDFLAGS) $$(UNIT_LDFLAGS) -o $$@ $$^ $$(PROGRAM_LIBS) $(unit_libs_$(call unit_room,$(2)))
$(BUILD)/unit/$(1)_$(2)_table.c: $($(1)_files_$(2)) $(BUILD)/unit/files scripts/unit-table
	@scripts/unit-table $($(1)_files_$(2)) > $$@
endef
$(foreach program,$(UNIT_PROGRAMS),$(eval $(call unit_program,unit,$(program))))
$(foreach program,$(RACE_PROGRAMS),$(eval $(call unit_program,race,$(program))))
# Which file is in which program: the tables are regenerated when this changes.
$(BUILD)/unit/files: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' $(foreach program,$(UNIT_PROGRAMS),$(program): $(unit_files_$(program)) $(race_files_$(program))) > $@.new
	@if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi
# What is tested is optimized as it is shipped; the tests themselves run once and need not be.
$(BUILD)/unit/%.o: tests/unit/%.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call quiet,CC    )$(CC) $(ALL_CFLAGS) $(if $(SANITIZE),,-O0) -Wno-missing-prototypes -Dmain=$(notdir $*)_main -MMD -MP -c $< -o $@
# Main programs that tests call.
$(BUILD)/unit/cmds_main.o: src/cmds/main.c
$(BUILD)/unit/sim_main.o: src/sim/sim_main.c
$(BUILD)/unit/cmds_main.o $(BUILD)/unit/sim_main.o: $(BUILD)/unit/%_main.o: $(BUILD)/flags
	@mkdir -p $(@D)
	$(call quiet,CC    )$(CC) $(ALL_CFLAGS) -Wno-missing-prototypes -Dmain=$*_main -MMD -MP -c $(filter %.c,$^) -o $@
$(BUILD)/unit/%_table.o: $(BUILD)/unit/%_table.c $(BUILD)/flags
	$(call quiet,CC    )$(CC) $(ALL_CFLAGS) -c $< -o $@

$(LONG_TESTS): $(BUILD)/tests/%: $(BUILD)/tests/%.o $(CAPTURE_OBJECTS) $(SIM_LIBRARY) $(CLI_LIBRARY) $(LIBRARY)
	$(call quiet,LINK  )$(CC) $(ALL_LDFLAGS) $(SIM_LDFLAGS) -o $@ $^ $(PROGRAM_LIBS)

# Jobs that load the real plugin, and programs that inspect them: see tests/process/process.sh.
PROCESSES := $(call binaries,$(wildcard tests/process/*.c),$(BUILD))
$(BENCHES) $(PROCESSES): $(BUILD)/%: $(BUILD)/%.o $(SIM_LIBRARY) $(LIBRARY)
	$(call quiet,LINK  )$(CC) $(ALL_LDFLAGS) -o $@ $^ $(PROGRAM_LIBS)

$(SMALL_PLUGINS): $(BUILD)/%.so: $(BUILD)/plugin/%.o
	@mkdir -p $(@D)
	$(call quiet,LINK  )$(CC) -shared $(ALL_LDFLAGS) -o $@ $^

# A CUDA driver, an NCCL and an NVML that play on the CPU, and an older NCCL: see docs/HACKING.md.
FAKE_GPU := $(BUILD)/tests/fake_gpu
FAKE_LIBRARIES := $(addprefix $(FAKE_GPU)/,libcuda.so.1 libnccl.so.2 libnccl-old.so.2 libnvidia-ml.so.1)
FAKE_CUDA_SOURCES := $(addprefix tests/fake_gpu/fake_,capture.c control.c cuda.c event.c graph.c kernel.c memory.c point.c queue.c)
FAKE_NCCL_SOURCES := $(filter-out $(FAKE_CUDA_SOURCES) tests/fake_gpu/fake_nvml.c,$(wildcard tests/fake_gpu/fake_*.c)) \
	tests/fake_gpu/fake_point.c $(wildcard src/sim/host*.c src/common/*.c)
$(FAKE_GPU)/libcuda.so.1: $(call objects,$(FAKE_CUDA_SOURCES))
$(FAKE_GPU)/libnccl.so.2: $(call objects,$(FAKE_NCCL_SOURCES)) $(FAKE_GPU)/libcuda.so.1
$(FAKE_GPU)/libnccl-old.so.2: $(call objects,$(filter-out %_new.c,$(FAKE_NCCL_SOURCES))) $(FAKE_GPU)/libcuda.so.1
$(FAKE_GPU)/libnvidia-ml.so.1: $(call objects,tests/fake_gpu/fake_nvml.c)
# They move and compare millions of numbers. AddressSanitizer still watches the programs that call them, and their memory.
$(call objects,$(wildcard tests/fake_gpu/*.c)): OWN_CFLAGS := $(if $(findstring address,$(SANITIZE)),-O2 -fno-sanitize=all)
$(FAKE_LIBRARIES):
	$(call quiet,LINK  )$(CC) -shared $(ALL_LDFLAGS) -Wl,-soname,$(notdir $@) -Wl,-rpath,'$$ORIGIN' -o $@ $^ -lpthread -ldl -lm
$(addprefix $(BUILD)/tests/unit/,bench bench_command cli cmds): | $(FAKE_LIBRARIES)
$(addprefix $(BUILD)/tests/,unit/plugin race/plugin): | $(FAKE_GPU)/libcuda.so.1
# Tests of the simulator and of the fake NCCL load these plugins.
$(BUILD)/tests/unit/sim: | $(TAPE) $(BUILD)/tests/load_plugin.so
$(BUILD)/tests/unit/bench: | $(BUILD)/tests/event_times_plugin.so
$(BUILD)/tests/unit/bench_command: | $(BUILD)/tests/lossy_plugin.so $(PLUGIN)

# One entry point, two engines: libFuzzer if FUZZ_ENGINE selects it, otherwise our own driver.
FUZZ_ENGINE ?= $(BUILD)/fuzz/fuzz_main.o
$(FUZZERS): $(BUILD)/fuzz/%: $(BUILD)/fuzz/%.o $(CAPTURE_OBJECTS) $(BENCH_LIBRARY) $(AGENT_LIBRARY) $(TOP_LIBRARY) $(FETCH_LIBRARY) $(SIM_LIBRARY) $(CLI_LIBRARY) $(LIBRARY) \
		$(filter %.o,$(FUZZ_ENGINE))
	$(call quiet,LINK  )$(CC) $(ALL_LDFLAGS) $(filter -%,$(FUZZ_ENGINE)) -o $@ $^ $(PROGRAM_LIBS)

# Everything that may call a function of src: scripts/check-callers reads these objects.
CALLERS := $(TESTS) $(PROCESSES) $(FAKE_LIBRARIES) $(call objects,$(FUZZ_SOURCES) fuzz/fuzz_main.c $(PERF_SOURCES))

.PHONY: tests race-tests long-tests fuzzers benches fake-gpu
tests: $(TESTS) $(SMALL_PLUGINS) $(PROCESSES) $(FAKE_LIBRARIES)
fake-gpu: $(FAKE_LIBRARIES)
race-tests: $(RACE_TESTS) $(SMALL_PLUGINS)
long-tests: $(LONG_TESTS) $(SMALL_PLUGINS)
benches: $(BENCHES) $(SMALL_PLUGINS)
fuzzers: $(FUZZERS)
tests race-tests long-tests benches fuzzers fake-gpu:
	@:

# The same sources again under sanitizers, each in its own directory.
ASAN := $(BUILD)/asan
TSAN := $(BUILD)/tsan
asan_make = $(SUBMAKE) BUILD=$(ASAN) SANITIZE=address,undefined,float-cast-overflow CFLAGS='-Og -g1'
tsan_make = $(SUBMAKE) BUILD=$(TSAN) SANITIZE=thread CFLAGS='-O1 -g1'
libfuzzer_make = $(SUBMAKE) BUILD=$(BUILD)/libfuzzer CC=clang CFLAGS='-O1 -g' \
	SANITIZE=address,undefined,float-cast-overflow,fuzzer-no-link FUZZ_ENGINE=-fsanitize=fuzzer
under = $(patsubst $(BUILD)/%,$(1)/%,$(2))
# Leak detection takes seconds per program on some kernels, so only check-long does it. The shadow of a large block is cleared, not
# mapped anew, and stacks of allocations are short: a quarter less time, and nothing found less.
export ASAN_OPTIONS ?= detect_leaks=0:clear_shadow_mmap_threshold=134217728:malloc_context_size=8
export UBSAN_OPTIONS ?= print_stacktrace=1
export TSAN_OPTIONS ?= halt_on_error=1

.PHONY: check
check: ## everything a commit must pass: setup, build, lint, tests (no GPU, no root)
	@scripts/install-deps check && scripts/install-npm check
	+@$(SUBMAKE) DEVELOPER=1 check-built

.PHONY: check-built
check-built: all tests benches floor $(BUILD)/copy-plugin $(CALLERS)
	+@$(SUBMAKE) BUILD=$(BUILD)/clang CC=clang CFLAGS=-O0 all
	+@$(asan_make) tests fuzzers
	+@$(tsan_make) race-tests
	@$(test_environment) scripts/run-tests $(BUILD) $(call prove_options,$(TEST_SECONDS)) \
		$(LINT_SCRIPTS) $(TESTS) $(TEST_SCRIPTS) $(call under,$(ASAN),$(TESTS)) $(call under,$(TSAN),$(RACE_TESTS))

.PHONY: check-unit
check-unit: $(TESTS) ## only the unit tests
	$(call prove,$(TEST_SECONDS)) $(TESTS)

.PHONY: check-scripts
check-scripts: ## only the scripts of tests in SCRIPTS
	+@$(SUBMAKE) all tests
	@$(test_environment) scripts/run-tests $(BUILD) $(call prove_options,$(TEST_SECONDS)) $(or $(SCRIPTS),$(TEST_SCRIPTS))

# Each copy runs six scripts at a time, most of which wait.
COPIES ?= $(JOBS)
ROUNDS ?= 2
.PHONY: check-busy
check-busy: ## scripts in COPIES copies at the same time, ROUNDS times: which fail?
	+@$(SUBMAKE) DEVELOPER=1 all tests benches floor $(BUILD)/copy-plugin
	@$(test_environment) scripts/busy-tests $(COPIES) $(ROUNDS) $(filter-out tests/fuzz_quick.t,$(TEST_SCRIPTS))

.PHONY: lint
lint: all $(CALLERS) ## format, layers, hot path, callers, exports, glibc floor, headers, sizes, documents
	@scripts/install-deps check
	@$(call prove,$(TEST_SECONDS)) $(LINT_SCRIPTS)

.PHONY: check-long
check-long: export ASAN_OPTIONS := detect_leaks=1
check-long: ## sanitizers on everything, stress, soak, fuzz: LONG_SECONDS each (default 60)
	@scripts/install-deps check && scripts/install-npm check
	+@$(SUBMAKE) DEVELOPER=1 all tests long-tests
	+@$(asan_make) all tests long-tests fuzzers
	+@$(tsan_make) all tests long-tests fuzzers
	+@if echo 'int LLVMFuzzerTestOneInput(void); int LLVMFuzzerTestOneInput(void) { return 0; }' | \
		clang -fsanitize=fuzzer -x c - -o /dev/null 2>/dev/null; then $(libfuzzer_make) fuzzers; fi
	@$(call prove,$(LONG_TEST_SECONDS)) $(LONG_TESTS) $(LONG_SCRIPTS) \
		$(call under,$(ASAN),$(TESTS) $(LONG_TESTS)) $(call under,$(TSAN),$(TESTS) $(LONG_TESTS))

.PHONY: check-gpu
check-gpu: all ## with real NCCL on one GPU
	BUILD=$(call quoted,$(BUILD_PATH)) tests/gpu/run

.PHONY: bench
bench: all benches $(PROCESSES) ## cost of recording, compared with a plugin that does nothing
	BUILD=$(call quoted,$(BUILD_PATH)) perf/run

.PHONY: bench-gpu
bench-gpu: all ## NCCL call by call, and a comparison of profilers, on one GPU (see perf/gpu)
	BUILD=$(call quoted,$(BUILD_PATH)) perf/gpu

.PHONY: demo
demo: ## record and show a simulated job of eight ranks with a slow link
	@scripts/install-deps compile
	+@$(SUBMAKE) all
	@scripts/demo $(BUILD)

.PHONY: drill
drill: all ## diagnose 1,300 random jobs with known faults; rewrites docs/results/doctor-drill*.txt
	BUILD=$(call quoted,$(BUILD_PATH)) tests/doctor/drill --write
	BUILD=$(call quoted,$(BUILD_PATH)) tests/doctor/drill_live.py --table docs/results/doctor-drill-live.txt

.PHONY: diff-power
diff-power: all ## compare pairs of simulated jobs; rewrites docs/results/diff-power.txt
	BUILD=$(call quoted,$(BUILD_PATH)) tests/report/diff_power.py --table docs/results/diff-power.txt

.PHONY: mutants
mutants: ## change operators at random and see whether tests notice: SECONDS (600), SEED, UNIT=1 without scripts; rewrites docs/results/mutants.txt
	BUILD=$(call quoted,$(BUILD_PATH)) CC='$(CC)' scripts/mutants --seconds $(or $(SECONDS),600) $(if $(SEED),--seed $(SEED)) $(if $(UNIT),,--scripts) --write docs/results/mutants.txt

.PHONY: format
format: ## format all C files with clang-format
	scripts/check-format --fix
