/* Output files are complete or absent; what another user could control is refused. */
#include <dirent.h>
#include <signal.h>

#include "cli/cli.h"
#include "tests/support/command_play.h"
#include "tests/tap.h"

/* ---- what is in a directory ------------------------------------------------------------------- */

static int by_name(const struct dirent **left, const struct dirent **right)
{
	return strcmp((*left)->d_name, (*right)->d_name);
}

static void list_into(struct sink *to, const char *path, const char *below)
{
	struct dirent **names;
	int count = scandir(path, &names, NULL, by_name);

	for (int i = 0; i < count; i++) {
		const char *name = names[i]->d_name;
		char inner[1024], shown[1024];
		struct stat st;

		snprintf(inner, sizeof(inner), "%s/%s", path, name);
		snprintf(shown, sizeof(shown), "%s%s", below, name);
		if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && lstat(inner, &st) == 0) {
			if (S_ISDIR(st.st_mode)) {
				snprintf(shown, sizeof(shown), "%s%s/", below, name);
				list_into(to, inner, shown);
			} else {
				sink_format(to, "%s ",
					    strncmp(name, ".ringside-", 10) == 0 ? "PART" : shown);
			}
		}
		free(names[i]);
	}
	if (count > 0)
		free(names);
}

/* The files below a directory of the scratch directory, in order, with a blank behind each. */
static bool has_files(const char *name, const char *wanted)
{
	struct sink found;
	bool is_same;

	sink_init_memory(&found);
	list_into(&found, command_path(name), "");
	is_same = strcmp(sink_string(&found), wanted) == 0;
	if (!is_same)
		printf("# %s has: %s\n", name, sink_string(&found));
	sink_release(&found);
	return is_same;
}

static bool has_text(const char *name, const char *wanted)
{
	size_t length;
	char *text = command_read(command_path(name), &length);
	bool is_same = text != NULL && strcmp(text, wanted) == 0;

	if (!is_same)
		printf("# %s has: %s\n", name, text ? text : "nothing");
	free(text);
	return is_same;
}

/* ---- files ------------------------------------------------------------------------------------ */

static void files_appear_when_complete(void)
{
	struct cli_output output;
	struct stat st;

	command_directory("files");
	EXPECT_EQUAL(cli_output_open(&output, command_path("files/a")), 0);
	sink_text(&output.sink, "all of it\n");
	EXPECT_THAT("nothing is there before the end",
		    has_files("files", "") || has_files("files", "PART "));
	EXPECT_EQUAL(cli_output_commit(&output, CLI_EXIT_TROUBLE), CLI_EXIT_TROUBLE);
	EXPECT(has_files("files", "a ") && has_text("files/a", "all of it\n"));
	EXPECT(stat(command_path("files/a"), &st) == 0 && (st.st_mode & 0777) == 0644);
	EXPECT_THAT("a second commit has nothing to write",
		    cli_output_commit(&output, CLI_EXIT_DONE) == CLI_EXIT_UNKNOWN);
	cli_output_discard(&output);

	chmod(command_path("files/a"), 0600);
	EXPECT_EQUAL(cli_output_open(&output, command_path("files/a")), 0);
	sink_text(&output.sink, "new\n");
	EXPECT_THAT("the old file stays until then", has_text("files/a", "all of it\n"));
	EXPECT_EQUAL(cli_output_commit(&output, CLI_EXIT_DONE), CLI_EXIT_DONE);
	EXPECT(has_files("files", "a ") && has_text("files/a", "new\n"));
	EXPECT_THAT("its permissions are kept",
		    stat(command_path("files/a"), &st) == 0 && (st.st_mode & 0777) == 0600);

	EXPECT_EQUAL(cli_output_open(&output, command_path("files/a")), 0);
	sink_text(&output.sink, "never\n");
	cli_output_discard(&output);
	EXPECT(has_files("files", "a ") && has_text("files/a", "new\n"));
	EXPECT_EQUAL(cli_output_check(command_path("files/b")), 0);
	EXPECT_THAT("a check leaves nothing behind", has_files("files", "a "));
}

