/*
 * Is this machine ready? One line per check: ok, note (works, but less than it could) or problem (jobs would not be
 * recorded, or recordings not read), with what to do. Only looks: nothing is changed, and code of others (the plugin,
 * NCCL) is loaded in a child process.
 *
 * With --root a directory tree is checked that is not running, such as an image: only files count then, and nothing of
 * it is loaded.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <link.h>
#include <netdb.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/klog.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cmds/commands.h"
#include "common/attributes.h"
#include "common/child.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/nccl_interface.h"
#include "common/text.h"
#include "output/json.h"
#include "output/sink.h"
#include "output/table.h"

enum check_state { CHECK_OK, CHECK_NOTE, CHECK_PROBLEM };

static const char *const state_names[] = { "ok", "note", "problem" };

enum { PATH_BYTES = 4096, LIBRARIES_MOST = 16, CONF_BYTES = 65536, CONF_VALUE = 1024 };

struct check {
	enum check_state state;
	const char *name;
	char *text;
	char *advice; /* NULL: nothing to do */
};

struct library {
	char path[PATH_BYTES];
	unsigned int version; /* 22809; 0: unknown */
};

struct self_check {
	const char *root;  /* NULL: this machine */
	const char *agent; /* HOST:PORT */
	const char *hub;
	bool is_json;
	struct check *checks;
	size_t count;
	struct library libraries[LIBRARIES_MOST];
	size_t library_count;
};

static char *format_text(const char *format, va_list values)
{
	char *made = NULL;

	if (vasprintf(&made, format, values) == -1)
		cli_no_memory();
	return made;
}

static void tell(struct self_check *self, enum check_state state, const char *name,
		 const char *format, ...) PRINTF_LIKE(4, 5);

static void tell(struct self_check *self, enum check_state state, const char *name,
		 const char *format, ...)
{
	va_list values;

	self->checks = cli_realloc(self->checks, (self->count + 1) * sizeof(*self->checks));
	va_start(values, format);
	self->checks[self->count++] = (struct check){
		.state = state,
		.name = name,
		.text = format_text(format, values),
	};
	va_end(values);
}

/* What to do about the last check. */
static void advise(struct self_check *self, const char *format, ...) PRINTF_LIKE(2, 3);

static void advise(struct self_check *self, const char *format, ...)
{
	struct check *last = &self->checks[self->count - 1];
	va_list values;

	va_start(values, format);
	free(last->advice);
	last->advice = format_text(format, values);
	va_end(values);
}

/* ---- NCCL's settings: environment, ~/.nccl.conf, /etc/nccl.conf ------------------------------- */

/*
 * NCCL sets each NAME=value line of its files in the environment unless the name is there already: first the user's
 * file, then the system's. So the recorder's own variables can be in these files, too.
 */
struct setting {
	char value[CONF_VALUE];
	char from[PATH_BYTES]; /* "environment" or a file; "": not set */
};

/* The value of a name in the text of such a file, up to the end of the line; NULL: none. The first one counts. */
static const char *conf_value(const char *text, const char *name)
{
	size_t length = strlen(name);

	for (const char *at = text; *at != '\0'; at += strcspn(at, "\n"), at += *at == '\n')
		if (strncmp(at, name, length) == 0 && at[length] == '=')
			return at + length + 1;
	return NULL;
}

static bool conf_paths(const struct self_check *self, int number, char path[PATH_BYTES])
{
	const char *file = getenv("NCCL_CONF_FILE"), *home = getenv("HOME");
	const struct passwd *user;

	if (number == 1)
		return text_format(path, PATH_BYTES, "%s/etc/nccl.conf",
				   self->root ? self->root : "");
	if (self->root)
		return false;
	if (file && file[0] != '\0')
		return text_copy(path, PATH_BYTES, file);
	if (home == NULL) {
		user = getpwuid(getuid());
		home = user ? user->pw_dir : NULL;
	}
	return home && text_format(path, PATH_BYTES, "%s/.nccl.conf", home);
}

static bool find_setting(const struct self_check *self, const char *name, struct setting *setting)
{
	static char text[CONF_BYTES];
	const char *value = self->root ? NULL : getenv(name);

	*setting = (struct setting){ .from = "" };
	if (value != NULL) {
		text_copy(setting->value, sizeof(setting->value), value);
		text_copy(setting->from, sizeof(setting->from), "environment");
		return value[0] != '\0';
	}
	for (int number = 0; number < 2; number++) {
		char path[PATH_BYTES];

		if (!conf_paths(self, number, path) || !file_read_text(path, text, sizeof(text)))
			continue;
		value = conf_value(text, name);
		if (value == NULL)
			continue;
		text_format(setting->value, sizeof(setting->value), "%.*s",
			    (int)strcspn(value, "\n"), value);
		text_copy(setting->from, sizeof(setting->from), path);
		return setting->value[0] != '\0';
	}
	return false;
}

static const char *const known_variables[] = {
	"RINGSIDE_MODE",  "RINGSIDE_DIR",	  "RINGSIDE_SHM",	 "RINGSIDE_BUFFER",
	"RINGSIDE_QUOTA", "RINGSIDE_EVENTS",	  "RINGSIDE_TIMES",	 "RINGSIDE_HEARTBEAT",
	"RINGSIDE_JOB",	  "RINGSIDE_LABELS",	  "RINGSIDE_HANG_AFTER", "RINGSIDE_HOSTS",
	"RINGSIDE_GROUP", "RINGSIDE_ENVIRONMENT", "RINGSIDE_DISABLE",	 "NCCL_PROFILER_PLUGIN",
};

