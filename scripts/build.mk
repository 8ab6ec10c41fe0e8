# Building: rules only, no lists.

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -c $< -o $@

LIBRARY := $(BUILD)/libringside.a
SIM_LIBRARY := $(BUILD)/libsim.a

$(LIBRARY): $(call objects,$(LIBRARY_SOURCES))
	rm -f $@ && ar rcs $@ $^

$(SIM_LIBRARY): $(call objects,$(SIM_SOURCES))
	rm -f $@ && ar rcs $@ $^

# -z nodelete: NCCL unloads the plugin while our thread may still run.
$(PLUGIN): $(call objects,$(PLUGIN_SOURCES)) src/capture/exports.map
	$(CC) -shared $(CFLAGS) $(LDFLAGS) -Wl,-z,nodelete -Wl,-z,now -Wl,-z,relro -Wl,--no-undefined \
		-Wl,--version-script=src/capture/exports.map -Wl,-soname,$(notdir $@) \
		-o $@ $(filter %.o,$^) -lpthread -ldl

$(TOOL): $(call objects,$(CLI_SOURCES)) $(SIM_LIBRARY) $(LIBRARY)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lpthread -ldl -lm

TAPE_RECORDER := $(if $(TAPE_RECORDER_SOURCES),$(BUILD)/libnccl-profiler-tape.so)
ifneq ($(TAPE_RECORDER),)
$(TAPE_RECORDER): $(call objects,$(TAPE_RECORDER_SOURCES)) $(call objects,$(wildcard src/base/*.c src/op/*.c))
	$(CC) -shared $(CFLAGS) $(LDFLAGS) -Wl,-z,nodelete -Wl,-z,now -Wl,--no-undefined \
		-Wl,--version-script=src/capture/exports.map -o $@ $(filter %.o,$^) -lpthread -ldl
endif

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
