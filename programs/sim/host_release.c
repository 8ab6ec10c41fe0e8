/*
 * What is known about NCCL's releases: which interface version they ask for first, how they turn
 * NCCL_PROFILER_PLUGIN into file names, which mistakes they make.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "common/attributes.h"
#include "common/text.h"
#include "programs/sim/host.h"

int host_release_native(int release)
{
	static const int since[] = { 22300, 22400, 22600, 22700, 22800, 22900, 23100 };
	int version = 0;

	for (size_t i = 0; i < ARRAY_LENGTH(since); i++)
		if (release >= since[i])
			version = (int)i + 1;
	return version;
}

/* The last patch of each minor release, as NVIDIA published them. */
static int release_of_minor(int minor)
{
	static const int releases[] = {
		HOST_NCCL_2_23, HOST_NCCL_2_24, HOST_NCCL_2_25, HOST_NCCL_2_26, HOST_NCCL_2_27,
		HOST_NCCL_2_28, HOST_NCCL_2_29, HOST_NCCL_2_30, HOST_NCCL_2_31,
	};

	return minor >= 23 && minor <= 31 ? releases[minor - 23] : 0;
}

static int release_of_version(int version)
{
	static const int minors[] = { 23, 24, 26, 27, 28, 30, 31 };

	return version >= 1 && version <= 7 ? release_of_minor(minors[version - 1]) : 0;
}

enum status host_release_parse(const char *text, int *release)
{
	int major, minor, patch, version, found = 0;
	char end;

	if (sscanf(text, "v%d%c", &version, &end) == 1)
		found = release_of_version(version);
	else if (sscanf(text, "%d.%d.%d%c", &major, &minor, &patch, &end) == 3)
		found = major == 2 && release_of_minor(minor) && patch >= 0 && patch < 100
				? 20000 + minor * 100 + patch
				: 0;
	else if (sscanf(text, "%d.%d%c", &major, &minor, &end) == 2)
		found = major == 2 ? release_of_minor(minor) : 0;
	else if (sscanf(text, "%d%c", &version, &end) == 1)
		found = release_of_minor(version / 100 % 100) && version / 10000 == 2 ? version : 0;
	else
		return ERR_FORMAT;
	if (found == 0)
		return ERR_UNKNOWN;
	*release = found;
	return OK;
}

unsigned int host_quirks_of(int release)
{
	unsigned int quirks = 0;

	if (release >= 22602 && release < 23100)
		quirks |= HOST_QUIRK_LOST_START | HOST_QUIRK_STAMP_OVERRUN;
	if (release >= 22703 && release < 23100)
		quirks |= HOST_QUIRK_STAMP_ZERO | HOST_QUIRK_STAMP_REVERSED;
	if (release >= 22403 && release < 22700)
		quirks |= HOST_QUIRK_STEP_STOP_LOST;
	if (release < 22600)
		quirks |= HOST_QUIRK_STOP_NULL;
	return quirks | HOST_QUIRK_FLOOD_PEER_WAIT | HOST_QUIRK_FLOOD_STEP_START |
	       HOST_QUIRK_CHANNELS_MISSING | HOST_QUIRK_NO_COLL;
}

static bool is_library_name(const char *value)
{
	size_t length = strlen(value);

	return length >= 6 && strncmp(value, "lib", 3) == 0 &&
	       strcmp(value + length - 3, ".so") == 0;
}

/* Since 2.26 NCCL keeps names in 255 bytes. */
static void name_put(int release, char *name, const char *prefix, const char *value,
		     const char *suffix)
{
	size_t size = release >= 22600 ? 255 : HOST_NAME_SIZE;

	(void)text_format(name, size, "%s%s%s", prefix, value, suffix);
}

size_t host_plugin_names(int release, const char *value, char names[HOST_NAMES][HOST_NAME_SIZE])
{
	bool is_library, has_prefix_form;
	size_t count = 0;

	if (value == NULL || value[0] == '\0') {
		name_put(release, names[0], "libnccl-profiler", "", ".so");
		return 1;
	}
	if (release >= 22800 && strcasecmp(value, "none") == 0)
		return 0;
	if (strncasecmp(value, "STATIC_PLUGIN", strlen(value)) == 0) {
		names[0][0] = '\0';
		return 1;
	}
	is_library = is_library_name(value);
	if (release < 22700)
		has_prefix_form = release >= 22600;
	else
		has_prefix_form = !is_library && (release < 22705 || strchr(value, '/') == NULL);
	/* 2.27.3 and 2.27.4 took nothing as it is but lib*.so: paths failed. */
	if (release < 22700 || release >= 22705 || is_library)
		name_put(release, names[count++], "", value, "");
	if (has_prefix_form)
		name_put(release, names[count++], "libnccl-profiler-", value, ".so");
	return count;
}
