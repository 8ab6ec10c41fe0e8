/*
 * Output files on file systems and for users that a test does not have: no unnamed files, no links to them, errors at
 * the end, files of others. System calls are played; the file is included for that.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#define cli_output_is_terminal systems_included_is_terminal
#define cli_output_open systems_included_open
#define cli_output_open_text systems_included_open_text
#define cli_output_check systems_included_check
#define cli_tree_file systems_included_tree_file
#define cli_output_commit systems_included_commit
#define cli_output_discard systems_included_discard
#define cli_tree_open systems_included_tree_open
#define cli_tree_path systems_included_tree_path
#define cli_tree_commit systems_included_tree_commit
#define cli_tree_discard systems_included_tree_discard
#include "cli/cli.h"

static int play_open(const char *path, int flags, ...);
static int play_linkat(int from_dir, const char *from, int to_dir, const char *to, int flags);
static int play_fsync(int fd);
static ssize_t play_sendfile(int to, int from, off_t *at, size_t length);
static int play_fchmod(int fd, mode_t mode);
static int play_rename(const char *from, const char *to);
static int play_close(int fd);
static int play_mkdir(const char *path, mode_t mode);
static int play_lstat(const char *path, struct stat *st);
static int play_stat(const char *path, struct stat *st);
static ssize_t play_getxattr(const char *path, const char *name, void *value, size_t size);
static uid_t play_geteuid(void);
static int play_isatty(int fd);

#define open play_open
#define linkat play_linkat
#define fsync play_fsync
#define sendfile play_sendfile
#define fchmod play_fchmod
#define rename play_rename
#define close play_close
#define mkdir play_mkdir
#define lstat play_lstat
#define stat(path, st) play_stat(path, st)
#define getxattr play_getxattr
#define geteuid play_geteuid
#define isatty play_isatty
#include "cli/cli_output.c"
#undef open
#undef linkat
#undef fsync
#undef sendfile
#undef fchmod
#undef rename
#undef close
#undef mkdir
#undef lstat
#undef stat
#undef getxattr
#undef geteuid
#undef isatty

#include "tests/support/command_play.h"
#include "tests/tap.h"

/* ---- the stage -------------------------------------------------------------------------------- */

enum { USER = 1000, OTHER = 2000 };

static struct {
	bool has_no_tmpfile, ignores_umask;
	int open_error; /* of named files */
	int link_error, link_times;
	int fsync_error, send_error, chmod_error, rename_error, close_error, mkdir_error;
	size_t send_most;
	const char *of_other; /* what another user owns: the end of its path */
	const char *of_root;
	uid_t user;
	dev_t device; /* what is there is this character device */
	ssize_t acl;
	bool is_terminal;
} play;

static int fails(int error)
{
	errno = error;
	return error ? -1 : 0;
}

static int play_open(const char *path, int flags, ...)
{
	bool is_nameless = (flags & O_TMPFILE) == O_TMPFILE;
	va_list list;
	mode_t mode;
	int fd;

	va_start(list, flags);
	mode = flags & O_CREAT || is_nameless ? va_arg(list, mode_t) : 0;
	va_end(list);
	if (is_nameless && play.has_no_tmpfile)
		return fails(EOPNOTSUPP);
	if (!is_nameless && play.open_error != 0)
		return fails(play.open_error);
	/* A new file must not be one that somebody put there. */
	if (!is_nameless && flags & O_CREAT && !(flags & O_EXCL))
		abort();
	fd = open(path, flags, mode);
	if (fd != -1 && !(fcntl(fd, F_GETFD) & FD_CLOEXEC))
		abort();
	if (is_nameless && play.ignores_umask)
		fchmod(fd, mode);
	return fd;
}

static int play_linkat(int from_dir, const char *from, int to_dir, const char *to, int flags)
{
	if (play.link_error != 0 && play.link_times-- > 0)
		return fails(play.link_error);
	return linkat(from_dir, from, to_dir, to, flags);
}

