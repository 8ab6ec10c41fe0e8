# Which sources make which part. The plugin takes the writing sides only; the tool takes everything
# but the plugin. scripts/check-layers holds the same rule for includes.

PLUGIN_SOURCES := $(wildcard src/common/*.c src/plugin/*.c) \
	$(addprefix src/format/,inspector_write.c region_create.c trace_encode.c trace_write.c)
LIBRARY_SOURCES := $(wildcard src/common/*.c src/format/*.c src/recording/*.c \
	src/import/*.c src/analysis/*.c src/doctor/*.c src/output/*.c \
	src/bench/*.c src/view/*.c)
# The host that plays NCCL, without the command around it.
SIM_SOURCES := $(wildcard programs/sim/*.c)
# The benchmark of NCCL: opens CUDA and NCCL when it runs, so it is part of the tool.
NCCL_BENCH_SOURCES := $(wildcard programs/bench/*.c)
# What programs share.
CLI_SOURCES := $(wildcard src/cmds/cli*.c)
CMDS_SOURCES := $(filter-out $(CLI_SOURCES),$(wildcard src/cmds/*.c)) $(wildcard programs/cli/*.c)
# The node agent: what is no server is a library, for the tests and for the tool's help.
AGENT_SERVER_SOURCES := $(addprefix programs/agent/agent_,body.c http.c loop.c main.c route.c tls.c)
AGENT_PACKAGES := libmicrohttpd gnutls libcrypt
HAS_AGENT := $(shell pkg-config --exists $(AGENT_PACKAGES) 2>/dev/null && echo yes)
AGENT_LIBRARY_SOURCES := $(filter-out $(AGENT_SERVER_SOURCES) \
	$(if $(HAS_AGENT),,programs/agent/web_auth.c),$(wildcard programs/agent/*.c))
# The live screen: what knows no terminal is a library, for the same reasons.
TOP_SCREEN_SOURCES := $(addprefix programs/top/top_,loop.c main.c screen.c)
TOP_PACKAGES := ncursesw
HAS_TOP := $(shell pkg-config --exists $(TOP_PACKAGES) 2>/dev/null && echo yes)
TOP_LIBRARY_SOURCES := $(filter-out $(TOP_SCREEN_SOURCES),$(wildcard programs/top/*.c))
# What asks agents and Prometheus: what knows no libcurl is a library, for the same reasons.
FETCH_CURL_SOURCES := $(addprefix programs/fetch/fetch_,loop.c main.c)
FETCH_PACKAGES := libcurl
HAS_FETCH := $(shell pkg-config --exists $(FETCH_PACKAGES) 2>/dev/null && echo yes)
FETCH_LIBRARY_SOURCES := $(filter-out $(FETCH_CURL_SOURCES),$(wildcard programs/fetch/*.c))
# A second plugin: it writes down what NCCL calls, for bug reports and new fixtures.
TAPE_SOURCES := $(wildcard programs/tape/*.c)
TAPE_ALL_SOURCES := $(if $(TAPE_SOURCES),$(TAPE_SOURCES) $(wildcard src/common/*.c))
# What counts the calls of NCCL that a program makes, by LD_PRELOAD: for bench profilers.
COUNT_SOURCES := $(wildcard programs/count/*.c)
COUNT_ALL_SOURCES := $(COUNT_SOURCES) $(wildcard src/common/*.c)

TEST_SOURCES := $(filter-out $(if $(HAS_AGENT),,tests/test_agent_auth.c),$(wildcard tests/test_*.c))
LONG_TEST_SOURCES := $(wildcard tests/long_*.c)
FUZZ_SOURCES := $(filter-out fuzz/fuzz_main.c,$(wildcard fuzz/fuzz_*.c))

BENCH_SOURCES := $(wildcard bench/bench_*.c)
# Small plugins to compare with or to load in a test: NAME_plugin.c becomes NAME_plugin.so.
SMALL_PLUGIN_SOURCES := $(wildcard bench/*_plugin.c tests/*_plugin.c)

MAN_PAGES := $(wildcard man/*.1)
DOCUMENTS := README.md CHANGELOG.md LICENSE $(wildcard docs/*.md)
RUNBOOKS := $(wildcard docs/runbooks/*.md)
SETUP_PAGES := $(wildcard docs/setup/*.md)
EXAMPLES := $(wildcard docs/examples/*)

# Objects for programs, and for plugins: these are compiled with flags of their own, so that what is
# loaded into a job never shares an object with what is not.
objects = $(patsubst %.c,$(BUILD)/%.o,$(1))
plugin_objects = $(patsubst %.c,$(BUILD)/plugin/%.o,$(1))
