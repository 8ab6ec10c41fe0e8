# Release artefacts: see packaging/README.md.

# ---- programs for any glibc from 2.28 ----
#
# The same objects as in the other programs, linked with stub libraries (packaging/floor/make-stubs). What is not found everywhere
# comes from static archives; TLS stays the system's, which updates it. The plugins need none of this.
FLOOR := $(BUILD)/floor
FLOOR_STUBS := $(FLOOR)/stubs
floor_programs = $(patsubst $(BUILD)/%,$(FLOOR)/%,$(1))
FLOOR_PROGRAMS := $(call floor_programs,$(TOOL) $(SIM) $(BENCH) $(AGENT) $(TOP) $(FETCH))

$(FLOOR_STUBS)/made: packaging/floor/make-stubs $(BUILD)/flags
	$(call quiet,STUBS )packaging/floor/make-stubs '$(CC)' $(FLOOR_STUBS) && touch $@

$(call floor_programs,$(TOOL) $(BENCH)): FLOOR_OWN :=
$(call floor_programs,$(SIM)): FLOOR_OWN := $(SIM_LDFLAGS)
$(call floor_programs,$(AGENT)): FLOOR_OWN := -l:libmicrohttpd.a -lgnutls -l:libcrypt.a
$(call floor_programs,$(TOP)): FLOOR_OWN := -l:libncursesw.a -l:libtinfo.a
$(call floor_programs,$(FETCH)): FLOOR_OWN := -lcurl
$(call floor_programs,$(TOOL)): $(TOOL_PARTS)
$(call floor_programs,$(SIM)): $(SIM_PARTS)
$(call floor_programs,$(BENCH)): $(BENCH_PARTS)
$(call floor_programs,$(AGENT)): $(AGENT_PARTS)
$(call floor_programs,$(TOP)): $(TOP_PARTS)
$(call floor_programs,$(FETCH)): $(BUILD)/packaging/floor/floor_curl.o $(FETCH_PARTS)
$(FLOOR_PROGRAMS): $(BUILD)/packaging/floor/floor.o $(FLOOR_STUBS)/made scripts/dist.mk
	$(call quiet,LINK  )$(CC) $(ALL_LDFLAGS) $(PROGRAM_LDFLAGS) -o $@ -Wl,-Map=$@.map \
		$(filter-out %/floor.o %/made %.mk,$^) -L$(FLOOR_STUBS) -static-libgcc -Wl,--wrap=__libc_start_main $(BUILD)/packaging/floor/floor.o \
		$(FLOOR_OWN) -l:libzstd.a -l:libz.a -lm \
		-Wl,--push-state,--no-as-needed -lpthread -ldl -lresolv -Wl,--pop-state

.PHONY: floor
floor: $(FLOOR_PROGRAMS) ## build the programs for any glibc from 2.28

# ---- packages and tarballs ----

DIST := $(BUILD)/dist
# What has programs for a machine, and what has not.
MACHINE_KINDS := binary deb rpm wheel image
SOURCE_KINDS := source srpm
DIST_KINDS := $(if $(CROSS),,$(SOURCE_KINDS)) $(MACHINE_KINDS)

.PHONY: dist dist-built $(addprefix dist-,$(SOURCE_KINDS) $(MACHINE_KINDS))
dist: ## tarballs, packages, wheel and image into build/dist: see packaging/README.md
	@$(if $(CROSS),,scripts/install-deps dist &&) scripts/install-npm build
	+@$(SUBMAKE) dist-built
dist-built: $(addprefix dist-,$(DIST_KINDS))

# For another machine than this one: in a Debian that has its libraries, unless this one has them.
ifneq ($(and $(CROSS),$(if $(and $(HAS_AGENT),$(HAS_TOP),$(HAS_FETCH)),,lacking)),)
$(addprefix dist-,$(DIST_KINDS)): dist-cross
	@:
.PHONY: dist-cross
dist-cross:
	@packaging/dist/cross $(CROSS) $(VERSION) $(DIST)
else
dist-source: ## source tarball, with the charts
dist-srpm: ## source package of the plugin for Slurm, for rpm
dist-binary: all floor ## binary tarball for any glibc from 2.28
dist-deb: all floor ## deb packages
dist-rpm: all floor ## rpm packages
dist-wheel: $(PLUGIN) floor ## Python wheel (manylinux_2_28)
dist-image: all $(BUILD)/copy-plugin ## OCI image of agent, hub, tool and plugin
$(addprefix dist-,$(DIST_KINDS)):
	@packaging/dist/pack $(@:dist-%=%) $(BUILD) $(VERSION) $(DIST)
endif

# For init containers.
$(BUILD)/copy-plugin: $(BUILD)/packaging/image/copy_plugin.o
	$(call quiet,LINK  )$(CC) $(ALL_LDFLAGS) $(PROGRAM_LDFLAGS) -o $@ $^
