/*
 * Runs commands of ringside as a user would, each in a child process whose current directory is a scratch directory,
 * and collects what they print. A test of a command begins with command_begin(), runs command lines, and compares the
 * collected text with a file that was reviewed:
 *
 *	command_begin();
 *	command_make("traces");
 *	command("ls traces");
 *	command("ls --json traces");
 *	EXPECT_THAT("every form of ls", command_expected("tests/unit/cmds/expected/ls"));
 *
 * Nothing of the caller's environment is visible to a command. Each is written as
 *
 *	=== ringside ls traces
 *	(its output)
 *	stderr: (a line of its standard error)
 *	exit 0
 */
#ifndef COMMAND_PLAY_H
#define COMMAND_PLAY_H

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/attributes.h"
#include "common/text.h"
#include "format/region_read.h"
#include "output/sink.h"
#include "tests/support/command_samples.h"
#include "tests/support/expected_output.h"
#include "tests/support/scratch.h"

/* main() of src/cmds/main.c and of src/sim/sim_main.c: see scripts/check.mk. */
int cmds_main(int argc, char **argv);
int sim_main(int argc, char **argv);

static struct {
	struct sink text;
	int (*program)(int argc, char **argv); /* that commands run */
	const char *input;		       /* standard input, a path; NULL: empty */
	size_t most_json; /* lines of JSON that are kept of an output; the others are counted. 0: all */
	char *out, *err; /* of the last command; the next one frees them */
	int code;
	char root[4096]; /* where the test was started */
} command_play;

static inline const char *command_path(const char *name)
{
	static char paths[4][512];
	static unsigned int turn;
	char *path = paths[turn++ % 4];

	snprintf(path, sizeof(paths[0]), "%s/%s", scratch_dir.path, name);
	return path;
}

/* Sanitizers and scripts/mutants have settings of their own in the environment. */
static inline void command_clear_environment(void)
{
	static const char *const kept[] = { "PATH",	    "ASAN_OPTIONS", "UBSAN_OPTIONS",
					    "TSAN_OPTIONS", "MUTANT",	    "MUTANTS_SEEN",
					    "REWRITE" };
	char *values[ARRAY_LENGTH(kept)];

	for (size_t i = 0; i < ARRAY_LENGTH(kept); i++)
		values[i] = getenv(kept[i]) ? strdup(getenv(kept[i])) : NULL;
	clearenv();
	for (size_t i = 0; i < ARRAY_LENGTH(kept); i++) {
		if (values[i])
			setenv(kept[i], values[i], 1);
		free(values[i]);
	}
	setenv("TZ", "UTC", 1);
	setenv("LC_ALL", "C", 1);
	setenv("HOME", scratch_dir.path, 1);
	setenv("TMPDIR", scratch_dir.path, 1);
	setenv("RINGSIDE_SHM", command_path("shm"), 1);
}

static inline void command_begin(void)
{
	scratch_make();
	if (getcwd(command_play.root, sizeof(command_play.root)) == NULL)
		abort();
	command_clear_environment();
	sink_init_memory(&command_play.text);
	command_play.program = cmds_main;
	umask(022);
}

/* ---- files ----------------------------------------------------------------------------------- */

static inline void command_directory(const char *name)
{
	if (mkdir(command_path(name), 0755) != 0)
		abort();
}

