#include "programs/cli/profilers_variant.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmds/cli_program.h"
#include "common/attributes.h"
#include "common/file.h"
#include "common/text.h"

/* What a plugin can be told, the first is taken where nothing is said. */
static const struct {
	enum profilers_kind kind;
	const char *names[4];
} settings[] = {
	{ PROFILERS_RINGSIDE, { "trace", "flight", "full", NULL } },
	{ PROFILERS_INSPECTOR, { "best", "readme", "default", NULL } },
	{ PROFILERS_COMMA, { "best", "default", NULL } },
};

static const char *setting_find(enum profilers_kind kind, const char *name)
{
	for (size_t i = 0; i < ARRAY_LENGTH(settings); i++)
		for (size_t j = 0; settings[i].kind == kind && settings[i].names[j]; j++)
			if (name[0] == '\0' || strcmp(settings[i].names[j], name) == 0)
				return settings[i].names[j];
	return name[0] == '\0' ? "" : NULL;
}

static bool setting_is_standard(const struct profilers_variant *variant)
{
	return strcmp(variant->setting, setting_find(variant->kind, "")) == 0;
}

/* ---- which kind ------------------------------------------------------------------------------ */

/* Words that only this one's library has inside. Ringside's speaks of Inspector, too: it comes first. */
static const struct {
	const char *word;
	enum profilers_kind kind;
} marks[] = {
	{ "RINGSIDE_DISABLE", PROFILERS_RINGSIDE },
	{ "NCCL_INSPECTOR_DUMP_DIR", PROFILERS_INSPECTOR },
	{ "NCCL_TELEMETRY_MODE", PROFILERS_COMMA },
	{ "ncclsee", PROFILERS_NCCLSEE },
};

static enum profilers_kind kind_guess(const void *bytes, size_t length)
{
	for (size_t i = 0; i < ARRAY_LENGTH(marks); i++)
		if (memmem(bytes, length, marks[i].word, strlen(marks[i].word)))
			return marks[i].kind;
	return PROFILERS_UNKNOWN;
}

/* Is it a plugin at all, and whose? */
static int look_into(struct profilers_variant *variant, char *problem, size_t size)
{
	int fd = file_open(AT_FDCWD, variant->path, true);
	struct stat st = { .st_size = 0 };
	bool is_plugin = false;
	void *bytes;

	if (fd == -1 || fstat(fd, &st) == -1) {
		text_format(problem, size, "cannot read the plugin '%s': %s", variant->path,
			    strerror(errno));
		if (fd != -1)
			close(fd);
		return -1;
	}
	bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (bytes != MAP_FAILED) {
		is_plugin = memmem(bytes, (size_t)st.st_size, "ncclProfiler_v", 14) != NULL;
		if (variant->kind == PROFILERS_KINDS)
			variant->kind = kind_guess(bytes, (size_t)st.st_size);
		munmap(bytes, (size_t)st.st_size);
	}
	if (is_plugin)
		return 0;
	text_format(problem, size,
		    "'%s' is no profiler plugin: it has none of ncclProfiler_v1 to ncclProfiler_v7",
		    variant->path);
	return -1;
}

/* ---- the word on the command line ------------------------------------------------------------ */

/* Behind the last '=', when that is a kind: file names may have one, too. */
static int split_kind(struct profilers_variant *variant, char *text, char **setting, char *problem,
		      size_t size)
{
	char *equals = strrchr(text, '='), *colon;

	variant->kind = PROFILERS_KINDS;
	*setting = "";
	if (equals == NULL || strchr(equals, '/'))
		return 0;
	*equals++ = '\0';
	colon = strchr(equals, ':');
	if (colon) {
		*colon = '\0';
		*setting = colon + 1;
	}
	variant->kind =
		strcmp(equals, "other") == 0 ? PROFILERS_UNKNOWN : profilers_kind_find(equals);
	if (variant->kind != PROFILERS_KINDS && variant->kind != PROFILERS_NONE)
		return 0;
	text_format(problem, size,
		    "'%s' is no kind of plugin: ringside, inspector, comma, ncclsee or other",
		    equals);
	return -1;
}

static int find_own(struct profilers_variant *variant, char *problem, size_t size)
{
	char looked[VARIANT_PATH_BYTES];

	variant->kind = PROFILERS_RINGSIDE;
	if (cli_plugin_find(variant->path, sizeof(variant->path), looked, sizeof(looked)))
		return 0;
	text_format(problem, size, "%s is in none of: %s", CLI_PLUGIN_FILE, looked);
	return -1;
}

static int find_file(struct profilers_variant *variant, const char *file, char *problem,
		     size_t size)
{
	char whole[PATH_MAX];

	if (realpath(file, whole) == NULL) {
		text_format(problem, size, "cannot read the plugin '%s': %s", file,
			    strerror(errno));
		return -1;
	}
	text_copy(variant->path, sizeof(variant->path), whole);
	return look_into(variant, problem, size);
}

/* "inspector", "inspector:readme"; what follows the colon only where it is not the standard. */
static void label_set(struct profilers_variant *variant, const char *name, size_t length)
{
	bool is_standard = setting_is_standard(variant);

	text_format(variant->label, sizeof(variant->label), "%.*s%s%s", (int)length, name,
		    is_standard ? "" : ":", is_standard ? "" : variant->setting);
}

void profilers_variant_name_by_file(struct profilers_variant *variant)
{
	static const char *const beginnings[] = { "lib", "nccl-profiler-" };
	const char *slash = strrchr(variant->path, '/');
	const char *name = slash ? slash + 1 : variant->path;
	size_t length;

	for (size_t i = 0; i < ARRAY_LENGTH(beginnings); i++) {
		length = strlen(beginnings[i]);
		if (strncmp(name, beginnings[i], length) == 0 && name[length] != '\0')
			name += length;
	}
	length = strlen(name);
	if (length > 3 && strcmp(name + length - 3, ".so") == 0)
		length -= 3;
	label_set(variant, name, length);
}

static void label_make(struct profilers_variant *variant)
{
	const char *kind = profilers_kind_name(variant->kind);

	if (variant->kind == PROFILERS_UNKNOWN)
		profilers_variant_name_by_file(variant);
	else
		label_set(variant, kind, strlen(kind));
}

int profilers_variant_take(struct profilers_variant *variant, const char *text, char *problem,
			   size_t problem_size)
{
	char word[VARIANT_PATH_BYTES], *setting = "";
	int failed;

	memset(variant, 0, sizeof(*variant));
	if (!text_copy(word, sizeof(word), text)) {
		text_format(problem, problem_size, "the plugin's path is too long");
		return -1;
	}
	if (strcmp(word, "ringside") == 0 || strncmp(word, "ringside:", 9) == 0) {
		setting = word[8] == ':' ? word + 9 : "";
		failed = find_own(variant, problem, problem_size);
	} else {
		failed = split_kind(variant, word, &setting, problem, problem_size) ||
			 find_file(variant, word, problem, problem_size);
	}
	if (failed)
		return -1;
	variant->setting = setting_find(variant->kind, setting);
	if (variant->setting == NULL) {
		text_format(problem, problem_size, "%s has no setting '%s'",
			    profilers_kind_name(variant->kind), setting);
		return -1;
	}
	label_make(variant);
	return 0;
}

void profilers_variant_none(struct profilers_variant *variant)
{
	memset(variant, 0, sizeof(*variant));
	variant->kind = PROFILERS_NONE;
	variant->setting = "";
	text_copy(variant->label, sizeof(variant->label), "none");
}