/* A line that NCCL accepts but that means nothing: blanks and quotes become part of the name and the value. */
static void check_conf_line(struct self_check *self, const char *path, unsigned int number,
			    const char *line)
{
	char name[64];
	const char *equals = strchr(line, '='), *nearest;

	line += strspn(line, " \t");
	if (line[0] == '#' ||
	    (strncmp(line, "RINGSIDE_", 9) != 0 && strncmp(line, "NCCL_PROFILER_PLUGIN", 20) != 0 &&
	     strncmp(line, "export ", 7) != 0))
		return;
	text_format(name, sizeof(name), "%.*s", (int)strcspn(line, " \t="), line);
	if (equals == NULL || strpbrk(line, " \t\"'") != NULL) {
		tell(self, CHECK_PROBLEM, "nccl.conf",
		     "line %u of %s is not what it looks like: %.80s", number, path, line);
		advise(self,
		       "NCCL wants NAME=value at the start of a line, without 'export', blanks "
		       "and quotes");
		return;
	}
	for (size_t i = 0; i < ARRAY_LENGTH(known_variables); i++)
		if (strcmp(known_variables[i], name) == 0)
			return;
	nearest = cli_nearest(name, known_variables, ARRAY_LENGTH(known_variables));
	tell(self, CHECK_NOTE, "nccl.conf", "line %u of %s: there is no setting %s", number, path,
	     name);
	if (nearest)
		advise(self, "did you mean %s?", nearest);
}

static void check_conf_files(struct self_check *self)
{
	static char text[CONF_BYTES];

	for (int number = 0; number < 2; number++) {
		char path[PATH_BYTES], *at = text, *line;
		unsigned int lines = 0, settings = 0;
		size_t before = self->count;

		if (!conf_paths(self, number, path))
			continue;
		if (!file_read_text(path, text, sizeof(text))) {
			if (errno != ENOENT && errno != 0)
				tell(self, CHECK_NOTE, "nccl.conf", "%s: %s", path,
				     strerror(errno));
			continue;
		}
		while ((line = strsep(&at, "\n")) != NULL) {
			check_conf_line(self, path, ++lines, line);
			settings += strncmp(line, "RINGSIDE_", 9) == 0 ||
				    strncmp(line, "NCCL_PROFILER_PLUGIN=", 21) == 0;
		}
		if (self->count == before)
			tell(self, CHECK_OK, "nccl.conf", "%s has %u %s for the recorder", path,
			     settings, text_which(settings, "setting", "settings"));
	}
}

/* ---- loading the code of others, in a child ---------------------------------------------------- */

enum { PROBE_SECONDS = 10, PROBE_TEXT = 2048 };

struct probe_request {
	const char *const *names; /* tried in order, ends with NULL */
	bool is_nccl;
};

/* In the child: "ok PATH\nNAME\nNUMBER", or "error TEXT". */
static void probe_library(const struct probe_request *request, char text[PROBE_TEXT])
{
	struct link_map *map = NULL;
	int (*get_version)(int *version);
	void *handle = NULL;
	const char *name = "";
	int number = 0;

	text_copy(text, PROBE_TEXT, "error not found");
	for (size_t i = 0; request->names[i] != NULL && handle == NULL; i++) {
		handle = dlopen(request->names[i], RTLD_NOW | RTLD_LOCAL);
		if (handle == NULL)
			text_format(text, PROBE_TEXT, "error %s", dlerror());
	}
	if (handle == NULL)
		return;
	if (request->is_nccl) {
		*(void **)&get_version = dlsym(handle, "ncclGetVersion");
		if (get_version == NULL || get_version(&number) != 0)
			number = 0;
	}
	for (int version = 1; version <= OP_INTERFACES && !request->is_nccl; version++) {
		char symbol[32];
		const char *const *plugin;

		text_format(symbol, sizeof(symbol), "ncclProfiler_v%d", version);
		plugin = dlsym(handle, symbol);
		/* In every version of the interface the struct begins with the plugin's name. */
		if (plugin != NULL) {
			name = *plugin;
			number = version;
		}
	}
	dlinfo(handle, RTLD_DI_LINKMAP, &map);
	text_format(text, PROBE_TEXT, "ok %s\n%.60s\n%d", map ? map->l_name : "", name, number);
}

struct probe {
	bool is_loaded;
	char path[PATH_BYTES];
	char name[64]; /* a plugin's; "": no profiler plugin */
	int number;    /* NCCL's version, or the newest interface of a plugin */
	char why[PROBE_TEXT];
};

static void probe_parse(struct probe *probe, char text[PROBE_TEXT])
{
	char *at = text, *path, *name, *number;
	int64_t value;

	if (strncmp(text, "ok ", 3) != 0) {
		text_copy(probe->why, sizeof(probe->why),
			  strncmp(text, "error ", 6) == 0
				  ? text + 6
				  : "loading it ends the process, or takes longer than 10 s");
		return;
	}
	at += 3;
	path = strsep(&at, "\n");
	name = strsep(&at, "\n");
	number = strsep(&at, "\n");
	probe->is_loaded = true;
	text_copy(probe->path, sizeof(probe->path), path);
	text_copy(probe->name, sizeof(probe->name), name);
	if (number && text_number(number, 0, INT32_MAX, &value) == OK)
		probe->number = (int)value;
}

static int probe_work(const char *input, void *context)
{
	char text[PROBE_TEXT] = "";
	int output = child_keep_output();

	(void)input;
	probe_library(context, text);
	return write(output, text, strlen(text)) == -1;
}