/* A file of the scratch directory. */
static inline void command_write(const char *name, const void *bytes, size_t length)
{
	int fd = open(command_path(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (fd == -1 || write(fd, bytes, length) != (ssize_t)length)
		abort();
	close(fd);
}

static inline void command_write_text(const char *name, const char *text)
{
	command_write(name, text, strlen(text));
}

/* A whole file, terminated; the caller frees it. */
static inline char *command_read(const char *path, size_t *length)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	char *bytes;

	*length = 0;
	if (fd == -1 || fstat(fd, &st) == -1 || (bytes = malloc((size_t)st.st_size + 1)) == NULL)
		return NULL;
	while (*length < (size_t)st.st_size) {
		ssize_t got = read(fd, bytes + *length, (size_t)st.st_size - *length);

		if (got <= 0)
			break;
		*length += (size_t)got;
	}
	bytes[*length] = '\0';
	close(fd);
	return bytes;
}

/* A copy of a file of the source tree. */
static inline void command_copy(const char *from, const char *name)
{
	size_t length;
	char *bytes = command_read(from, &length);

	if (bytes == NULL)
		abort();
	command_write(name, bytes, length);
	free(bytes);
}

/* A directory of this name with the recordings of this kind: see command_samples.h. */
static inline void command_make(const char *kind)
{
	command_directory(kind);
	if (!command_samples(kind, command_path(kind)))
		abort();
}

/* ---- running --------------------------------------------------------------------------------- */

enum { COMMAND_WORDS = 64 };

/* Words are separated by blanks; 'a word' may have some. Returns how many. */
static inline int command_split(char *line, char *words[COMMAND_WORDS])
{
	int count = 0;

	while (*(line += strspn(line, " ")) != '\0') {
		char end = *line == '\'' ? '\'' : ' ';

		line += end == '\'';
		if (count == COMMAND_WORDS - 1)
			abort();
		words[count++] = line;
		line += strcspn(line, end == '\'' ? "'" : " ");
		if (*line != '\0')
			*line++ = '\0';
	}
	words[count] = NULL;
	return count;
}

static inline void command_redirect(int stream, const char *path, int flags)
{
	int fd = open(path, flags, 0600);

	if (fd == -1 || dup2(fd, stream) == -1)
		_exit(99);
	close(fd);
}

/* A child that changes nothing of ours. The words are those of a shell. Returns its exit code, or 1000 and its signal. */
static inline int command_run(int (*program)(int argc, char **argv), const char *name,
			      const char *line)
{
	char *copy = strdup(line), *words[COMMAND_WORDS + 1];
	int status = 0, count;
	size_t length;
	pid_t child;

	if (copy == NULL)
		abort();
	words[0] = (char *)name;
	count = command_split(copy, words + 1) + 1;
	fflush(NULL);
	child = fork();
	if (child == 0) {
		command_redirect(STDIN_FILENO,
				 command_play.input ? command_play.input : "/dev/null", O_RDONLY);
		command_redirect(STDOUT_FILENO, command_path(".out"), O_WRONLY | O_CREAT | O_TRUNC);
		command_redirect(STDERR_FILENO, command_path(".err"), O_WRONLY | O_CREAT | O_TRUNC);
		if (chdir(scratch_dir.path) != 0 || setenv("UNIT_PROGRAM", "1", 1) != 0)
			_exit(98);
		exit(program(count, words));
	}
	if (child == -1 || waitpid(child, &status, 0) != child)
		abort();
	free(copy);
	free(command_play.out);
	free(command_play.err);
	command_play.out = command_read(command_path(".out"), &length);
	command_play.err = command_read(command_path(".err"), &length);
	if (command_play.out == NULL || command_play.err == NULL)
		abort();
	command_play.code = WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
	return command_play.code;
}

/*
 * The program of the test as a file in bin/ of the scratch directory, so that other programs of ringside can lie beside
 * it: see command_again().
 */
static inline void command_install(void)
{
	char *bytes;
	size_t length;

	if (mkdir(command_path("bin"), 0755) != 0 && errno != EEXIST)
		abort();
	if (linkat(AT_FDCWD, "/proc/self/exe", AT_FDCWD, command_path("bin/ringside"),
		   AT_SYMLINK_FOLLOW) == 0)
		return;
	bytes = command_read("/proc/self/exe", &length);
	command_write("bin/ringside", bytes, length);
	free(bytes);
	if (chmod(command_path("bin/ringside"), 0755) != 0)
		abort();
}

/* Runs that file as ringside: for command_play.program. */
static inline int command_again(int argc, char **argv)
{
	(void)argc;
	execv(command_path("bin/ringside"), argv);
	return 97;
}

/* A script beside it, or in the PATH. */
static inline void command_script(const char *name, const char *text)
{
	command_write_text(name, text);
	if (chmod(command_path(name), 0755) != 0)
		abort();
}

/* What differs between machines and runs is replaced by a word. */
static inline void command_tidy(struct sink *to, const char *text)
{
	static char boot_id[40], program[4096];
	const struct {
		const char *what, *word;
	} words[] = { { scratch_dir.path, "TMP" },
		      { boot_id, "BOOT" },
		      { program, "BIN" },
		      { command_play.root, "ROOT" } };

	if (program[0] == '\0') {
		ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);

		program[length > 0 ? length : 0] = '\0';
		*strrchr(program, '/') = '\0';
		region_boot_id(boot_id);
	}
	while (*text != '\0') {
		size_t i = 0;

		while (i < ARRAY_LENGTH(words) &&
		       (words[i].what[0] == '\0' ||
			strncmp(text, words[i].what, strlen(words[i].what)) != 0))
			i++;
		if (i < ARRAY_LENGTH(words)) {
			sink_text(to, words[i].word);
			text += strlen(words[i].what);
		} else {
			sink_byte(to, *text++);
		}
	}
}

