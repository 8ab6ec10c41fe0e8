#include "programs/cli/crossover_recorder.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/attributes.h"
#include "base/text.h"
#include "programs/cli/cli_plugin.h"

/* Where the user has his regions, else in memory; /tmp will do where there is no /dev/shm. */
static bool make_directory(char *path, size_t size)
{
	const char *const places[] = { getenv("RINGSIDE_SHM"), "/dev/shm", "/tmp" };

	for (size_t i = 0; i < ARRAY_LENGTH(places); i++) {
		if (places[i] == NULL || places[i][0] != '/')
			continue;
		if (text_format(path, size, "%s/ringside-crossover-XXXXXX", places[i]) &&
		    mkdtemp(path) != NULL)
			return true;
	}
	path[0] = '\0';
	return false;
}

static void set_variables(struct crossover_recorder *recorder)
{
	const struct bench_variable variables[] = {
		{ "NCCL_PROFILER_PLUGIN", recorder->plugin },
		{ "RINGSIDE_MODE", "flight" },
		{ "RINGSIDE_SHM", recorder->directory },
		{ "RINGSIDE_DISABLE", NULL },
		{ NULL, NULL },
	};

	_Static_assert(ARRAY_LENGTH(variables) == CROSSOVER_RECORDER_VARIABLES + 1, "all of them");
	memcpy(recorder->variables, variables, sizeof(variables));
}

void crossover_recorder_open(struct crossover_recorder *recorder)
{
	const char *other = getenv("NCCL_PROFILER_PLUGIN");
	char looked[sizeof(recorder->why) / 2];

	memset(recorder, 0, sizeof(*recorder));
	if (!cli_plugin_find(recorder->plugin, sizeof(recorder->plugin), looked, sizeof(looked))) {
		text_format(recorder->why, sizeof(recorder->why),
			    "the recorder, %s, is not there; looked in %s", CLI_PLUGIN_FILE,
			    looked);
		return;
	}
	if (!make_directory(recorder->directory, sizeof(recorder->directory))) {
		text_format(recorder->why, sizeof(recorder->why),
			    "no directory for the recorder in /dev/shm or /tmp: %s",
			    strerror(errno));
		return;
	}
	recorder->is_in_place_of = other != NULL && other[0] != '\0' &&
				   strcmp(other, "none") != 0 && strstr(other, "ringside") == NULL;
	recorder->is_on = true;
	set_variables(recorder);
}

void crossover_recorder_set(const struct crossover_recorder *recorder)
{
	for (const struct bench_variable *at = recorder->variables; at->name != NULL; at++) {
		if (at->value != NULL)
			setenv(at->name, at->value, 1);
		else
			unsetenv(at->name);
	}
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *where)
{
	(void)st;
	(void)kind;
	(void)where;
	remove(path);
	return 0;
}

void crossover_recorder_close(struct crossover_recorder *recorder)
{
	if (recorder->directory[0] != '\0')
		nftw(recorder->directory, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	recorder->directory[0] = '\0';
}
