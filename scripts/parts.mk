# Which sources belong to which part. The plugin takes only the writing sides; the tool takes everything
# but the plugin. scripts/check-layers holds the same rule for includes.

PLUGIN_SOURCES := $(filter-out src/common/child.c src/common/file_opener.c,$(wildcard src/common/*.c)) $(wildcard src/plugin/*.c) \
	$(addprefix src/format/,inspector_write.c region_create.c trace_encode.c trace_write.c)
LIBRARY_SOURCES := $(wildcard src/common/*.c src/format/*.c src/recording/*.c src/import/*.c \
	src/analysis/*.c src/doctor/*.c src/output/*.c)
# The command-line code that programs share, and the tool's commands.
CLI_SOURCES := $(wildcard src/cli/*.c)
CMDS_SOURCES := $(wildcard src/cmds/*.c)
# The simulator: the host that acts as NCCL and its jobs are a library, for the tests. A second plugin writes
# down what NCCL calls, for bug reports and new fixtures.
SIM_MAIN_SOURCES := src/sim/sim_main.c
TAPE_SOURCES := src/sim/tape_record.c
SIM_SOURCES := $(filter-out $(SIM_MAIN_SOURCES) $(TAPE_SOURCES),$(wildcard src/sim/*.c))
TAPE_ALL_SOURCES := $(TAPE_SOURCES) $(wildcard src/common/*.c)
# The benchmark of NCCL loads CUDA and NCCL at run time, so it builds everywhere. For `bench profilers` a library counts
# a program's calls of NCCL through LD_PRELOAD.
BENCH_MAIN_SOURCES := src/bench/bench_main.c
COUNT_SOURCES := src/bench/count_preload.c
BENCH_SOURCES := $(filter-out $(BENCH_MAIN_SOURCES) $(COUNT_SOURCES),$(wildcard src/bench/*.c))
COUNT_ALL_SOURCES := $(COUNT_SOURCES) $(wildcard src/common/*.c)
# The node agent and the hub: everything but the server is a library, for the tests and for the tool's help.
AGENT_SERVER_SOURCES := $(addprefix src/serve/serve_,answer.c http.c loop.c) $(addprefix src/agent/agent_,main.c route.c) src/hub/hub_main.c
AGENT_PACKAGES := libmicrohttpd gnutls libcrypt
HAS_AGENT := $(shell $(PKG_CONFIG) --exists $(AGENT_PACKAGES) 2>/dev/null && echo yes)
AGENT_LIBRARY_SOURCES := $(filter-out $(AGENT_SERVER_SOURCES) \
	$(if $(HAS_AGENT),,src/serve/web_auth.c),$(wildcard src/serve/*.c src/agent/*.c src/hub/*.c))
# ringside-top: everything that needs no terminal is a library, for the same reasons.
TOP_SCREEN_SOURCES := $(addprefix src/top/top_,main.c screen.c)
TOP_PACKAGES := ncursesw
HAS_TOP := $(shell $(PKG_CONFIG) --exists $(TOP_PACKAGES) 2>/dev/null && echo yes)
TOP_LIBRARY_SOURCES := $(filter-out $(TOP_SCREEN_SOURCES),$(wildcard src/top/*.c))
# ringside-fetch queries agents and Prometheus: everything that needs no libcurl is a library, for the same reasons.
FETCH_CURL_SOURCES := src/fetch/fetch_main.c
FETCH_PACKAGES := libcurl
HAS_FETCH := $(shell $(PKG_CONFIG) --exists $(FETCH_PACKAGES) 2>/dev/null && echo yes)
FETCH_LIBRARY_SOURCES := src/fetch/fetch.c
# The plugin for Slurm's launcher; built where Slurm's headers are.
SPANK_SOURCES := src/slurm/spank_ringside.c
HAS_SPANK := $(shell $(CC) -E -x c -include slurm/spank.h /dev/null >/dev/null 2>&1 && echo yes)

# Unit tests: one program per room. Some files have a separate program, ROOM_THEME: they replace a function
# of libc for everything linked with them, include a source file whose calls they play, or take long and run
# in parallel with the others.
UNIT_ROOMS := $(sort $(notdir $(patsubst %/,%,$(wildcard tests/unit/*/))))
UNIT_THEMES := agent_play $(if $(HAS_AGENT),serve_server) analysis_memory bench_command bench_cost bench_hub \
	bench_launch format_copy hub_play output_memory plugin_clock plugin_comms plugin_disk plugin_shm plugin_threads plugin_waits serve_play