static void links_are_followed(void)
{
	struct cli_output output;
	struct stat st;

	if (symlink("a", command_path("files/link")) != 0)
		abort();
	EXPECT_EQUAL(cli_output_open(&output, command_path("files/link")), 0);
	sink_text(&output.sink, "through\n");
	EXPECT_EQUAL(cli_output_commit(&output, 0), 0);
	EXPECT(lstat(command_path("files/link"), &st) == 0 && S_ISLNK(st.st_mode));
	EXPECT(has_text("files/a", "through\n"));
	if (symlink("nothing", command_path("files/dangling")) != 0)
		abort();
}

/* Each is one line on standard error: see the expected file. */
static void refusals(void)
{
	struct cli_output output;
	int codes[8];
	size_t length;
	char *said;
	int before = dup(STDERR_FILENO), fd;

	command_directory("open");
	chmod(command_path("open"), 0777);
	command_directory("sticky");
	chmod(command_path("sticky"), 01777);
	if (symlink("../files/a", command_path("open/link")) != 0 ||
	    symlink("../files/a", command_path("sticky/link")) != 0)
		abort();
	fd = open(command_path("said"), O_RDWR | O_CREAT | O_TRUNC, 0600);
	fflush(stderr);
	dup2(fd, STDERR_FILENO);
	codes[0] = cli_output_open(&output, command_path("files"));
	codes[1] = cli_output_open(&output, command_path("nowhere/x"));
	codes[2] = cli_output_open(&output, command_path("files/a/x"));
	codes[3] = cli_output_open(&output, command_path("open/link"));
	codes[4] = cli_output_open(&output, "/dev/zero");
	codes[5] = cli_output_open(&output, command_path("files/dangling"));
	codes[6] = cli_output_check(command_path("nowhere/x"));
	codes[7] = cli_output_check("/dev/zero");
	fflush(stderr);
	dup2(before, STDERR_FILENO);
	close(before);
	close(fd);
	said = command_read(command_path("said"), &length);
	command_note(said);
	free(said);
	for (size_t i = 0; i < ARRAY_LENGTH(codes); i++)
		sink_format(&command_play.text, "%d ", codes[i]);
	sink_text(&command_play.text, "\n");
	EXPECT_THAT("what is refused", command_expected("tests/unit/cli/expected/output-refusals"));
	EXPECT_THAT("nothing is open after that", output.path == NULL && output.fd == -1);
	EXPECT_THAT("in a sticky directory nobody else can replace a link",
		    cli_output_open(&output, command_path("sticky/link")) == 0);
	cli_output_discard(&output);
	EXPECT_EQUAL(cli_output_check("/dev/null"), 0);
	EXPECT(cli_output_open(&output, "/dev/null") == 0 && cli_output_commit(&output, 1) == 1);
	EXPECT(!cli_output_is_terminal("-") && !cli_output_is_terminal("/dev/null"));
}

static const int signals[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE };

/* A signal in a child removes what is not complete. */
static void signals_leave_nothing(void)
{
	int status;

	command_directory("ended");
	for (size_t i = 0; i < ARRAY_LENGTH(signals); i++) {
		pid_t child;

		fflush(NULL);
		child = fork();
		if (child == 0) {
			struct cli_output output;
			struct cli_tree tree;

			if (cli_output_open(&output, command_path("ended/file")) != 0 ||
			    cli_tree_open(&tree, command_path("ended/tree"), 0) != 0)
				_exit(1);
			free(cli_tree_path(&tree, "below/one"));
			raise(signals[i]);
			_exit(2);
		}
		EXPECT(waitpid(child, &status, 0) == child && WIFSIGNALED(status) &&
		       WTERMSIG(status) == signals[i]);
		EXPECT(has_files("ended", ""));
	}
}

/* ---- directories ------------------------------------------------------------------------------ */

