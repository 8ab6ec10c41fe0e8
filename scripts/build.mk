# Building and installing: rules only, no lists.

# Not $(abspath): it splits a path at spaces.
BUILD_PATH = $(if $(filter /%,$(BUILD)),$(BUILD),$(CURDIR)/$(BUILD))

TOOL := $(BUILD)/ringside
SIM := $(BUILD)/ringside-sim
BENCH := $(BUILD)/ringside-bench
PLUGIN := $(BUILD)/libnccl-profiler-ringside.so
TAPE := $(if $(TAPE_SOURCES),$(BUILD)/libnccl-profiler-tape.so)
COUNT := $(if $(COUNT_SOURCES),$(BUILD)/libringside-count.so)
LIBRARY := $(BUILD)/libringside.a
CLI_LIBRARY := $(BUILD)/libcli.a
SIM_LIBRARY := $(BUILD)/libsim.a
BENCH_LIBRARY := $(BUILD)/libbench.a
AGENT := $(if $(HAS_AGENT),$(BUILD)/ringside-agent)
AGENT_LIBRARY := $(BUILD)/libagent.a
TOP := $(if $(HAS_TOP),$(BUILD)/ringside-top)
TOP_LIBRARY := $(BUILD)/libtop.a
FETCH := $(if $(HAS_FETCH),$(BUILD)/ringside-fetch)
FETCH_LIBRARY := $(BUILD)/libfetch.a
SPANK := $(if $(HAS_SPANK),$(BUILD)/ringside_spank.so)

# One line per file; V=1 shows the commands.
quiet = $(if $(V),,@echo "  $(1) $@";)

# Keep all objects, including those that are only needed for tests.
.SECONDARY:

.PHONY: all plugin
all: $(TOOL) $(SIM) $(BENCH) $(PLUGIN) $(TAPE) $(COUNT) $(AGENT) $(TOP) $(FETCH) $(SPANK) ## build the tool, its programs and the plugin
ifeq ($(AGENT),)
	@echo "  not building the agent: pkg-config does not find all of $(AGENT_PACKAGES) (scripts/install-deps build)"
endif
ifeq ($(TOP),)
	@echo "  not building ringside-top: pkg-config does not find $(TOP_PACKAGES) (scripts/install-deps build)"
endif
ifeq ($(FETCH),)
	@echo "  not building ringside-fetch: pkg-config does not find $(FETCH_PACKAGES) (scripts/install-deps build)"
endif
ifeq ($(SPANK),)
	@echo "  not building ringside_spank.so: no slurm/spank.h (libslurm-dev, slurm-devel)"
endif
plugin: $(PLUGIN) ## build only the plugin (needs only a C compiler and libc)

# Objects depend on their compiler flags: changed flags rebuild them.
FLAGS := $(subst $(WHEREVER),'-ffile-prefix-map=.=.',$(CC) $(ALL_CFLAGS) $(LDFLAGS))
.PHONY: FORCE
$(BUILD)/flags: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' $(call quoted,$(FLAGS)) | cmp -s - $@ || \
		printf '%s\n' $(call quoted,$(FLAGS)) > $@

# Loops over millions of rows are 10% faster with wider instructions.
LOOPS := $(addprefix $(BUILD)/src/,format/trace_decode.o recording/recording_walk.o)
$(LOOPS): OWN_CFLAGS := $(if $(SANITIZE),,-O3)

$(BUILD)/%.o: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call quiet,CC    )$(CC) $(ALL_CFLAGS) $(OWN_CFLAGS) -MMD -MP -c $< -o $@

# One section per function: unused functions are dropped, and scripts/check-hot-path can see which
# function calls which. Sanitizers add their own symbols, so the glibc floor applies only to real builds.
PLUGIN_CFLAGS := -ffunction-sections -fdata-sections \
	$(if $(SANITIZE),,-O3 -include src/common/glibc_floor.h)

$(BUILD)/plugin/%.o: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call quiet,CC    )$(CC) $(ALL_CFLAGS) $(PLUGIN_CFLAGS) -MMD -MP -c $< -o $@

