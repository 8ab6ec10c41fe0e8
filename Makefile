# Ringside. `make help` lists what can be made.

VERSION := 0.1.0
BUILD ?= build
CC ?= cc
CFLAGS ?= -O2 -g
DESTDIR ?=
prefix ?= /usr/local

WARNINGS := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wundef -Wpointer-arith
LANGUAGE := -std=gnu11 -D_GNU_SOURCE -Isrc -I. -DRINGSIDE_VERSION='"$(VERSION)"'
# DEVELOPER=1 makes warnings errors; the checks set it.
ALL_CFLAGS = $(LANGUAGE) $(WARNINGS) $(if $(DEVELOPER),-Werror) -fPIC -fvisibility=hidden $(CFLAGS) -MMD -MP

include scripts/parts.mk

PLUGIN := $(BUILD)/libnccl-profiler-ringside.so
TOOL := $(BUILD)/ringside

.PHONY: all
all: $(TOOL) $(PLUGIN) $(TAPE_RECORDER) ## build the tool and the plugin

include scripts/build.mk
include scripts/check.mk
