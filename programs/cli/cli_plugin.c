#include "programs/cli/cli_plugin.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/attributes.h"
#include "common/text.h"

#if defined(__aarch64__)
#define TRIPLET "aarch64-linux-gnu"
#else
#define TRIPLET "x86_64-linux-gnu"
#endif

/* The directory of this program, with links followed: a link in ~/bin finds its plugin, too. */
static bool own_directory(char *to, size_t size)
{
	ssize_t length = readlink("/proc/self/exe", to, size - 1);
	char *slash;

	if (length <= 0)
		return false;
	to[length] = '\0';
	slash = strrchr(to, '/');
	if (slash == NULL)
		return false;
	*slash = '\0';
	return true;
}

bool cli_plugin_find(char *path, size_t size, char *looked, size_t looked_size)
{
	static const char in_triplet[] = "../lib/" TRIPLET;
	static const char in_triplet_own[] = "../lib/" TRIPLET "/ringside";
	static const char *const places[] = {
		".", "../lib/ringside", "../lib", in_triplet_own, in_triplet, "../lib64",
	};
	char directory[4000], candidate[4096], whole[4096];
	size_t used = 0;

	looked[0] = '\0';
	if (!own_directory(directory, sizeof(directory)))
		return false;
	for (size_t i = 0; i < ARRAY_LENGTH(places); i++) {
		text_format(candidate, sizeof(candidate), "%s/%s", directory, places[i]);
		/* The directory alone: a file that is a link keeps the name that NCCL looks for. */
		if (realpath(candidate, whole) &&
		    text_format(path, size, "%s/%s", whole, CLI_PLUGIN_FILE) &&
		    access(path, R_OK) == 0)
			return true;
		text_format(looked + used, looked_size - used, "%s%s/%s", used ? ", " : "",
			    directory, places[i]);
		used = strlen(looked);
	}
	return false;
}

static bool is_same_file(const char *a, const char *b)
{
	struct stat of_a, of_b;

	return stat(a, &of_a) == 0 && stat(b, &of_b) == 0 && of_a.st_dev == of_b.st_dev &&
	       of_a.st_ino == of_b.st_ino;
}

bool cli_plugin_is_on_path(const char *path)
{
	struct link_map *map = NULL;
	bool is_same = false;
	void *handle;

	handle = dlopen(CLI_PLUGIN_FILE, RTLD_LAZY | RTLD_LOCAL);
	if (handle == NULL)
		return false;
	if (dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map != NULL)
		is_same = is_same_file(path, map->l_name);
	dlclose(handle);
	return is_same;
}

bool cli_plugin_is_hidden(const char *path)
{
	const char *at = getenv("LD_LIBRARY_PATH");
	char candidate[4096];

	while (at && *at != '\0') {
		size_t length = strcspn(at, ":;");

		text_format(candidate, sizeof(candidate), "%.*s/%s", (int)length, at,
			    CLI_PLUGIN_FILE);
		if (access(candidate, R_OK) == 0)
			return !is_same_file(path, candidate);
		at += length + (at[length] != '\0');
	}
	return false;
}