/* Some libraries crash or hang when they are loaded where their hardware is not. */
static struct probe probe_in_child(const struct probe_request *request)
{
	const struct child_task task = { .work = probe_work,
					 .context = (void *)(uintptr_t)request,
					 .timeout_ns = PROBE_SECONDS * SECOND_NS,
					 .limit_bytes = PROBE_TEXT };
	struct probe probe = { .is_loaded = false };
	struct child child = { .pid = 0 };
	char text[PROBE_TEXT] = "";

	child_run(&child, &task);
	if (child.bytes != NULL && child.killed_ns == 0)
		text_copy(text, sizeof(text), child.bytes);
	if (child.bytes == NULL)
		text_copy(probe.why, sizeof(probe.why), child.why);
	else
		probe_parse(&probe, text);
	child_release(&child);
	return probe;
}

/* ---- the plugin -------------------------------------------------------------------------------- */

/*
 * A plugin says its version to NCCL when it starts, and in the files it writes in place of NCCL Inspector: that text is
 * in every release.
 */
static bool plugin_version(const char *path, char *version, size_t size)
{
	static const char before[] = "\"git_rev\":\"ringside-";
	struct stat st;
	char *bytes, *found = NULL;
	int fd = file_open(AT_FDCWD, path, true);

	if (fd == -1)
		return false;
	if (fstat(fd, &st) == 0 && st.st_size < 64 << 20) {
		bytes = cli_realloc(NULL, (size_t)st.st_size + 1);
		bytes[st.st_size] = '\0';
		if (file_pread(fd, bytes, (size_t)st.st_size, 0) == OK)
			found = memmem(bytes, (size_t)st.st_size, before, sizeof(before) - 1);
		if (found) {
			found += sizeof(before) - 1;
			text_format(version, size, "%.*s", (int)strcspn(found, "\""), found);
		}
		free(bytes);
	}
	close(fd);
	return found != NULL;
}

/* In an image. */
static bool find_plugin_below(const char *root, char path[PATH_BYTES])
{
	static const char *const places[] = { "usr/lib/%s",	  "usr/lib64/%s",
					      "usr/lib/*/%s",	  "usr/lib/*/ringside/%s",
					      "usr/local/lib/%s", "usr/local/lib64/%s",
					      "opt/*/lib/%s" };
	bool is_found = false;

	for (size_t i = 0; i < ARRAY_LENGTH(places) && !is_found; i++) {
		char pattern[PATH_BYTES];
		glob_t found;

		text_format(pattern, sizeof(pattern), "%s/%.*s%s", root, (int)strlen(places[i]) - 2,
			    places[i], CLI_PLUGIN_FILE);
		if (glob(pattern, 0, NULL, &found) != 0)
			continue;
		is_found = text_copy(path, PATH_BYTES, found.gl_pathv[0]);
		globfree(&found);
	}
	return is_found;
}

static void check_version(struct self_check *self, const char *path, const char *where)
{
	char version[64] = "";

	if (!plugin_version(path, version, sizeof(version))) {
		tell(self, CHECK_PROBLEM, "plugin",
		     "%s has no version: it is damaged, or another file", path);
		advise(self, "install the plugin again");
	} else if (strcmp(version, RINGSIDE_VERSION) != 0) {
		tell(self, CHECK_NOTE, "plugin", "%s is version %s, this tool " RINGSIDE_VERSION,
		     path, version);
		advise(self,
		       "both directions work; running jobs keep the plugin they started with");
	} else {
		tell(self, CHECK_OK, "plugin", "%s, version %s%s", path, version, where);
	}
}

static void check_plugin(struct self_check *self)
{
	char path[PATH_BYTES], looked[8192], where[64] = "";
	const char *names[] = { path, NULL };
	struct probe probe;

	if (self->root) {
		if (find_plugin_below(self->root, path)) {
			check_version(self, path, "");
		} else {
			tell(self, CHECK_PROBLEM, "plugin", "no " CLI_PLUGIN_FILE " below %s",
			     self->root);
			advise(self, "install the plugin into the image");
		}
		return;
	}
	if (!cli_plugin_find(path, sizeof(path), looked, sizeof(looked))) {
		tell(self, CHECK_PROBLEM, "plugin", "no " CLI_PLUGIN_FILE " in %s", looked);
		advise(self, "install the package nccl-profiler-ringside: apt install "
			     "./nccl-profiler-ringside_*.deb, dnf install "
			     "./nccl-profiler-ringside-*.rpm");
		return;
	}
	probe = probe_in_child(&(struct probe_request){ names, false });
	if (!probe.is_loaded || probe.number == 0) {
		tell(self, CHECK_PROBLEM, "plugin", "%s cannot be loaded: %s", path,
		     probe.is_loaded ? "it is no profiler plugin" : probe.why);
		advise(self, "install the plugin again; it needs glibc 2.28 or later");
		return;
	}
	text_format(where, sizeof(where), "; loads, NCCL's profiler interface 1 to %d",
		    probe.number);
	check_version(self, path, where);
}

/* NCCL passes the value to dlopen(), or the name made of it, depending on its release. */
static struct probe probe_value(const char *value)
{
	char long_name[CONF_VALUE + 32];
	const char *names[] = { long_name, value, NULL };

	text_format(long_name, sizeof(long_name), "libnccl-profiler-%s.so", value);
	if (strchr(value, '/') != NULL)
		names[0] = value;
	return probe_in_child(&(struct probe_request){ names, false });
}

