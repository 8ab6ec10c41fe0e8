# Which sources make which part. The plugin takes the writing sides only; the tool takes everything
# but capture. scripts/check-layers holds the same rule for includes.

PLUGIN_SOURCES := $(wildcard src/base/*.c src/op/*.c src/capture/*.c) \
	src/region/region_create.c \
	$(addprefix src/trace/,trace_code.c trace_encode.c trace_plan.c trace_write.c)
LIBRARY_SOURCES := $(wildcard src/base/*.c src/op/*.c src/region/*.c src/trace/*.c \
	src/recording/*.c src/foreign/*.c src/timeline/*.c src/view/*.c)
# The host that plays NCCL, without the command around it.
SIM_SOURCES := $(wildcard programs/sim/*.c)
CLI_SOURCES := $(wildcard programs/cli/*.c)
# A second plugin: it writes down what NCCL calls, for bug reports and new fixtures.
TAPE_SOURCES := $(wildcard programs/tape/*.c)
TAPE_ALL_SOURCES := $(if $(TAPE_SOURCES),$(TAPE_SOURCES) $(wildcard src/base/*.c src/op/*.c))

TEST_SOURCES := $(wildcard tests/test_*.c)
LONG_TEST_SOURCES := $(wildcard tests/long_*.c)
FUZZ_SOURCES := $(filter-out fuzz/fuzz_main.c,$(wildcard fuzz/fuzz_*.c))

BENCH_SOURCES := $(wildcard bench/bench_*.c)
# Small plugins to compare with or to load in a test: NAME_plugin.c becomes NAME_plugin.so.
SMALL_PLUGIN_SOURCES := $(wildcard bench/*_plugin.c tests/*_plugin.c)

MAN_PAGES := $(wildcard man/*.1)
DOCUMENTS := README.md CHANGELOG.md LICENSE $(wildcard docs/*.md)
EXAMPLES := $(wildcard docs/examples/*)

# Objects for programs, and for plugins: these are compiled with flags of their own, so that what is
# loaded into a job never shares an object with what is not.
objects = $(patsubst %.c,$(BUILD)/%.o,$(1))
plugin_objects = $(patsubst %.c,$(BUILD)/plugin/%.o,$(1))
