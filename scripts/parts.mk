# Which sources make which part. The plugin takes the writing sides only; the tool takes everything
# but capture. scripts/check-layers holds the same rule for includes.

PLUGIN_SOURCES := $(wildcard src/base/*.c src/op/*.c src/capture/*.c) \
	src/region/region_create.c src/trace/trace_code.c src/trace/trace_write.c
LIBRARY_SOURCES := $(wildcard src/base/*.c src/op/*.c src/region/*.c src/trace/*.c src/timeline/*.c src/view/*.c)
# The host that plays NCCL, without the command around it.
SIM_SOURCES := $(wildcard programs/sim/*.c)
CLI_SOURCES := $(wildcard programs/cli/*.c)
TAPE_RECORDER_SOURCES := $(wildcard programs/tape/*.c)

objects = $(patsubst %.c,$(BUILD)/%.o,$(1))