static void check_not_set(struct self_check *self)
{
	static const char *const names[] = { "libnccl-profiler.so", NULL };
	char path[PATH_BYTES], looked[8192];
	struct probe probe = { .is_loaded = false };

	if (self->root == NULL)
		probe = probe_in_child(&(struct probe_request){ names, false });
	if (probe.is_loaded && strcmp(probe.name, "ringside") == 0) {
		tell(self, CHECK_OK, "setting",
		     "NCCL_PROFILER_PLUGIN is not set; NCCL loads Ringside by itself: %s",
		     probe.path);
		return;
	}
	if (probe.is_loaded) {
		tell(self, CHECK_NOTE, "setting",
		     "NCCL_PROFILER_PLUGIN is not set; NCCL loads another plugin by itself: %s",
		     probe.path);
		advise(self, "ringside run, or NCCL_PROFILER_PLUGIN, takes precedence over it");
		return;
	}
	tell(self, CHECK_NOTE, "setting",
	     "NCCL_PROFILER_PLUGIN is not set: only jobs started with 'ringside run' are recorded");
	if (self->root || !cli_plugin_find(path, sizeof(path), looked, sizeof(looked)) ||
	    cli_plugin_is_on_path(path))
		text_copy(path, sizeof(path), CLI_PLUGIN_FILE);
	advise(self, "for every job of this machine: NCCL_PROFILER_PLUGIN=%s in /etc/nccl.conf",
	       path);
}

/* NCCL before 2.26 takes the value as the name of a file, 2.27.3 takes no paths. */
static void check_value_for_releases(struct self_check *self, const struct setting *setting)
{
	for (size_t i = 0; i < self->library_count; i++) {
		unsigned int version = self->libraries[i].version;
		bool is_path = strchr(setting->value, '/') != NULL;

		if (version == 0 || !(version < 22600 ? strcmp(setting->value, "ringside") == 0
						      : version == 22703 && is_path))
			continue;
		tell(self, CHECK_PROBLEM, "setting",
		     "NCCL %u.%u.%u does not find the plugin as '%s'", version / 10000,
		     version / 100 % 100, version % 100, setting->value);
		advise(self, "NCCL_PROFILER_PLUGIN=" CLI_PLUGIN_FILE " works with every release");
	}
}

static void check_setting(struct self_check *self)
{
	struct setting setting, disabled, mode;
	struct probe probe;

	find_setting(self, "RINGSIDE_MODE", &mode);
	if (find_setting(self, "RINGSIDE_DISABLE", &disabled) && strcmp(disabled.value, "0") != 0)
		tell(self, CHECK_NOTE, "setting", "RINGSIDE_DISABLE=%s (%s): nothing is recorded",
		     disabled.value, disabled.from);
	else if (strcmp(mode.value, "off") == 0)
		tell(self, CHECK_NOTE, "setting", "RINGSIDE_MODE=off (%s): nothing is recorded",
		     mode.from);
	if (!find_setting(self, "NCCL_PROFILER_PLUGIN", &setting)) {
		check_not_set(self);
		return;
	}
	if (strcasecmp(setting.value, "none") == 0) {
		tell(self, CHECK_NOTE, "setting",
		     "NCCL_PROFILER_PLUGIN=none (%s): nothing is recorded", setting.from);
		return;
	}
	if (!cli_plugin_is_ours(setting.value)) {
		tell(self, CHECK_NOTE, "setting",
		     "NCCL_PROFILER_PLUGIN=%s (%s) is another plugin, and NCCL loads one only",
		     setting.value, setting.from);
		advise(self, "'ringside run --force' replaces it for one job");
		return;
	}
	check_value_for_releases(self, &setting);
	probe.is_loaded = true;
	if (self->root == NULL)
		probe = probe_value(setting.value);
	if (probe.is_loaded) {
		tell(self, CHECK_OK, "setting", "NCCL_PROFILER_PLUGIN=%s (%s)%s%s", setting.value,
		     setting.from, self->root ? "" : " loads ", self->root ? "" : probe.path);
		return;
	}
	tell(self, CHECK_PROBLEM, "setting",
	     "NCCL_PROFILER_PLUGIN=%s (%s), but the loader does not find it: jobs run unrecorded",
	     setting.value, setting.from);
	advise(self, "put the plugin where the loader looks and run ldconfig, or use its path");
}

/* ---- NCCL -------------------------------------------------------------------------------------- */

static void add_library(struct self_check *self, const char *path)
{
	char whole[PATH_MAX];
	struct library *library;

	if (realpath(path, whole) == NULL || access(whole, R_OK) != 0 ||
	    self->library_count == LIBRARIES_MOST)
		return;
	for (size_t i = 0; i < self->library_count; i++)
		if (strcmp(self->libraries[i].path, whole) == 0)
			return;
	library = &self->libraries[self->library_count++];
	text_copy(library->path, sizeof(library->path), whole);
	library->version = 0;
}

static void add_pattern(struct self_check *self, const char *root, const char *place)
{
	char pattern[PATH_BYTES];
	glob_t found;

	text_format(pattern, sizeof(pattern), "%s%s", root, place);
	if (glob(pattern, 0, NULL, &found) != 0)
		return;
	for (size_t i = 0; i < found.gl_pathc; i++)
		add_library(self, found.gl_pathv[i]);
	globfree(&found);
}

