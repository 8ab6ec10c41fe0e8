/*
 * A plugin for Slurm (SPANK) that sets up the recorder for the tasks of a step, so that job scripts need no change.
 *
 *	plugstack.conf              optional ringside_spank.so default=off mode=trace dir=/scratch/ringside-%j
 *	srun, sbatch, salloc        --ringside[=on|off|flight|profile|trace|full]
 *
 * slurmstepd calls slurm_spank_user_init() once per node and step, with the rights of the user, before it starts the
 * tasks: what is set there is in the environment of each of them. The script of a batch job is a step, too, so steps
 * inherit what was set for the script.
 *
 * What the user set stays: variables of the environment, and any other profiler plugin. Slurm hands an option of sbatch
 * or salloc to every srun in the job, which cannot tell it from its own; so a variable that the script exports wins over
 * --ringside. To know its own variables again, the plugin leaves a note beside them:
 *
 *	RINGSIDE_SLURM=trace        it has set RINGSIDE_MODE=trace
 *	RINGSIDE_SLURM=off          it has set RINGSIDE_DISABLE=1
 *
 * No error is passed on, because Slurm would fail the step: there is one line in a log, and the job runs on.
 */
#pragma GCC visibility push(default)
#include <slurm/spank.h>
/* What Slurm looks up. It refuses a plugin that was built for another release. */
SPANK_PLUGIN(ringside, 1)
#pragma GCC visibility pop

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PLUGIN_FILE "libnccl-profiler-ringside.so"
#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* The step in which Slurm puts what ssh starts on a node of the job (SLURM_EXTERN_CONT of slurm.h). It has no tasks. */
#define STEP_EXTERN UINT32_C(0xfffffffc)

enum { VALUE_BYTES = 4096 };

static const char *const words[] = { "on", "off", "flight", "profile", "trace", "full" };
#define WORDS_TEXT "on, off, flight, profile, trace or full"

/* What plugstack.conf can set besides the mode, as the recorder's variables. */
static const struct {
	const char *name;
	const char *variable;
} settings[] = {
	{ "dir", "RINGSIDE_DIR" },
	{ "shm", "RINGSIDE_SHM" },
	{ "buffer", "RINGSIDE_BUFFER" },
	{ "quota", "RINGSIDE_QUOTA" },
	{ "events", "RINGSIDE_EVENTS" },
	{ "times", "RINGSIDE_TIMES" },
	{ "labels", "RINGSIDE_LABELS" },
	{ "group", "RINGSIDE_GROUP" },
	{ "heartbeat", "RINGSIDE_HEARTBEAT" },
	{ "hang_after", "RINGSIDE_HANG_AFTER" },
};

struct conf {
	const char *plugin; /* a file name or path */
	const char *mode;   /* NULL: not set */
	bool is_on;
	const char *values[LENGTH(settings)]; /* NULL: not set */
};

/* A word of --ringside; NULL: the option was not used. A process of Slurm has one step. */
static const char *chosen;

/* ---- the option ------------------------------------------------------------------------------- */

static const char *word_find(const char *text)
{
	for (size_t i = 0; i < LENGTH(words); i++)
		if (strcmp(words[i], text) == 0)
			return words[i];
	return NULL;
}

/* The others turn recording on or off. */
static bool is_mode(const char *word)
{
	return strcmp(word, "on") != 0 && strcmp(word, "off") != 0;
}

/* Called where the user types it, and again on each node. */
static int option_take(int value, const char *text, int is_remote)
{
	const char *word = word_find(text == NULL || text[0] == '\0' ? "on" : text);

	(void)value;
	if (word != NULL)
		chosen = word;
	else if (!is_remote)
		slurm_spank_log("ringside: --ringside=%s is not " WORDS_TEXT "; ignored", text);
	return 0;
}

static struct spank_option option = {
	.name = "ringside",
	.arginfo = "MODE",
	.usage = "record NCCL: " WORDS_TEXT,
	.has_arg = 2, /* optional, as in getopt_long() */
	.cb = option_take,
};

int slurm_spank_init(spank_t spank, int argc, char **argv)
{
	spank_err_t failed = spank_option_register(spank, &option);

	(void)argc;
	(void)argv;
	if (failed != ESPANK_SUCCESS)
		slurm_info("ringside: there is no --ringside: %s", spank_strerror(failed));
	return 0;
}