static int play_fsync(int fd)
{
	(void)fd;
	return fails(play.fsync_error);
}

static ssize_t play_sendfile(int to, int from, off_t *at, size_t length)
{
	if (play.send_error != 0)
		return fails(play.send_error);
	return sendfile(to, from, at, play.send_most ? play.send_most : length);
}

static int play_fchmod(int fd, mode_t mode)
{
	return play.chmod_error ? fails(play.chmod_error) : fchmod(fd, mode);
}

static int play_rename(const char *from, const char *to)
{
	return play.rename_error ? fails(play.rename_error) : rename(from, to);
}

static int play_close(int fd)
{
	int code = close(fd);

	return play.close_error ? fails(play.close_error) : code;
}

static int play_mkdir(const char *path, mode_t mode)
{
	return play.mkdir_error ? fails(play.mkdir_error) : mkdir(path, mode);
}

/* Everything is the user's, except what is others'. */
static void play_owner(const char *path, struct stat *st)
{
	st->st_uid = play.of_other && text_ends_with(path, play.of_other) ? OTHER
		     : play.of_root && text_ends_with(path, play.of_root) ? 0
									  : USER;
	if (play.device != 0) {
		st->st_mode = (st->st_mode & 0777) | S_IFCHR;
		st->st_rdev = play.device;
	}
}

static int play_lstat(const char *path, struct stat *st)
{
	int code = lstat(path, st);

	if (code == 0)
		play_owner(path, st);
	return code;
}

static int play_stat(const char *path, struct stat *st)
{
	char whole[PATH_MAX];
	int code = stat(path, st);

	/* A link's target, but the directory itself, which is asked for as "DIRECTORY/.". */
	if (code == 0)
		play_owner(text_ends_with(path, "/.") || !realpath(path, whole) ? path : whole, st);
	return code;
}

static ssize_t play_getxattr(const char *path, const char *name, void *value, size_t size)
{
	if (strcmp(name, "system.posix_acl_default") != 0 || value != NULL || size != 0)
		abort();
	(void)path;
	return play.acl;
}

static uid_t play_geteuid(void)
{
	return play.user;
}

static int play_isatty(int fd)
{
	return fd == STDOUT_FILENO && play.is_terminal;
}

static void begin(const char *heading)
{
	memset(&play, 0, sizeof(play));
	play.user = USER;
	sink_format(&command_play.text, "=== %s\n", heading);
}

/* ---- what is there ---------------------------------------------------------------------------- */

static int errors = -1;

/* Standard error goes into a file, for show(). */
static void catch_errors(void)
{
	errors = open(command_path("errors"), O_RDWR | O_CREAT | O_TRUNC, 0600);
	fflush(stderr);
	dup2(errors, STDERR_FILENO);
}

static void show_errors(void)
{
	struct sink tidy;
	size_t length;
	char *text;

	fflush(stderr);
	text = command_read(command_path("errors"), &length);
	sink_init_memory(&tidy);
	command_tidy(&tidy, text);
	sink_text(&command_play.text, sink_string(&tidy));
	sink_release(&tidy);
	free(text);
	if (ftruncate(errors, 0) != 0 || lseek(errors, 0, SEEK_SET) != 0)
		abort();
}

static int by_path(const struct dirent **left, const struct dirent **right)
{
	return strcmp((*left)->d_name, (*right)->d_name);
}

/* Names, permissions and contents. Temporary names differ. */
static void show_files(const char *directory)
{
	struct dirent **names;
	int count = scandir(command_path(directory), &names, NULL, by_path);

	for (int i = 0; i < count; i++) {
		const char *name = names[i]->d_name;
		char path[450];
		struct stat st;
		size_t length;
		char *text;

		snprintf(path, sizeof(path), "%s/%s", directory, name);
		if (!is_dots(name) && lstat(command_path(path), &st) == 0) {
			text = S_ISREG(st.st_mode) ? command_read(command_path(path), &length)
						   : NULL;
			sink_format(&command_play.text, "%s/%s %o %s\n", directory,
				    strncmp(name, ".ringside-", 10) == 0 ? "PART" : name,
				    st.st_mode & 0777, text ? text : "");
			free(text);
			if (S_ISDIR(st.st_mode))
				show_files(path);
		}
		free(names[i]);
	}
	if (count >= 0)
		free(names);
}