unit_files_agent_play := $(addprefix tests/unit/agent/test_,agent_look_turns.c agent_snapshot.c agent_verdict_lines.c)
unit_files_hub_play := tests/unit/hub/test_hub_agents.c
unit_files_serve_play := $(addprefix tests/unit/serve/test_,serve_hook_edges.c serve_rights.c)
unit_files_serve_server := $(addprefix tests/unit/,agent/test_agent_main.c agent/test_agent_route.c hub/test_hub_main.c \
	serve/test_serve_http.c serve/test_serve_loop.c)
unit_files_analysis_memory := tests/unit/analysis/test_report_memory.c
unit_files_bench_command := $(wildcard tests/unit/bench/test_command_*.c)
unit_files_bench_cost := $(wildcard tests/unit/bench/test_cost_*.c)
unit_files_bench_hub := $(wildcard tests/unit/bench/test_*hub*.c)
unit_files_bench_launch := $(addprefix tests/unit/bench/test_,bench_launch.c bench_place.c)
unit_files_format_copy := tests/unit/format/test_region_copy.c
unit_files_output_memory := tests/unit/output/test_output_memory.c
unit_files_plugin_clock := tests/unit/plugin/test_record_values.c
unit_files_plugin_comms := $(wildcard tests/unit/plugin/test_comm_*.c)
unit_files_plugin_disk := tests/unit/plugin/test_lost_records.c
unit_files_plugin_shm := tests/unit/plugin/test_shm_room.c
unit_files_plugin_threads := $(addprefix tests/unit/plugin/test_,inspector_edges.c metrics_edges.c trace_edges.c)
unit_files_plugin_waits := tests/unit/plugin/test_own_thread_edges.c
$(foreach room,$(UNIT_ROOMS),$(eval unit_files_$(room) := $(filter-out \
	$(if $(HAS_AGENT),,%/test_web_auth.c $(unit_files_serve_server)) $(foreach theme,$(UNIT_THEMES),$(unit_files_$(theme))), \
	$(wildcard tests/unit/$(room)/test_*.c))))
UNIT_PROGRAMS := $(sort $(UNIT_ROOMS) $(UNIT_THEMES))
LONG_TEST_SOURCES := $(wildcard tests/long_*.c)
FUZZ_SOURCES := $(filter-out fuzz/fuzz_main.c,$(wildcard fuzz/fuzz_*.c))

PERF_SOURCES := $(wildcard perf/perf_*.c)
# Small plugins to compare with or to load in a test: NAME_plugin.c becomes NAME_plugin.so.
SMALL_PLUGIN_SOURCES := $(wildcard perf/*_plugin.c tests/*_plugin.c)

MAN_PAGES := $(wildcard man/*.1)
DOCUMENTS := README.md CHANGELOG.md LICENSE $(wildcard docs/*.md)
RUNBOOKS := $(wildcard docs/runbooks/*.md)
SETUP_PAGES := $(wildcard docs/setup/*.md)
EXAMPLES := $(wildcard docs/examples/*)

# Objects of programs and of plugins. Plugins have their own flags, so that what is
# loaded into a job never shares an object with what is not.
objects = $(patsubst %.c,$(BUILD)/%.o,$(1))
plugin_objects = $(patsubst %.c,$(BUILD)/plugin/%.o,$(1))