# The assembler puts the parts of the HTML report into one object, which the compiler never sees. It
# is rebuilt when a part changes, and when the charts appear or disappear (scripts/install-npm build).
UPLOT := npm/node_modules/uplot
HTML_PARTS := $(sort $(wildcard src/output/palette.css src/output/base.css src/output/html/* \
	$(addprefix $(UPLOT)/,LICENSE dist/uPlot.iife.min.js dist/uPlot.min.css)))
$(BUILD)/html_parts: FORCE
	@mkdir -p $(@D)
	@cksum $(HTML_PARTS) | cmp -s - $@ || cksum $(HTML_PARTS) > $@
$(BUILD)/src/output/html_report.o: $(BUILD)/html_parts
# The same for the live page; a checksum of its parts lets browsers ask whether it changed.
PAGE_PARTS := $(sort $(wildcard src/output/palette.css src/output/base.css src/output/page/* \
	$(addprefix $(UPLOT)/,LICENSE dist/uPlot.iife.min.js dist/uPlot.min.css)))
$(BUILD)/page_parts: FORCE
	@mkdir -p $(@D)
	@cat $(PAGE_PARTS) | sha256sum | cut -c 1-16 > $@.new
	@if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi
$(BUILD)/src/output/live_page.o: $(BUILD)/page_parts
$(BUILD)/src/output/live_page.o: OWN_CFLAGS = -DLIVE_PAGE_SUM='"$(shell cat $(BUILD)/page_parts)"'

# The pages of `ringside help` and of /runbooks, each after a byte 1 and its name.
$(BUILD)/runbook_pages: $(RUNBOOKS) $(SETUP_PAGES)
	@mkdir -p $(@D)
	@for page in $^; do printf '\001%s\n' "$${page##*/}"; cat "$$page"; done > $@
$(BUILD)/src/output/verdict_show.o: $(BUILD)/runbook_pages
$(BUILD)/src/output/verdict_show.o: OWN_CFLAGS = -DRUNBOOK_PAGES='"$(BUILD)/runbook_pages"'

# The style of benchmark pages.
$(BUILD)/src/bench/bench_page.o: src/output/palette.css src/bench/bench_page.css

# The training script of the benchmark.
$(BUILD)/src/bench/training_files.o: src/bench/densenet.py

$(LIBRARY): $(call objects,$(LIBRARY_SOURCES))
$(CLI_LIBRARY): $(call objects,$(CLI_SOURCES))
$(SIM_LIBRARY): $(call objects,$(SIM_SOURCES))
$(BENCH_LIBRARY): $(call objects,$(BENCH_SOURCES))
$(AGENT_LIBRARY): $(call objects,$(AGENT_LIBRARY_SOURCES))
$(TOP_LIBRARY): $(call objects,$(TOP_LIBRARY_SOURCES))
$(FETCH_LIBRARY): $(call objects,$(FETCH_LIBRARY_SOURCES))
$(LIBRARY) $(CLI_LIBRARY) $(SIM_LIBRARY) $(BENCH_LIBRARY) $(AGENT_LIBRARY) $(TOP_LIBRARY) $(FETCH_LIBRARY):
	$(call quiet,AR    )rm -f $@ && $(AR) rcs $@ $^

# nodelete: NCCL unloads the plugin while our threads may still run.
# libpthread.so.0 and libdl.so.2: see src/common/glibc_floor.h.
PLUGIN_LDFLAGS := $(HARDENED_LDFLAGS) -Wl,-z,nodelete -Wl,--gc-sections \
	$(if $(SANITIZE),,-Wl,--no-undefined)
PLUGIN_LIBS := -static-libgcc -Wl,--push-state,--no-as-needed -l:libpthread.so.0 -l:libdl.so.2 \
	-Wl,--pop-state

$(PLUGIN): $(call plugin_objects,$(PLUGIN_SOURCES))
$(TAPE): $(call plugin_objects,$(TAPE_ALL_SOURCES))
$(COUNT): $(call plugin_objects,$(COUNT_ALL_SOURCES))
$(PLUGIN) $(TAPE): src/plugin/exports.map
$(COUNT): src/bench/count_exports.map
# Replaced atomically by mv: a job may be about to load it.
$(PLUGIN) $(TAPE) $(COUNT):
	$(call quiet,LINK  )$(CC) -shared $(ALL_LDFLAGS) $(PLUGIN_LDFLAGS) \
		-Wl,--version-script=$(filter %.map,$^) -Wl,-soname,$(notdir $@) \
		-o $@.new $(filter %.o,$^) $(PLUGIN_LIBS) && mv $@.new $@

# Slurm's programs load it and have the functions that it calls.
ifneq ($(SPANK),)
$(SPANK): $(call plugin_objects,$(SPANK_SOURCES))
	$(call quiet,LINK  )$(CC) -shared $(ALL_LDFLAGS) $(HARDENED_LDFLAGS) -o $@.new $^ && mv $@.new $@
endif

PROGRAM_LDFLAGS := -pie $(HARDENED_LDFLAGS)
# Only the hub looks up SRV records.
PROGRAM_LIBS := -lzstd -lz -lpthread -ldl -lm -Wl,--push-state,--as-needed -lresolv -Wl,--pop-state

# What each program consists of; also linked by dist.mk.
TOOL_PARTS := $(call objects,$(CMDS_SOURCES)) $(AGENT_LIBRARY) $(TOP_LIBRARY) $(FETCH_LIBRARY) $(CLI_LIBRARY) $(LIBRARY)
SIM_PARTS := $(call objects,$(SIM_MAIN_SOURCES)) $(SIM_LIBRARY) $(CLI_LIBRARY) $(LIBRARY)
BENCH_PARTS := $(call objects,$(BENCH_MAIN_SOURCES)) $(BENCH_LIBRARY) $(CLI_LIBRARY) $(LIBRARY)
AGENT_PARTS := $(call objects,$(AGENT_SERVER_SOURCES)) $(AGENT_LIBRARY) $(FETCH_LIBRARY) $(CLI_LIBRARY) $(LIBRARY)
TOP_PARTS := $(call objects,$(TOP_SCREEN_SOURCES)) $(TOP_LIBRARY) $(CLI_LIBRARY) $(LIBRARY)
FETCH_PARTS := $(call objects,$(FETCH_CURL_SOURCES)) $(FETCH_LIBRARY) $(LIBRARY)

# The plugin finds the simulated CUDA driver in the program.
SIM_LDFLAGS := -Wl,--dynamic-list=src/sim/sim_cuda.list

$(TOOL): $(TOOL_PARTS)
$(SIM): $(SIM_PARTS)
$(SIM): OWN_LDFLAGS := $(SIM_LDFLAGS)
$(BENCH): $(BENCH_PARTS)
$(TOOL) $(SIM) $(BENCH):
	$(call quiet,LINK  )$(CC) $(ALL_LDFLAGS) $(PROGRAM_LDFLAGS) $(OWN_LDFLAGS) -o $@ $^ $(PROGRAM_LIBS)

# A separate program, so that the tool runs without libmicrohttpd.
ifneq ($(AGENT),)
AGENT_LIBS := $(shell $(PKG_CONFIG) --libs $(AGENT_PACKAGES))
$(AGENT): $(AGENT_PARTS)
	$(call quiet,LINK  )$(CC) $(ALL_LDFLAGS) $(PROGRAM_LDFLAGS) -o $@ $^ $(AGENT_LIBS) $(PROGRAM_LIBS)
endif

# The same for ncurses.
ifneq ($(TOP),)
TOP_LIBS := $(shell $(PKG_CONFIG) --libs $(TOP_PACKAGES))
$(BUILD)/src/top/top_screen.o: OWN_CFLAGS := $(shell $(PKG_CONFIG) --cflags-only-I $(TOP_PACKAGES))
$(TOP): $(TOP_PARTS)
	$(call quiet,LINK  )$(CC) $(ALL_LDFLAGS) $(PROGRAM_LDFLAGS) -o $@ $^ $(TOP_LIBS) $(PROGRAM_LIBS)
endif

# The same for libcurl.
ifneq ($(FETCH),)
FETCH_LIBS := $(shell $(PKG_CONFIG) --libs $(FETCH_PACKAGES))
$(BUILD)/src/fetch/fetch_main.o: OWN_CFLAGS := $(shell $(PKG_CONFIG) --cflags-only-I $(FETCH_PACKAGES))
$(FETCH): $(FETCH_PARTS)
	$(call quiet,LINK  )$(CC) $(ALL_LDFLAGS) $(PROGRAM_LDFLAGS) -o $@ $^ $(FETCH_LIBS) $(PROGRAM_LIBS)
endif

.PHONY: install install-built
install: all ## install to prefix (default /usr/local), below DESTDIR if given
	@$(MAKE) --no-print-directory install-built

install-built:
	install -d $(DESTDIR)$(bindir) $(DESTDIR)$(libdir) $(DESTDIR)$(docdir)
	install -m 755 $(TOOL) $(SIM) $(BENCH) $(AGENT) $(TOP) $(FETCH) $(DESTDIR)$(bindir)/
	install -m 755 $(PLUGIN) $(TAPE) $(COUNT) $(DESTDIR)$(libdir)/
	install -m 644 $(DOCUMENTS) $(DESTDIR)$(docdir)/
	install -d $(DESTDIR)$(docdir)/runbooks $(DESTDIR)$(docdir)/setup
	install -m 644 $(RUNBOOKS) $(DESTDIR)$(docdir)/runbooks/
	install -m 644 $(SETUP_PAGES) $(DESTDIR)$(docdir)/setup/
	cp -R deploy $(DESTDIR)$(docdir)/
	sed -i 's|file:///usr/share/doc/ringside|file://$(docdir)|' $(DESTDIR)$(docdir)/deploy/prometheus/rules/*.yml
ifneq ($(SPANK),)
	install -d $(DESTDIR)$(slurmdir)
	install -m 755 $(SPANK) $(DESTDIR)$(slurmdir)/
endif
ifneq ($(AGENT),)
	install -d $(DESTDIR)$(unitdir)
	for unit in ringside-agent ringside-hub; do \
		sed 's|@bindir@|$(bindir)|' packaging/systemd/$$unit.service \
			> $(DESTDIR)$(unitdir)/$$unit.service && \
		chmod 644 $(DESTDIR)$(unitdir)/$$unit.service || exit 1; \
	done
endif
	install -d $(DESTDIR)$(bashcompletiondir) $(DESTDIR)$(zshcompletiondir) $(DESTDIR)$(fishcompletiondir)
	$(EMULATOR) $(TOOL) completions bash > $(DESTDIR)$(bashcompletiondir)/ringside
	$(EMULATOR) $(TOOL) completions zsh > $(DESTDIR)$(zshcompletiondir)/_ringside
	$(EMULATOR) $(TOOL) completions fish > $(DESTDIR)$(fishcompletiondir)/ringside.fish
ifneq ($(MAN_PAGES),)
	install -d $(DESTDIR)$(mandir)/man1
	install -m 644 $(MAN_PAGES) $(DESTDIR)$(mandir)/man1/
endif
ifneq ($(EXAMPLES),)
	install -d $(DESTDIR)$(docdir)/examples
	install -m 644 $(EXAMPLES) $(DESTDIR)$(docdir)/examples/
endif

.PHONY: clean
clean: ## remove the build directory
	rm -rf $(BUILD)

# Not those of other builds below this one, as of check.mk. They are made by the compiler: no rule is looked for.
DEPENDENCIES := $(shell find $(BUILD) -mindepth 2 -name flags -printf '-path %h -prune -o ' 2>/dev/null)
DEPENDENCIES := $(shell find $(BUILD) $(DEPENDENCIES) -name '*.d' -print 2>/dev/null)
$(DEPENDENCIES): ;
-include $(DEPENDENCIES)