/* ---- plugstack.conf --------------------------------------------------------------------------- */

static bool conf_take(struct conf *conf, const char *argument)
{
	const char *value = strchr(argument, '=');
	size_t length = value != NULL ? (size_t)(value - argument) : 0;

	if (value == NULL || *++value == '\0')
		return false;
	if (length == 7 && strncmp(argument, "default", length) == 0) {
		if (strcmp(value, "on") != 0 && strcmp(value, "off") != 0)
			return false;
		conf->is_on = strcmp(value, "on") == 0;
		return true;
	}
	if (length == 6 && strncmp(argument, "plugin", length) == 0) {
		conf->plugin = value;
		return true;
	}
	if (length == 4 && strncmp(argument, "mode", length) == 0) {
		if (word_find(value) == NULL || !is_mode(value))
			return false;
		conf->mode = value;
		return true;
	}
	for (size_t i = 0; i < LENGTH(settings); i++)
		if (strlen(settings[i].name) == length &&
		    strncmp(argument, settings[i].name, length) == 0) {
			conf->values[i] = value;
			return true;
		}
	return false;
}

static void conf_read(struct conf *conf, int argc, char **argv)
{
	*conf = (struct conf){ .plugin = PLUGIN_FILE, .is_on = true };
	for (int i = 0; i < argc; i++)
		if (!conf_take(conf, argv[i]))
			slurm_info("ringside: '%s' in plugstack.conf is not valid; ignored",
				   argv[i]);
	if (chosen != NULL) {
		conf->is_on = strcmp(chosen, "off") != 0;
		conf->mode = is_mode(chosen) ? chosen : conf->mode;
	}
}

/* ---- the environment of the tasks ------------------------------------------------------------- */

/* False: not set, or empty, which the recorder takes for not set, too. A long value is cut. */
static bool env_get(spank_t spank, const char *name, char *value, size_t size)
{
	spank_err_t got = spank_getenv(spank, name, value, (int)size);

	return (got == ESPANK_SUCCESS || got == ESPANK_NOSPACE) && value[0] != '\0';
}

static bool env_set(spank_t spank, const char *name, const char *value)
{
	spank_err_t failed = spank_setenv(spank, name, value, 1);

	if (failed != ESPANK_SUCCESS)
		slurm_info("ringside: cannot set %s: %s", name, spank_strerror(failed));
	return failed == ESPANK_SUCCESS;
}

/* Is a directory one of those in "a:b:c"? */
static bool is_listed(const char *list, const char *directory, size_t length)
{
	for (; *list != '\0'; list += list[0] == ':') {
		size_t entry = strcspn(list, ":");

		if (entry == length && strncmp(list, directory, length) == 0)
			return true;
		list += entry;
	}
	return false;
}

/* Appended, so that nothing in it hides a library of the job. False: not done, and a line says why. */
static bool add_library_path(spank_t spank, const char *directory, size_t length)
{
	char before[VALUE_BYTES], after[2 * VALUE_BYTES];
	bool has_before = env_get(spank, "LD_LIBRARY_PATH", before, sizeof(before));

	if (has_before && is_listed(before, directory, length))
		return true;
	/* A list that does not fit would be cut. */
	if (length >= VALUE_BYTES || (has_before && strlen(before) + 1 >= sizeof(before))) {
		slurm_info("ringside: not recording: LD_LIBRARY_PATH has no room for %.*s",
			   (int)length, directory);
		return false;
	}
	snprintf(after, sizeof(after), "%s%s%.*s", has_before ? before : "", has_before ? ":" : "",
		 (int)length, directory);
	return env_set(spank, "LD_LIBRARY_PATH", after);
}

/*
 * The value that works with every release of NCCL is the name of the file, with its directory in LD_LIBRARY_PATH:
 * 2.25 passes it to dlopen() as it is, 2.27.3 takes no paths.
 */
static bool set_plugin(spank_t spank, const char *plugin)
{
	const char *slash = strrchr(plugin, '/');

	if (slash != NULL && access(plugin, R_OK) == -1) {
		slurm_info("ringside: not recording: cannot read %s on this node: %m", plugin);
		return false;
	}
	if (slash != NULL && !add_library_path(spank, plugin, (size_t)(slash - plugin)))
		return false;
	return env_set(spank, "NCCL_PROFILER_PLUGIN", slash != NULL ? slash + 1 : plugin);
}