/* LD_LIBRARY_PATH, the loader's cache, the packages of the Python on the PATH. */
static void find_running(struct self_check *self)
{
	static const char code[] =
		"import importlib.util as u\n"
		"for name in ('nvidia.nccl', 'torch'):\n"
		"    try: spec = u.find_spec(name)\n"
		"    except Exception: spec = None\n"
		"    for place in (spec and spec.submodule_search_locations) or []:\n"
		"        print(' => ' + place + '/lib/libnccl.so.2')\n";
	static const char *const python[] = { "python3", "-c", code, NULL };
	static const char *const cache[] = { "/sbin/ldconfig", "-p", NULL };
	const char *const *const commands[] = { cache, python };
	const char *at = getenv("LD_LIBRARY_PATH");
	char path[PATH_BYTES];

	while (at && *at != '\0') {
		size_t length = strcspn(at, ":;");

		if (text_format(path, sizeof(path), "%.*s/libnccl.so.2", (int)length, at))
			add_library(self, path);
		at += length + (at[length] != '\0');
	}
	for (size_t i = 0; i < ARRAY_LENGTH(commands); i++) {
		struct cli_capture got;
		char *rest, *line;

		if (cli_capture(&got, commands[i], -1, PROBE_SECONDS, 1 << 20) == OK) {
			rest = got.bytes;
			while ((line = strsep(&rest, "\n")) != NULL) {
				const char *file = strstr(line, " => ");

				if (file && strstr(line, "libnccl.so.2") != NULL)
					add_library(self, file + 4);
			}
		}
		free(got.bytes);
	}
}

static void find_below(struct self_check *self)
{
	static const char *const places[] = {
		"/usr/lib/libnccl.so.2",
		"/usr/lib/*/libnccl.so.2",
		"/usr/lib64/libnccl.so.2",
		"/usr/local/lib/libnccl.so.2",
		"/usr/local/cuda*/lib64/libnccl.so.2",
		"/opt/*/lib/libnccl.so.2",
		"/usr/lib/python3*/*-packages/nvidia/nccl/lib/libnccl.so.2",
		"/usr/local/lib/python3*/*-packages/nvidia/nccl/lib/libnccl.so.2",
		"/opt/*/lib/python3*/*-packages/nvidia/nccl/lib/libnccl.so.2",
	};

	for (size_t i = 0; i < ARRAY_LENGTH(places); i++)
		add_pattern(self, self->root, places[i]);
}

/* "2.28.9" after the last of the given words. 0: no version there. */
static unsigned int version_after(const char *text, const char *word)
{
	const char *at = text ? strstr(text, word) : NULL;
	unsigned int major, minor, patch;

	if (at == NULL || sscanf(at + strlen(word), "%u.%u.%u", &major, &minor, &patch) != 3 ||
	    major != 2 || minor > 99 || patch > 99)
		return 0;
	return major * 10000 + minor * 100 + patch;
}

/* Without loading it: the name of the file, or of the Python package. */
static unsigned int version_by_name(const char *path)
{
	unsigned int version = version_after(path, "libnccl.so.");
	char pattern[PATH_BYTES], *lib = strstr(path, "/nvidia/nccl/lib/");
	glob_t found;

	if (version != 0 || lib == NULL)
		return version;
	text_format(pattern, sizeof(pattern), "%.*s/nvidia_nccl_cu*-*.dist-info", (int)(lib - path),
		    path);
	if (glob(pattern, 0, NULL, &found) != 0)
		return 0;
	version = version_after(strstr(found.gl_pathv[0], "nvidia_nccl_cu"), "-");
	globfree(&found);
	return version;
}

static void find_version(const struct self_check *self, struct library *library)
{
	const char *names[] = { library->path, NULL };

	if (self->root == NULL)
		library->version =
			(unsigned int)probe_in_child(&(struct probe_request){ names, true }).number;
	if (library->version == 0)
		library->version = version_by_name(library->path);
}

static void tell_library(struct self_check *self, const struct library *library)
{
	enum { FIRST_WITH_LAUNCHES = 5 }; /* of the interface; CUDA events go around launches */
	unsigned int version = library->version;
	unsigned int interface = op_interface_of_release(version);
	const struct kernel_policy *policy = kernel_policy_of(interface);
	size_t spots = 0;

	if (version == 0) {
		tell(self, CHECK_NOTE, "NCCL", "version unknown: %s", library->path);
		return;
	}
	if (policy == NULL) {
		tell(self, CHECK_PROBLEM, "NCCL", "%u.%u.%u has no profiler plugins: %s",
		     version / 10000, version / 100 % 100, version % 100, library->path);
		advise(self, "jobs with it are not recorded; use NCCL 2.23 or later");
		return;
	}
	while (op_blind_spot(interface, spots) != NULL)
		spots++;
	tell(self, CHECK_OK, "NCCL", "%u.%u.%u, interface %u, GPU times %s, %zu blind spots: %s",
	     version / 10000, version / 100 % 100, version % 100, interface,
	     interface >= FIRST_WITH_LAUNCHES		  ? "of a share of the launches"
	     : policy->by_default == KERNEL_EVENTS_ABSENT ? "not available"
							  : "on request (--times kernel)",
	     spots, library->path);
}

static void find_libraries(struct self_check *self)
{
	if (self->root)
		find_below(self);
	else
		find_running(self);
	for (size_t i = 0; i < self->library_count; i++)
		find_version(self, &self->libraries[i]);
}

static void check_libraries(struct self_check *self)
{
	for (size_t i = 0; i < self->library_count; i++)
		tell_library(self, &self->libraries[i]);
	if (self->library_count > 0)
		return;
	tell(self, CHECK_NOTE, "NCCL", "no libnccl.so.2 found");
	advise(self, "fine if jobs bring their own: containers, Python environments, PyTorch that "
		     "contains it");
}

/* ---- places for recordings --------------------------------------------------------------------- */

