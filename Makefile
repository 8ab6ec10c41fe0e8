# Ringside. `make help` lists the targets.
#
#	Makefile            settings
#	scripts/parts.mk    which sources belong to which part
#	scripts/build.mk    how parts are built and installed
#	scripts/check.mk    lint, tests, benchmarks, demo
#	scripts/dist.mk     packages, tarballs, image

VERSION := 0.2.0
# The machine to build for, on the command line only: ARCH=amd64 or ARCH=arm64. For another than this one, Debian's cross compiler and
# the other's libraries; `make dist ARCH=...` brings its own (packaging/dist/cross).
THIS_ARCH := $(patsubst x86_64,amd64,$(patsubst aarch64,arm64,$(shell uname -m)))
CROSS :=
ifeq ($(origin ARCH),command line)
ifeq ($(filter amd64 arm64,$(ARCH)),)
$(error ARCH=$(ARCH): amd64 or arm64)
endif
CROSS := $(filter-out $(THIS_ARCH),$(ARCH))
endif
ifneq ($(CROSS),)
BUILD ?= build/$(CROSS)
MACHINE := $(patsubst amd64,x86_64,$(patsubst arm64,aarch64,$(CROSS)))
CC := $(MACHINE)-linux-gnu-gcc
AR := $(MACHINE)-linux-gnu-ar
PKG_CONFIG := PKG_CONFIG_LIBDIR=/usr/lib/$(MACHINE)-linux-gnu/pkgconfig:/usr/share/pkgconfig pkg-config
# Runs what is built.
EMULATOR := qemu-$(MACHINE)
endif
BUILD ?= build
# Relative if it is in the tree, however it is spelled: make cannot handle spaces in names of files, the tree may lie in a folder with one,
# and linkers' maps should not say where it lies.
ifneq ($(filter /%,$(firstword $(BUILD))),)
override BUILD := $(shell realpath -m -- '$(subst ','\'',$(BUILD))')
endif
override BUILD := $(subst $(CURDIR)/,,$(BUILD))
PKG_CONFIG ?= pkg-config
CFLAGS ?= -O2 -g
DESTDIR ?=
prefix ?= /usr/local
bindir ?= $(prefix)/bin
libdir ?= $(prefix)/lib
mandir ?= $(prefix)/share/man
docdir ?= $(prefix)/share/doc/ringside
bashcompletiondir ?= $(prefix)/share/bash-completion/completions
zshcompletiondir ?= $(prefix)/share/zsh/site-functions
fishcompletiondir ?= $(prefix)/share/fish/vendor_completions.d
unitdir ?= $(prefix)/lib/systemd/system
slurmdir ?= $(libdir)/slurm
V ?=

WARNINGS := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wundef \
	-Wpointer-arith -Wformat-security
# Records are accessed both as structs and as arrays of 64-bit words, so strict aliasing must be off.
LANGUAGE := -std=gnu11 -fno-strict-aliasing -D_GNU_SOURCE -Isrc -I. -DRINGSIDE_VERSION='"$(VERSION)"'
# DEVELOPER=1 turns warnings into errors; the checks set it.
STRICT := $(if $(DEVELOPER),-Werror)
# SANITIZE=address,undefined,float-cast-overflow or SANITIZE=thread: for the checks, each with its own BUILD directory.
# gcc warns that TSan does not support fences. All words around ours are atomic, so nothing is missed.
SANITIZER := $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-sanitize-recover=all -fno-omit-frame-pointer \
	-Wno-unknown-warning-option -Wno-tsan)
# Mistakes end a program instead of being used. Checked bounds need an optimizing compiler and would hide from sanitizers;
# Ubuntu's compiler has them by default.
HARDENED := $(if $(SANITIZE),-U_FORTIFY_SOURCE,-fstack-protector-strong $(if $(filter -O1 -O2 -O3 -Os,$(CFLAGS)),-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2))
HARDENED_LDFLAGS := -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack
# One word of a shell command: the tree may lie in a folder with a space in its name.
quoted = '$(subst ','\'',$(1))'
# Where the tree lies is no part of what is built.
WHEREVER := $(call quoted,-ffile-prefix-map=$(CURDIR)=.)
ALL_CFLAGS = $(LANGUAGE) $(WARNINGS) $(STRICT) -fPIC -fvisibility=hidden $(WHEREVER) $(HARDENED) $(CFLAGS) $(SANITIZER)
ALL_LDFLAGS = $(CFLAGS) $(SANITIZER) $(LDFLAGS)

.DEFAULT_GOAL := all

include scripts/parts.mk
include scripts/build.mk
include scripts/check.mk
include scripts/dist.mk

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "  Settings: CC=$(CC) BUILD=$(BUILD) prefix=$(prefix) DESTDIR=$(DESTDIR)"
	@echo "  CFLAGS='$(CFLAGS)', DEVELOPER=1 (warnings are errors), V=1 (show commands)"
