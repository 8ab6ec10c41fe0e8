# The OCI image of agent, hub, tool and plugin: see packaging/image/build and docs/CONTAINERS.md.

.PHONY: dist-image
dist-image: all ## OCI image of agent, hub and plugin (needs buildah): $(BUILD)/ringside-agent-VERSION.oci.tar
	BUILD=$(BUILD) packaging/image/build $(VERSION) $(BUILD)/ringside-agent-$(VERSION).oci.tar