/* JSON has a line per key, and its numbers are rounded. */
static inline void command_note_json(const char *text)
{
	struct sink split;
	size_t lines = 0, kept = 0;
	const char *at;

	sink_init_memory(&split);
	expected_split(&split, text, true);
	at = sink_string(&split);
	for (size_t i = 0; at[i] != '\0'; i++) {
		lines += at[i] == '\n';
		if (lines == command_play.most_json && at[i] == '\n')
			kept = i + 1;
	}
	if (command_play.most_json == 0 || lines <= command_play.most_json)
		sink_text(&command_play.text, at);
	else
		sink_format(&command_play.text, "%.*s(%zu more lines)\n", (int)kept, at,
			    lines - command_play.most_json);
	sink_release(&split);
}

static inline void command_note(const char *text)
{
	struct sink tidy;

	sink_init_memory(&tidy);
	command_tidy(&tidy, text);
	if (text[0] == '{' || text[0] == '[')
		command_note_json(sink_string(&tidy));
	else
		sink_text(&command_play.text, sink_string(&tidy));
	if (text[0] != '\0' && text[strlen(text) - 1] != '\n')
		sink_text(&command_play.text, "\n(no end of line)\n");
	sink_release(&tidy);
}

/* Runs the command line and adds what it printed to the text. Returns its exit code. */
static inline int command(const char *line)
{
	char *rest, *at;
	struct sink err;

	command_run(command_play.program, "ringside", line);
	sink_format(&command_play.text, "=== ringside %s\n", line);
	command_note(command_play.out);
	sink_init_memory(&err);
	command_tidy(&err, command_play.err);
	rest = strdup(sink_string(&err));
	sink_release(&err);
	for (at = rest; *at != '\0';) {
		size_t length = strcspn(at, "\n");

		sink_format(&command_play.text, "stderr: %.*s\n", (int)length, at);
		at += length + (at[length] == '\n');
	}
	free(rest);
	sink_format(&command_play.text, "exit %d\n", command_play.code);
	return command_play.code;
}

/* Each line of the list is one; the list ends with NULL. */
static inline void command_each(const char *const *lines)
{
	for (; *lines != NULL; lines++)
		command(*lines);
}

/* The text of a file that a command wrote. */
static inline void command_show(const char *name)
{
	size_t length;
	char *bytes = command_read(command_path(name), &length);

	sink_format(&command_play.text, "--- %s%s\n", name, bytes ? "" : ": there is none");
	if (bytes)
		command_note(bytes);
	free(bytes);
}

/* A simulated job writes its recordings, offline. */
static inline void command_sim(const char *line)
{
	struct sink whole;

	sink_init_memory(&whole);
	sink_format(&whole, "--offline %s", line);
	if (command_run(sim_main, "ringside-sim", sink_string(&whole)) != 0) {
		printf("# ringside sim %s: %s\n", line, command_play.err);
		abort();
	}
	sink_release(&whole);
}

static inline bool command_is_expected(const char *path, const char *own_version)
{
	bool is_same = expected_is(&command_play.text, path, own_version);

	sink_init_memory(&command_play.text);
	return is_same;
}

/* Is everything since the last time as in the file? */
#define command_expected(path) command_is_expected(path, RINGSIDE_VERSION)

#endif