static int write_in(struct cli_tree *tree, const char *name, const char *text)
{
	struct cli_output output;

	if (cli_tree_file(tree, &output, name) != 0)
		return -1;
	sink_text(&output.sink, text);
	return cli_output_commit(&output, 0);
}

static void trees_appear_when_complete(void)
{
	struct cli_tree tree;

	command_directory("trees");
	EXPECT_EQUAL(cli_tree_open(&tree, command_path("trees/new/deep///"), 0), 0);
	EXPECT_EQUAL(write_in(&tree, "a/b/part-0", "one\n"), 0);
	EXPECT_EQUAL(write_in(&tree, "a/b/part-1", "two\n"), 0);
	EXPECT_EQUAL(write_in(&tree, "top", "three\n"), 0);
	EXPECT(access(command_path("trees/new/deep"), F_OK) != 0);
	EXPECT_EQUAL(cli_tree_commit(&tree, 1), 1);
	EXPECT(has_files("trees", "new/deep/a/b/part-0 new/deep/a/b/part-1 new/deep/top "));
	EXPECT(has_text("trees/new/deep/a/b/part-1", "two\n"));
	EXPECT_EQUAL(cli_tree_commit(&tree, 0), CLI_EXIT_UNKNOWN);

	EXPECT_EQUAL(cli_tree_open(&tree, command_path("trees/gone"), 0), 0);
	EXPECT_EQUAL(write_in(&tree, "a/x", "x"), 0);
	cli_tree_discard(&tree);
	EXPECT(has_files("trees", "new/deep/a/b/part-0 new/deep/a/b/part-1 new/deep/top "));

	command_directory("trees/empty");
	EXPECT_EQUAL(cli_tree_open(&tree, command_path("trees/empty"), 0), 0);
	EXPECT_EQUAL(write_in(&tree, "x", "x"), 0);
	EXPECT_EQUAL(cli_tree_commit(&tree, 0), 0);
	EXPECT(has_files("trees/empty", "x "));
}

static void trees_are_merged_on_request(void)
{
	struct cli_tree tree;

	EXPECT_EQUAL(cli_tree_open(&tree, command_path("trees/new/deep"), CLI_OUTPUT_FORCE), 0);
	tree.replaces = "part-";
	EXPECT_EQUAL(write_in(&tree, "a/b/part-0", "again\n"), 0);
	EXPECT_EQUAL(write_in(&tree, "c/part-0", "other\n"), 0);
	EXPECT_EQUAL(cli_tree_commit(&tree, 0), 0);
	EXPECT_THAT("older files of the same kind are gone, others stay",
		    has_files("trees/new/deep", "a/b/part-0 c/part-0 top "));
	EXPECT(has_text("trees/new/deep/a/b/part-0", "again\n") &&
	       has_text("trees/new/deep/top", "three\n"));
	EXPECT_EQUAL(cli_tree_open(&tree, command_path("trees/new/deep"), CLI_OUTPUT_FORCE), 0);
	EXPECT_EQUAL(write_in(&tree, "a/b/part-7", "x"), 0);
	EXPECT_EQUAL(cli_tree_commit(&tree, 0), 0);
	EXPECT_THAT("unless nothing is replaced",
		    has_files("trees/new/deep", "a/b/part-0 a/b/part-7 c/part-0 top "));
	EXPECT_EQUAL(cli_tree_open(&tree, command_path("trees/new/deep"), CLI_OUTPUT_FORCE), 0);
	EXPECT_EQUAL(write_in(&tree, "d/x", "x"), 0);
	cli_tree_discard(&tree);
	EXPECT(has_files("trees/new/deep", "a/b/part-0 a/b/part-7 c/part-0 top "));
}

int main(void)
{
	command_begin();
	/* What whoever started the test ignores stays ignored: not here. */
	for (size_t i = 0; i < ARRAY_LENGTH(signals); i++)
		signal(signals[i], SIG_DFL);
	files_appear_when_complete();
	links_are_followed();
	refusals();
	signals_leave_nothing();
	trees_appear_when_complete();
	trees_are_merged_on_request();
	return tap_done();
}