/* Does NCCL_PROFILER_PLUGIN already name this recorder, by the user or by the batch script's own step? */
static bool is_ours(const char *value, const char *plugin)
{
	const char *slash = strrchr(value, '/');
	const char *name = slash != NULL ? slash + 1 : value;
	const char *wanted = strrchr(plugin, '/');

	return strcmp(value, "ringside") == 0 || strcmp(name, PLUGIN_FILE) == 0 ||
	       strcmp(name, wanted != NULL ? wanted + 1 : plugin) == 0;
}

/* For the user who asked for it on the terminal, else for the log of the node; once per step. */
static void report_kept(spank_t spank, const char *effect, const char *name, const char *value)
{
	uint32_t node = 0;

	if (spank_get_item(spank, S_JOB_NODEID, &node) == ESPANK_SUCCESS && node != 0)
		return;
	if (chosen != NULL)
		slurm_spank_log("ringside: %s: %s=%s is set", effect, name, value);
	else
		slurm_info("ringside: %s: %s=%s is set", effect, name, value);
}

struct note {
	char text[32]; /* RINGSIDE_SLURM; "": none */
};

static struct note note_read(spank_t spank)
{
	struct note note;

	if (!env_get(spank, "RINGSIDE_SLURM", note.text, sizeof(note.text)))
		note.text[0] = '\0';
	return note;
}

static void set_mode(spank_t spank, const struct note *note, const char *mode)
{
	char before[VALUE_BYTES];

	if (!env_get(spank, "RINGSIDE_MODE", before, sizeof(before)) ||
	    strcmp(before, note->text) == 0) {
		if (env_set(spank, "RINGSIDE_MODE", mode))
			env_set(spank, "RINGSIDE_SLURM", mode);
	} else if (strcmp(before, mode) != 0) {
		report_kept(spank, "mode not changed", "RINGSIDE_MODE", before);
	}
}

static void turn_on(spank_t spank, const struct conf *conf)
{
	struct note note = note_read(spank);
	char before[VALUE_BYTES];

	if (env_get(spank, "NCCL_PROFILER_PLUGIN", before, sizeof(before))) {
		if (!is_ours(before, conf->plugin)) {
			report_kept(spank, "not recording", "NCCL_PROFILER_PLUGIN", before);
			return;
		}
	} else if (!set_plugin(spank, conf->plugin)) {
		return;
	}
	if (strcmp(note.text, "off") == 0 && chosen != NULL)
		spank_unsetenv(spank, "RINGSIDE_DISABLE");
	else if (env_get(spank, "RINGSIDE_DISABLE", before, sizeof(before)) &&
		 strcmp(before, "0") != 0)
		report_kept(spank, "not recording", "RINGSIDE_DISABLE", before);
	if (conf->mode != NULL)
		set_mode(spank, &note, conf->mode);
	for (size_t i = 0; i < LENGTH(settings); i++)
		if (conf->values[i] != NULL &&
		    !env_get(spank, settings[i].variable, before, sizeof(before)))
			env_set(spank, settings[i].variable, conf->values[i]);
}

/* The recorder may also be in /etc/nccl.conf, so it is not enough not to set it. */
static void turn_off(spank_t spank)
{
	char before[VALUE_BYTES];

	if (!env_get(spank, "RINGSIDE_DISABLE", before, sizeof(before))) {
		if (env_set(spank, "RINGSIDE_DISABLE", "1"))
			env_set(spank, "RINGSIDE_SLURM", "off");
	} else if (strcmp(before, "0") == 0) {
		report_kept(spank, "not turned off", "RINGSIDE_DISABLE", before);
	}
}

int slurm_spank_user_init(spank_t spank, int argc, char **argv)
{
	uint32_t step = 0;
	struct conf conf;

	if (spank_get_item(spank, S_JOB_STEPID, &step) == ESPANK_SUCCESS && step == STEP_EXTERN)
		return 0;
	conf_read(&conf, argc, argv);
	if (conf.is_on)
		turn_on(spank, &conf);
	else if (chosen != NULL)
		turn_off(spank);
	return 0;
}