static void finish(int code)
{
	sink_format(&command_play.text, "code %d\n", code);
	show_errors();
	show_files("d");
	nftw(command_path("d"), scratch_remove_one, 8, FTW_DEPTH | FTW_PHYS);
	command_directory("d");
	if (newest_pending != NULL) {
		sink_text(&command_play.text, "something is pending\n");
		newest_pending = NULL;
	}
}

/* Writes a file in one go. */
static void write_one(const char *name)
{
	struct cli_output output;
	int code = systems_included_open(&output, command_path(name));

	if (code == 0) {
		sink_text(&output.sink, "new");
		code = systems_included_commit(&output, 1);
	}
	finish(code);
}

/* ---- files ------------------------------------------------------------------------------------ */

static void systems(void)
{
	begin("as most file systems do");
	write_one("d/a");
	begin("without unnamed files");
	play.has_no_tmpfile = true;
	write_one("d/a");
	begin("over an old file, without unnamed files");
	play.has_no_tmpfile = true;
	command_write_text("d/a", "old");
	chmod(command_path("d/a"), 0640);
	write_one("d/a");
	begin("the umask is ignored");
	play.ignores_umask = true;
	write_one("d/a");
	begin("unless there are ACLs");
	play.ignores_umask = true;
	play.acl = 8;
	write_one("d/a");
	begin("permissions of an old file cannot be set");
	command_write_text("d/a", "old");
	chmod(command_path("d/a"), 0600);
	play.chmod_error = EPERM;
	write_one("d/a");
	begin("no link: a copy");
	play.link_error = EXDEV;
	play.link_times = 9;
	play.send_most = 2;
	write_one("d/a");
	begin("no link, over an old file");
	command_write_text("d/a", "old");
	play.link_error = ENOENT;
	play.link_times = 9;
	write_one("d/a");
	begin("the copy fails");
	play.link_error = EXDEV;
	play.link_times = 9;
	play.send_error = ENOSPC;
	write_one("d/a");
	begin("its permissions fail");
	play.link_error = EXDEV;
	play.link_times = 9;
	play.chmod_error = EACCES;
	write_one("d/a");
	begin("there can be no copy");
	play.link_error = EXDEV;
	play.link_times = 9;
	play.open_error = EROFS;
	write_one("d/a");
	begin("a temporary name only at the second attempt");
	command_write_text("d/a", "old");
	play.link_error = EEXIST;
	play.link_times = 1;
	write_one("d/a");
	begin("the disk is full in the end");
	play.fsync_error = ENOSPC;
	write_one("d/a");
	begin("it cannot be flushed, and need not be");
	play.fsync_error = EINVAL;
	write_one("d/a");
	begin("nor here");
	play.fsync_error = ENOSYS;
	write_one("d/a");
	begin("closing fails");
	play.close_error = EDQUOT;
	write_one("d/a");
	begin("renaming fails");
	play.has_no_tmpfile = true;
	play.rename_error = EBUSY;
	write_one("d/a");
	begin("opening fails");
	play.has_no_tmpfile = true;
	play.open_error = EMFILE;
	write_one("d/a");
}

static void put_link(const char *to, const char *name)
{
	if (symlink(to, command_path(name)) != 0)
		abort();
}