/* The recorder takes at most a sixteenth of what is free: see docs/SETTINGS.md. */
enum { SHARE = 16 };
#define REGION_FULL_BYTES (UINT64_C(16) << 20)
#define REGION_LEAST_BYTES (UINT64_C(1) << 20)
enum { NODE_PROCESSES = 8 };

static void tell_room(struct self_check *self, const char *path, uint64_t all, uint64_t left)
{
	struct units_text total = units_of_bytes(all), free_text = units_of_bytes(left);

	if (left / SHARE < REGION_LEAST_BYTES) {
		tell(self, CHECK_PROBLEM, "memory",
		     "%s has %s free of %s: too little for recordings", path, free_text.text,
		     total.text);
		advise(self, "make room; in a container: --shm-size=1g or --ipc=host. Without it, "
			     "recordings end with their processes");
	} else if ((left - (NODE_PROCESSES - 1) * REGION_FULL_BYTES) / SHARE < REGION_FULL_BYTES ||
		   left < NODE_PROCESSES * REGION_FULL_BYTES) {
		tell(self, CHECK_NOTE, "memory",
		     "%s has %s free of %s: recordings of 8 processes will be smaller than usual",
		     path, free_text.text, total.text);
		advise(self, "make room; in a container: --shm-size=1g or --ipc=host");
	} else {
		tell(self, CHECK_OK, "memory", "%s has %s free of %s", path, free_text.text,
		     total.text);
	}
}

static void check_memory(struct self_check *self)
{
	enum { TMPFS = 0x01021994 };
	char own[CONF_VALUE + 32];
	struct setting shm;
	struct statfs kind;
	struct statvfs room;
	struct stat st;

	if (!find_setting(self, "RINGSIDE_SHM", &shm))
		text_copy(shm.value, sizeof(shm.value), "/dev/shm");
	text_format(own, sizeof(own), "%s/ringside-%u", shm.value, (unsigned int)geteuid());
	if (statfs(shm.value, &kind) == -1 || statvfs(shm.value, &room) == -1 ||
	    access(shm.value, W_OK | X_OK) == -1) {
		tell(self, CHECK_PROBLEM, "memory", "%s: %s", shm.value, strerror(errno));
		advise(self, "recordings need a tmpfs that every user can write to, mode 1777");
		return;
	}
	if (lstat(own, &st) == 0 && (!S_ISDIR(st.st_mode) || st.st_uid != geteuid())) {
		tell(self, CHECK_PROBLEM, "memory", "%s belongs to somebody else", own);
		advise(self, "remove it");
		return;
	}
	if (kind.f_type != TMPFS) {
		tell(self, CHECK_NOTE, "memory", "%s is not a tmpfs", shm.value);
		advise(self, "a disk can block the job for seconds; use a tmpfs");
	}
	if (room.f_blocks == 0)
		tell(self, CHECK_OK, "memory", "%s has no size limit", shm.value);
	else
		tell_room(self, shm.value, (uint64_t)room.f_blocks * room.f_frsize,
			  (uint64_t)room.f_bavail * room.f_frsize);
}

static void check_traces(struct self_check *self)
{
	struct setting mode, dir;
	char pattern[2 * PATH_BYTES], place[2 * PATH_BYTES], here[PATH_BYTES], size[UNITS_TEXT];
	struct statvfs room;
	int error;

	find_setting(self, "RINGSIDE_MODE", &mode);
	if (strcmp(mode.value, "trace") != 0 && strcmp(mode.value, "full") != 0)
		return;
	if (!find_setting(self, "RINGSIDE_DIR", &dir))
		text_copy(dir.value, sizeof(dir.value), "ringside-%j");
	if (dir.value[0] == '/')
		text_copy(pattern, sizeof(pattern), dir.value);
	else
		text_format(pattern, sizeof(pattern), "%s/%s",
			    getcwd(here, sizeof(here)) ? here : "", dir.value);
	error = cli_traces_find(pattern, place, sizeof(place));
	if (error != 0) {
		tell(self, CHECK_PROBLEM, "traces", "mode %s (%s), but %s: %s", mode.value,
		     mode.from, place, strerror(error));
		advise(self, "set RINGSIDE_DIR to a directory that the job's user can write to");
	} else if (statvfs(place, &room) == 0) {
		tell(self, CHECK_OK, "traces", "mode %s (%s) writes to %s; %s free", mode.value,
		     mode.from, dir.value,
		     units_bytes(size, (uint64_t)room.f_bavail * room.f_frsize));
	}
}

/* ---- the rest of the machine ------------------------------------------------------------------- */

static void check_permissions(struct self_check *self)
{
	/* Capabilities 1 and 2 read every file, 19 reads regions that have no file. */
	enum { READ_FILES = 1 << 1 | 1 << 2, TRACE = 1 << 19 };
	char text[4096] = "";
	const char *line;
	uint64_t held = 0;

	if (file_read_text("/proc/self/status", text, sizeof(text))) {
		line = strstr(text, "CapEff:");
		held = line ? strtoull(line + strlen("CapEff:"), NULL, 16) : 0;
	}
	if (held & READ_FILES && held & TRACE) {
		tell(self, CHECK_OK, "permissions", "can read the recordings of all users");
		return;
	}
	tell(self, CHECK_NOTE, "permissions", "uid %u can read its own recordings only",
	     (unsigned int)geteuid());
	advise(self,
	       "the agent reads all if it is started as root; RINGSIDE_GROUP lets a group read");
}

enum { ANSWER_SECONDS = 5 };

