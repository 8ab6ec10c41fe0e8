#include "programs/cli/crossover_recorder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmds/cli_program.h"
#include "common/attributes.h"
#include "common/text.h"

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

static void sweep(const void *context)
{
	const struct crossover_recorder *recorder = context;

	bench_remove_tree(recorder->directory);
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
	(void)bench_keeper_start(&recorder->keeper, sweep, recorder);
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

void crossover_recorder_close(struct crossover_recorder *recorder)
{
	if (!bench_keeper_end(&recorder->keeper))
		sweep(recorder);
	recorder->directory[0] = '\0';
}