static void owners(void)
{
	static const struct {
		const char *what;
		unsigned int major, minor;
	} devices[] = { { "device null", 1, 3 },
			{ "zero", 1, 5 },
			{ "full", 1, 7 },
			{ "terminal", 5, 0 },
			{ "another", 8, 0 } };

	begin("a file of another user");
	command_write_text("d/a", "old");
	play.of_other = "/a";
	write_one("d/a");
	begin("a file of root");
	command_write_text("d/a", "old");
	play.of_root = "/a";
	write_one("d/a");
	begin("root's own");
	command_write_text("d/a", "old");
	play.of_root = "/a";
	play.user = 0;
	write_one("d/a");
	begin("a link of another user");
	put_link("b", "d/a");
	command_write_text("d/b", "old");
	play.of_other = "/a";
	write_one("d/a");
	begin("a link of root");
	put_link("b", "d/a");
	command_write_text("d/b", "old");
	play.of_root = "/a";
	write_one("d/a");
	begin("a link in a directory of another user");
	put_link("b", "d/a");
	command_write_text("d/b", "old");
	play.of_other = "/.";
	write_one("d/a");
	begin("a link that everybody can replace");
	put_link("b", "d/a");
	command_write_text("d/b", "old");
	chmod(command_path("d"), 0777);
	write_one("d/a");
	begin("one that nobody can");
	put_link("b", "d/a");
	command_write_text("d/b", "old");
	chmod(command_path("d"), 01777);
	write_one("d/a");
	begin("a link to a file of another user");
	put_link("b", "d/a");
	command_write_text("d/b", "old");
	play.of_other = "/b";
	write_one("d/a");
	for (size_t i = 0; i < ARRAY_LENGTH(devices); i++) {
		begin(devices[i].what);
		command_write_text("d/a", "device");
		play.device = makedev(devices[i].major, devices[i].minor);
		write_one("d/a");
	}
}

/* ---- directories ------------------------------------------------------------------------------ */

static int add(struct cli_tree *tree, const char *name, const char *text)
{
	struct cli_output output;
	int code = systems_included_tree_file(tree, &output, name);

	if (code == 0) {
		sink_text(&output.sink, text);
		code = systems_included_commit(&output, 0);
	}
	return code;
}

static void write_tree(unsigned int flags, const char *replaces)
{
	struct cli_tree tree;
	int code = systems_included_tree_open(&tree, command_path("d/tree//"), flags);

	if (code == 0) {
		tree.replaces = replaces;
		code = add(&tree, "part-1", "one");
		code = code ? code : add(&tree, "x/y/part-2", "two");
		code = code ? code : add(&tree, "x/y/part-3", "three");
		if (code == 0)
			code = systems_included_tree_commit(&tree, 1);
		else
			systems_included_tree_discard(&tree);
	}
	finish(code);
}

static void make_old_tree(void)
{
	command_directory("d/tree");
	command_directory("d/tree/x");
	command_directory("d/tree/x/y");
	command_directory("d/tree/z");
	command_write_text("d/tree/part-0", "kept: its directory is no new one");
	command_write_text("d/tree/x/y/part-2", "replaced");
	command_write_text("d/tree/x/y/part-9", "earlier");
	command_write_text("d/tree/x/y/notes", "kept");
	command_write_text("d/tree/z/part-1", "kept");
}