/* Sends a request and returns what came back, "" if nothing; false: no connection. */
static bool http_get(const char *address, const char *path, char *answer, size_t size)
{
	const struct timeval patience = { .tv_sec = ANSWER_SECONDS };
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found = NULL;
	char host[256], request[512];
	const char *colon = strrchr(address, ':');
	size_t used = 0;
	ssize_t got;
	int fd = -1;

	answer[0] = '\0';
	errno = EINVAL;
	if (colon == NULL)
		return false;
	text_format(host, sizeof(host), "%.*s", (int)(colon - address), address);
	if (host[0] == '[') {
		host[strcspn(host, "]")] = '\0';
		memmove(host, host + 1, strlen(host));
	}
	if (getaddrinfo(host, colon + 1, &hints, &found) != 0) {
		errno = EADDRNOTAVAIL;
		return false;
	}
	fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (fd == -1 || connect(fd, found->ai_addr, found->ai_addrlen) == -1) {
		freeaddrinfo(found);
		if (fd != -1)
			close(fd);
		return false;
	}
	freeaddrinfo(found);
	text_format(request, sizeof(request), "GET %s HTTP/1.0\r\nHost: %s\r\n\r\n", path, address);
	if (send(fd, request, strlen(request), MSG_NOSIGNAL) != -1)
		while (used < size - 1 && (got = recv(fd, answer + used, size - 1 - used, 0)) > 0)
			used += (size_t)got;
	answer[used] = '\0';
	close(fd);
	return true;
}

/* "http://node1:9750/" is "node1:9750". */
static void bare_address(const char *given, char *address, size_t size)
{
	const char *start = strncmp(given, "http://", 7) == 0 ? given + 7 : given;

	text_format(address, size, "%.*s", (int)strcspn(start, "/"), start);
}

static void check_server(struct self_check *self, const char *name, const char *given,
			 const char *how_to_start)
{
	char address[256], answer[4096], version[32] = "?";
	const char *found;

	bare_address(given, address, sizeof(address));
	if (!http_get(address, "/healthz", answer, sizeof(answer))) {
		tell(self, CHECK_NOTE, name, "nothing answers on %s: %s", address, strerror(errno));
		advise(self, "%s", how_to_start);
		return;
	}
	if (answer[0] == '\0') {
		tell(self, CHECK_NOTE, name,
		     "%s accepts connections, but gave no answer (waited up to %d s)", address,
		     ANSWER_SECONDS);
		advise(self, "it is very busy, or it wants TLS");
		return;
	}
	found = strstr(answer, "\"version\":\"");
	if (found == NULL) {
		tell(self, CHECK_NOTE, name, "%s answers, but not as expected%s", address,
		     strncmp(answer, "HTTP/1.", 7) != 0 ? ": TLS, or something else"
		     : strstr(answer, " 401 ")		? ": it wants a password"
							: "");
		return;
	}
	found += strlen("\"version\":\"");
	text_format(version, sizeof(version), "%.*s", (int)strcspn(found, "\""), found);
	if (strcmp(version, RINGSIDE_VERSION) == 0)
		tell(self, CHECK_OK, name, "%s answers, version %s", address, version);
	else
		tell(self, CHECK_NOTE, name,
		     "%s answers, version %s; this tool is " RINGSIDE_VERSION, address, version);
}

static void check_clock(struct self_check *self)
{
	struct timex state = { .modes = 0 };
	char source[64] = "unknown";
	int code = adjtimex(&state);

	file_read_text("/sys/devices/system/clocksource/clocksource0/current_clocksource", source,
		       sizeof(source));
	source[strcspn(source, "\n")] = '\0';
	if (code == -1 || state.status & STA_UNSYNC) {
		tell(self, CHECK_NOTE, "clock", "source %s, not synchronized", source);
		advise(self, "start chrony or systemd-timesyncd: dates of different hosts may not "
			     "match, durations and verdicts do");
	} else {
		tell(self, CHECK_OK, "clock", "source %s, synchronized", source);
	}
}

static void check_kernel_log(struct self_check *self)
{
	int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	if (fd != -1 || klogctl(10, NULL, 0) > 0) {
		tell(self, CHECK_OK, "kernel log", "readable: bundles have GPU errors (Xid)");
	} else {
		tell(self, CHECK_NOTE, "kernel log",
		     "not readable: bundles have no GPU errors (Xid)");
		advise(self, "make bundles as root");
	}
	if (fd != -1)
		close(fd);
}

static void check_container(struct self_check *self)
{
	static const struct {
		const char *path, *variable, *name;
	} signs[] = {
		{ NULL, "KUBERNETES_SERVICE_HOST", "Kubernetes" },
		{ NULL, "APPTAINER_CONTAINER", "Apptainer" },
		{ NULL, "SINGULARITY_CONTAINER", "Singularity" },
		{ "/.dockerenv", NULL, "Docker" },
		{ "/run/.containerenv", NULL, "Podman" },
		{ "/run/systemd/container", "container", "container" },
	};
	const char *name = NULL;

	for (size_t i = 0; i < ARRAY_LENGTH(signs) && name == NULL; i++)
		if ((signs[i].path && access(signs[i].path, F_OK) == 0) ||
		    (signs[i].variable && getenv(signs[i].variable)))
			name = signs[i].name;
	if (name == NULL)
		return;
	tell(self, CHECK_NOTE, "container", "this is a container (%s)", name);
	advise(self, "an agent outside sees jobs in here if they share its /dev/shm (--ipc=host)");
}

/* ---- output ------------------------------------------------------------------------------------ */

static size_t count_state(const struct self_check *self, enum check_state state)
{
	size_t count = 0;

	for (size_t i = 0; i < self->count; i++)
		count += self->checks[i].state == state;
	return count;
}

