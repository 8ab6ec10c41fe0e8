# The wheel: the Python package with the plugin and the programs that need glibc alone. agent and fetch need GnuTLS and
# libcurl of the system, which a wheel may not expect.
WHEEL_PROGRAMS := $(call floor_programs,$(TOOL) $(SIM) $(BENCH) $(TOP))

.PHONY: dist-wheel
dist: dist-wheel
dist-wheel: $(PLUGIN) $(WHEEL_PROGRAMS) ## Python wheel (manylinux_2_28)
	@SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct 2>/dev/null || stat -c %Y CHANGELOG.md)} \
		packaging/wheel/build-wheel --version $(VERSION) --out $(BUILD)/dist --maps $(FLOOR) $(PLUGIN) $(WHEEL_PROGRAMS)
