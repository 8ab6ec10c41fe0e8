# Ringside. `make help` lists what can be made.
#
#	Makefile            settings
#	scripts/parts.mk    which sources make which part
#	scripts/build.mk    how parts are made, and installed
#	scripts/check.mk    lint, tests, benchmarks, demo

VERSION := 0.1.0
BUILD ?= build
CFLAGS ?= -O2 -g
DESTDIR ?=
prefix ?= /usr/local
bindir ?= $(prefix)/bin
libdir ?= $(prefix)/lib
mandir ?= $(prefix)/share/man
docdir ?= $(prefix)/share/doc/ringside
unitdir ?= $(prefix)/lib/systemd/system
V ?=

WARNINGS := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wundef \
	-Wpointer-arith
# Records are structs and rows of 64-bit words at the same time: they may alias.
LANGUAGE := -std=gnu11 -fno-strict-aliasing -D_GNU_SOURCE -Isrc -I. -DRINGSIDE_VERSION='"$(VERSION)"'
# DEVELOPER=1 makes warnings errors; the checks set it.
STRICT := $(if $(DEVELOPER),-Werror)
# SANITIZE=address,undefined,float-cast-overflow or SANITIZE=thread: for the checks, each in a BUILD of its own.
# gcc warns that TSan does not follow fences: every word around ours is atomic, so nothing is missed.
SANITIZER := $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-sanitize-recover=all -fno-omit-frame-pointer \
	-Wno-unknown-warning-option -Wno-tsan)
ALL_CFLAGS = $(LANGUAGE) $(WARNINGS) $(STRICT) -fPIC -fvisibility=hidden $(CFLAGS) $(SANITIZER)
ALL_LDFLAGS = $(CFLAGS) $(SANITIZER) $(LDFLAGS)

.DEFAULT_GOAL := all

include scripts/parts.mk
include scripts/build.mk
include scripts/check.mk

.PHONY: help
help: ## list what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "  Settings: CC=$(CC) BUILD=$(BUILD) prefix=$(prefix) DESTDIR=$(DESTDIR)"
	@echo "  CFLAGS='$(CFLAGS)', DEVELOPER=1 (warnings are errors), V=1 (show commands)"