static void write_text(const struct self_check *self, struct sink *sink, unsigned int width)
{
	enum { INDENT = 22 };
	size_t problems = count_state(self, CHECK_PROBLEM), notes = count_state(self, CHECK_NOTE);
	struct utsname machine;
	char head[64];

	sink_format(sink, "ringside " RINGSIDE_VERSION " on %s: ",
		    self->root		   ? self->root
		    : uname(&machine) == 0 ? machine.nodename
					   : "this machine");
	if (problems > 0)
		sink_format(sink, "%zu %s", problems, text_which(problems, "problem", "problems"));
	else
		sink_text(sink, "ready");
	if (notes > 0)
		sink_format(sink, ", %zu %s", notes, text_which(notes, "note", "notes"));
	sink_text(sink, "\n\n");
	for (size_t i = 0; i < self->count; i++) {
		const struct check *check = &self->checks[i];

		text_format(head, sizeof(head), "%-8s %-12s ", state_names[check->state],
			    check->name);
		table_wrap(sink, check->text, head, INDENT, width);
		if (check->advice) {
			text_format(head, sizeof(head), "%*s", INDENT, "-> ");
			table_wrap(sink, check->advice, head, INDENT, width);
		}
	}
}

static void write_json(const struct self_check *self, struct sink *sink)
{
	struct json json;

	json_begin(&json, sink);
	json_put_string(&json, "version", RINGSIDE_VERSION);
	json_put_bool(&json, "is_ready", count_state(self, CHECK_PROBLEM) == 0);
	json_put_array(&json, "checks");
	for (size_t i = 0; i < self->count; i++) {
		json_object(&json);
		json_put_string(&json, "name", self->checks[i].name);
		json_put_string(&json, "state", state_names[self->checks[i].state]);
		json_put_string(&json, "text", self->checks[i].text);
		json_put_string(&json, "advice", self->checks[i].advice);
		json_end(&json);
	}
	json_end(&json);
	json_put_array(&json, "nccl");
	for (size_t i = 0; i < self->library_count; i++) {
		const struct library *library = &self->libraries[i];
		char version[32];

		text_format(version, sizeof(version), "%u.%u.%u", library->version / 10000,
			    library->version / 100 % 100, library->version % 100);
		json_object(&json);
		json_put_string(&json, "path", library->path);
		json_put_string(&json, "version", library->version ? version : NULL);
		json_put_unsigned(&json, "interface", op_interface_of_release(library->version));
		json_end(&json);
	}
	json_end(&json);
	json_finish(&json);
}

static const struct cli_option options[] = {
	CLI_OPTION_JSON(struct self_check),
	{ 0, "agent", "ADDR", "the agent's address (default 127.0.0.1:9749)",
	  CLI_TEXT(struct self_check, agent) },
	{ 0, "hub", "ADDR", "also check that this hub answers", CLI_TEXT(struct self_check, hub) },
	{ 0, "root", "DIR",
	  "check an image or another tree below DIR: only its files, nothing is loaded or asked",
	  CLI_TEXT(struct self_check, root) },
	CLI_OPTIONS_SHOWING,
	CLI_OPTION_END,
};

static const struct cli_example examples[] = {
	{ "ringside self-check", "before the first job, and after an upgrade" },
	{ "ringside self-check --json | jq .is_ready", "for the health check of a node" },
	{ "ringside self-check --root /mnt/image", "is the plugin in this image, and configured?" },
	{ NULL, NULL },
};

static const struct cli_page page = {
	.name = "self-check",
	.operands = "",
	.about = "Checks whether jobs on this machine will be recorded and can be looked at: the "
		 "plugin and the loader, NCCL's configuration files and who wins, the NCCL "
		 "libraries found, memory for recordings, permissions, agent, clock. Each line is "
		 "ok, note or problem, with what to do. Nothing is changed.\n"
		 "The exit code is 1 if there is a problem, and 0 otherwise.\n",
	.options = options,
	.examples = examples,
};

static void run_checks(struct self_check *self)
{
	find_libraries(self);
	check_plugin(self);
	check_setting(self);
	check_conf_files(self);
	check_libraries(self);
	if (self->root)
		return;
	check_memory(self);
	check_traces(self);
	check_permissions(self);
	check_server(self, "agent", self->agent,
		     "jobs are recorded without it; for metrics and alerts: systemctl enable --now "
		     "ringside-agent");
	if (self->hub)
		check_server(self, "hub", self->hub, "start it there: ringside hub");
	check_clock(self);
	check_kernel_log(self);
	check_container(self);
}

int cmd_self_check(int argc, char **argv)
{
	static struct self_check self; /* too large for the stack */
	struct sink sink;
	int code;

	self.agent = "127.0.0.1:9749";
	code = cli_parse(&page, &self, argc, argv);
	if (code != CLI_GO_ON)
		return code;
	if (self.root && access(self.root, R_OK | X_OK) != 0)
		return cli_error("cannot read '%s': %s", self.root, strerror(errno));
	run_checks(&self);
	cli_begin(&sink, self.is_json);
	if (self.is_json)
		write_json(&self, &sink);
	else
		write_text(&self, &sink, cli_width());
	code = count_state(&self, CHECK_PROBLEM) > 0 ? CLI_EXIT_TROUBLE : CLI_EXIT_DONE;
	for (size_t i = 0; i < self.count; i++) {
		free(self.checks[i].text);
		free(self.checks[i].advice);
	}
	free(self.checks);
	return cli_finish(&sink, code);
}