static void trees(void)
{
	struct cli_output output;
	struct cli_tree tree;
	int code;

	begin("a new directory");
	write_tree(0, NULL);
	begin("an empty one");
	command_directory("d/tree");
	write_tree(0, NULL);
	begin("one that is not empty");
	make_old_tree();
	write_tree(0, NULL);
	begin("and by force");
	make_old_tree();
	write_tree(CLI_OUTPUT_FORCE, NULL);
	begin("without what an earlier run left");
	make_old_tree();
	write_tree(CLI_OUTPUT_FORCE, "part-");
	begin("a file in its place");
	command_write_text("d/tree", "file");
	write_tree(CLI_OUTPUT_FORCE, NULL);
	begin("a directory of another user");
	command_directory("d/tree");
	play.of_other = "/tree";
	write_tree(0, NULL);
	begin("a directory of root");
	command_directory("d/tree");
	play.of_root = "/tree";
	write_tree(0, NULL);
	begin("no directory can be made");
	play.mkdir_error = ENOSPC;
	write_tree(0, NULL);
	begin("it cannot be renamed");
	play.rename_error = EBUSY;
	write_tree(0, NULL);
	begin("files cannot be moved");
	make_old_tree();
	play.rename_error = EBUSY;
	write_tree(CLI_OUTPUT_FORCE, NULL);
	begin("no file can be opened");
	play.open_error = ENOSPC;
	write_tree(0, NULL);

	begin("a file that is older than a directory is given up");
	play.has_no_tmpfile = true;
	systems_included_open(&output, command_path("d/a"));
	code = systems_included_tree_open(&tree, command_path("d/tree"), 0);
	add(&tree, "part-1", "one");
	systems_included_discard(&output);
	finish(systems_included_tree_commit(&tree, code));
	begin("a directory that is older than a file is given up");
	play.has_no_tmpfile = true;
	code = systems_included_tree_open(&tree, command_path("d/tree"), 0);
	add(&tree, "x/part-1", "one");
	systems_included_open(&output, command_path("d/a"));
	systems_included_tree_discard(&tree);
	sink_text(&output.sink, "new");
	finish(systems_included_commit(&output, code));
	EXPECT_THAT("what was committed or given up is not there any more",
		    systems_included_tree_commit(&tree, 0) == CLI_EXIT_UNKNOWN &&
			    systems_included_commit(&output, 0) == CLI_EXIT_UNKNOWN);
	begin("deep");
	code = systems_included_tree_open(&tree, command_path("d/no/such/tree"), 0);
	add(&tree, "part-1", "one");
	finish(systems_included_tree_commit(&tree, code));
}

/* ---- ends ------------------------------------------------------------------------------------- */

/* A child with a file and a directory under way ends like this. */
static void end_by(const char *heading, int signal_number, bool is_ignored)
{
	struct cli_output output;
	struct cli_tree tree;
	int status = 0;
	pid_t child;

	begin(heading);
	play.has_no_tmpfile = true;
	fflush(NULL);
	child = fork();
	if (child == 0) {
		if (is_ignored)
			signal(signal_number, SIG_IGN);
		systems_included_open(&output, command_path("d/a"));
		systems_included_tree_open(&tree, command_path("d/tree"), 0);
		add(&tree, "x/y", "text");
		if (signal_number != 0)
			raise(signal_number);
		exit(5);
	}
	waitpid(child, &status, 0);
	finish(WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status));
}

static void terminals(void)
{
	struct cli_output output;
	int before = dup(STDOUT_FILENO), code;

	play.is_terminal = true;
	EXPECT(systems_included_is_terminal("-") && !systems_included_is_terminal("file"));
	play.is_terminal = false;
	EXPECT(!systems_included_is_terminal("-"));
	begin("a pipe is not opened to see whether it can be");
	if (mkfifo(command_path("d/a"), 0600) != 0)
		abort();
	finish(systems_included_check(command_path("d/a")));
	begin("standard output");
	command_write_text("d/out", "");
	code = open(command_path("d/out"), O_WRONLY);
	fflush(stdout);
	dup2(code, STDOUT_FILENO);
	close(code);
	code = systems_included_open(&output, "-");
	sink_text(&output.sink, "text");
	code |= systems_included_commit(&output, 0);
	dup2(before, STDOUT_FILENO);
	finish(code);
}

int main(void)
{
	int before = dup(STDERR_FILENO);

	command_begin();
	command_directory("d");
	catch_errors();
	end_by("a signal", SIGTERM, false);
	end_by("a signal that is ignored", SIGHUP, true);
	end_by("a pipe without reader", SIGPIPE, false);
	end_by("exit", 0, false);
	systems();
	owners();
	trees();
	terminals();
	dup2(before, STDERR_FILENO);
	EXPECT_THAT("what is left of output",
		    command_expected("tests/unit/cli/expected/output-systems"));
	return tap_done();
}
