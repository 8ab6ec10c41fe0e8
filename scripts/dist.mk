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
	$(call quiet,STUBS )packaging/floor/make-stubs '$(CC)' $(abspath $(FLOOR_STUBS)) && touch $@

$(call floor_programs,$(TOOL) $(SIM) $(BENCH)): FLOOR_OWN :=
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
pack = @packaging/dist/pack $(1) $(BUILD) $(VERSION) $(DIST)

.PHONY: dist dist-source dist-binary dist-deb dist-rpm
dist: dist-source dist-binary dist-deb dist-rpm ## tarballs and packages into build/dist: see packaging/README.md
dist-source: ## source tarball, with the charts
	$(call pack,source)
dist-binary: all floor ## binary tarball for any glibc from 2.28
	$(call pack,binary)
dist-deb: all ## deb packages
	$(call pack,deb)
dist-rpm: all floor ## rpm packages
	$(call pack,rpm)

# The wheel: the Python package with the plugin and the programs that need glibc alone. agent and fetch need GnuTLS and
# libcurl of the system, which a wheel may not expect.
WHEEL_PROGRAMS := $(call floor_programs,$(TOOL) $(SIM) $(BENCH) $(TOP))

.PHONY: dist-wheel
dist: dist-wheel
dist-wheel: $(PLUGIN) $(WHEEL_PROGRAMS) ## Python wheel (manylinux_2_28)
	@SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct 2>/dev/null || stat -c %Y CHANGELOG.md)} \
		packaging/wheel/build-wheel --version $(VERSION) --out $(BUILD)/dist --maps $(FLOOR) $(PLUGIN) $(WHEEL_PROGRAMS)
