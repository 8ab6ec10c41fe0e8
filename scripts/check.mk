# Testing. A test is a program that prints TAP: tests/test_*.c, or an executable script tests/*.t.

TESTS_C := $(patsubst tests/%.c,$(BUILD)/tests/%,$(wildcard tests/test_*.c))

# Unit tests see the whole of the plugin, but for its exports, as objects.
$(BUILD)/tests/%: $(BUILD)/tests/%.o $(call objects,$(filter src/capture/%,$(PLUGIN_SOURCES))) $(SIM_LIBRARY) $(LIBRARY)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lpthread -ldl -lm

.PHONY: check-unit
check-unit: $(TESTS_C)
	prove -j2 --exec '' $(TESTS_C)
