/*
 * List of pending paths, newest first, so that files are removed before their directories. The signal handler needs a
 * static variable to reach it; the list changes only while these signals are blocked.
 */
#include "cli/cli.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "common/attributes.h"
#include "common/text.h"

struct cli_pending {
	struct cli_pending *next;	/* older */
	const struct cli_pending *tree; /* the directory tree it belongs to; NULL: none */
	bool is_directory;
	char path[];
};

enum { NAMES_TRIED = 1000 };

static struct cli_pending *newest_pending;
static unsigned int names_given;
static bool is_guarded;

static const int ending_signals[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE };

static void remove_one(const struct cli_pending *pending)
{
	if (pending->is_directory)
		rmdir(pending->path);
	else
		unlink(pending->path);
}

/* Called from the signal handler, too: only system calls. */
static void remove_all(void)
{
	for (const struct cli_pending *at = newest_pending; at != NULL; at = at->next)
		remove_one(at);
}

/* The signal is raised again on return, with its default action (SA_RESETHAND). */
static void end_early(int signal_number)
{
	int saved = errno;

	remove_all();
	raise(signal_number);
	errno = saved;
}

/*
 * From now on, signals remove pending paths, and exceeding a file size limit is a write error. Called with the first
 * path, and by callers that have none yet.
 */
static void cli_pending_guard(void)
{
	struct sigaction action = { .sa_handler = end_early, .sa_flags = (int)SA_RESETHAND };
	struct sigaction before;

	if (is_guarded)
		return;
	is_guarded = true;
	sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < ARRAY_LENGTH(ending_signals); i++) {
		sigaction(ending_signals[i], NULL, &before);
		/* Keep signals ignored that are ignored already (nohup). */
		if (before.sa_handler == SIG_DFL)
			sigaction(ending_signals[i], &action, NULL);
	}
	/* Exceeding a file size limit must fail in write(), not kill the process. */
	signal(SIGXFSZ, SIG_IGN);
	atexit(remove_all);
}

static void block_signals(sigset_t *before)
{
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_LENGTH(ending_signals); i++)
		sigaddset(&set, ending_signals[i]);
	sigprocmask(SIG_BLOCK, &set, before);
}

/* To be called before the file is created, so that there is no gap. */
static struct cli_pending *cli_pending_add(const char *path, bool is_directory,
					   const struct cli_pending *tree)
{
	size_t bytes = strlen(path) + 1;
	struct cli_pending *pending = cli_realloc(NULL, sizeof(*pending) + bytes);
	sigset_t before;

	cli_pending_guard();
	pending->tree = tree;
	pending->is_directory = is_directory;
	memcpy(pending->path, path, bytes);
	block_signals(&before);
	pending->next = newest_pending;
	newest_pending = pending;
	sigprocmask(SIG_SETMASK, &before, NULL);
	return pending;
}

/* Keeps or removes it; for a tree, all that belongs to it, too. NULL is allowed. */
static void cli_pending_drop(const struct cli_pending *pending, bool is_removed)
{
	struct cli_pending **at = &newest_pending, *gone;
	bool is_over = pending == NULL;
	sigset_t before;

	block_signals(&before);
	/* Members of a tree are newer than the tree. */
	while (*at != NULL && !is_over) {
		gone = *at;
		is_over = gone == pending;
		if (!is_over && gone->tree != pending) {
			at = &gone->next;
			continue;
		}
		if (is_removed)
			remove_one(gone);
		*at = gone->next;
		free(gone);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
}

/* All paths, the newest first. */
static const struct cli_pending *cli_pending_first(void)
{
	return newest_pending;
}

/* Concatenates the first `length` bytes of `first` and the others. The caller frees it. */
static char *cli_path_join(const char *first, int length, const char *between, const char *last)
{
	size_t bytes = (size_t)length + strlen(between) + strlen(last) + 1;
	char *path = cli_realloc(NULL, bytes);

	text_format(path, bytes, "%.*s%s%s", length, first, between, last);
	return path;
}

/* An unused name in the directory of `path`. The caller frees it. */
static char *cli_pending_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	char name[64], *whole = NULL;
	struct stat st;

	/* A killed process may have had the same pid, which is common in containers. */
	for (int i = 0; i < NAMES_TRIED && (i == 0 || lstat(whole, &st) == 0); i++) {
		free(whole);
		text_format(name, sizeof(name), ".ringside-%d-%u.part", (int)getpid(),
			    names_given++);
		whole = cli_path_join(path, slash ? (int)(slash - path + 1) : 0, "", name);
	}
	return whole;
}

/* Unnamed files (O_TMPFILE), which get their name when they are complete. */

enum { FD_NAME = 32, COPIED_AT_ONCE = 1 << 30 };

static void name_of_fd(char to[static FD_NAME], int fd)
{
	text_format(to, FD_NAME, "/proc/self/fd/%d", fd);
}

/*
 * Some kernels ignore the umask here if the file system has no ACLs. A default ACL of the directory replaces the
 * umask and must not be overridden.
 */
static void apply_umask(int fd, const char *directory)
{
	mode_t mask = umask(0777);
	struct stat st;

	umask(mask);
	if (fstat(fd, &st) == 0 && (st.st_mode & mask & 0777) != 0 &&
	    getxattr(directory, "system.posix_acl_default", NULL, 0) <= 0)
		(void)fchmod(fd, st.st_mode & 0777 & ~mask);
}

/*
 * Opens an unnamed file in the directory of `path`, with permissions from the umask. -1 if it could not be named
 * later.
 */
static int cli_nameless_open(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *directory = slash ? cli_path_join(path, (int)(slash - path + 1), "", ".")
				: cli_path_join("", 0, "", ".");
	int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
	char name[FD_NAME];

	if (fd != -1) {
		name_of_fd(name, fd);
		if (access(name, F_OK) == 0) {
			apply_umask(fd, directory);
		} else {
			close(fd);
			fd = -1;
		}
	}
	free(directory);
	return fd;
}

/* Returns 0 or an errno; EEXIST if the name is taken. */
static int cli_nameless_link(int fd, const char *path)
{
	char name[FD_NAME];

	name_of_fd(name, fd);
	return linkat(AT_FDCWD, name, AT_FDCWD, path, AT_SYMLINK_FOLLOW) == -1 ? errno : 0;
}

/* Flushes to disk if supported. Returns 0 or an errno. */
static int cli_nameless_settle(int fd)
{
	return fsync(fd) == -1 && errno != EINVAL && errno != ENOSYS ? errno : 0;
}

/*
 * For file systems where naming fails in the end: copies the data to a new named file and flushes it. Returns 0 or an
 * errno.
 */
static int cli_nameless_copy(int fd, const char *path)
{
	int to = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600), error = 0;
	ssize_t copied = 1;
	struct stat st;
	off_t at = 0;

	if (to == -1)
		return errno;
	if (fstat(fd, &st) == -1 || fchmod(to, st.st_mode & 0777) == -1)
		error = errno;
	while (error == 0 && copied > 0) {
		copied = sendfile(to, fd, &at, COPIED_AT_ONCE);
		error = copied == -1 ? errno : 0;
	}
	if (error == 0)
		error = cli_nameless_settle(to);
	if (close(to) == -1 && error == 0)
		error = errno;
	return error;
}

bool cli_output_is_terminal(const char *path)
{
	return strcmp(path, "-") == 0 && isatty(STDOUT_FILENO);
}

static int cannot_write(const char *path, int error)
{
	return cli_error("cannot write %s: %s", path, strerror(error));
}

static void output_begin(struct cli_output *output, int fd, bool is_own_fd)
{
	output->fd = fd;
	output->is_own_fd = is_own_fd;
	sink_init_fd(&output->sink, fd);
}

static int open_failed(struct cli_output *output, int error)
{
	cannot_write(output->path, error);
	if (!output->is_in_tree)
		cli_pending_drop(output->pending, false);
	free(output->path);
	*output = (struct cli_output){ .fd = -1 };
	return CLI_EXIT_UNKNOWN;
}

/*
 * What another user put in the place of the output would decide who reads it, or which file is replaced. Root must be
 * trusted in any case.
 */

static bool is_trusted(uid_t owner)
{
	return owner == geteuid() || owner == 0;
}

/* Nobody else can make the link, or replace it. */
static bool is_safe_link(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *directory = slash ? cli_path_join(path, (int)(slash - path + 1), "", ".")
				: cli_path_join("", 0, "", ".");
	struct stat link, around;
	bool is_safe = true;

	if (lstat(path, &link) == 0 && S_ISLNK(link.st_mode))
		is_safe = is_trusted(link.st_uid) && stat(directory, &around) == 0 &&
			  is_trusted(around.st_uid) &&
			  (!(around.st_mode & S_IWOTH) || (around.st_mode & S_ISVTX));
	free(directory);
	return is_safe;
}

/* /dev/stdout and /dev/stderr: whoever started the command opened them. */
static bool is_own_stream(const struct stat *st)
{
	struct stat stream;

	for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++)
		if (fstat(fd, &stream) == 0 && stream.st_dev == st->st_dev &&
		    stream.st_ino == st->st_ino)
			return true;
	return false;
}

/* null, full and the terminal: others may control hardware. */
static bool is_plain_device(const struct stat *st)
{
	return S_ISCHR(st->st_mode) &&
	       (st->st_rdev == makedev(1, 3) || st->st_rdev == makedev(1, 7) ||
		st->st_rdev == makedev(5, 0));
}

/* NULL: it may be written. `st`: what is there, links followed; NULL: nothing. */
static const char *output_refusal(const char *path, const struct stat *st)
{
	if (!is_safe_link(path))
		return "it is a symbolic link in a place where another user can change it";
	if (st == NULL || is_own_stream(st) || S_ISDIR(st->st_mode))
		return NULL;
	if (S_ISBLK(st->st_mode) || S_ISCHR(st->st_mode))
		return is_plain_device(st) ? NULL : "it is a device";
	return st->st_uid == geteuid() ? NULL : "it belongs to another user";
}

/* A device or a pipe cannot be renamed. */
static int open_directly(struct cli_output *output)
{
	int fd = open(output->path, O_WRONLY | O_CLOEXEC | O_NOCTTY);

	if (fd == -1)
		return open_failed(output, errno);
	output_begin(output, fd, true);
	return 0;
}

/* Replaces output->path by the target of a symbolic link. */
static int output_follow_link(struct cli_output *output)
{
	struct stat st;
	char *real;

	if (lstat(output->path, &st) == -1 || !S_ISLNK(st.st_mode))
		return 0;
	real = realpath(output->path, NULL);
	if (real == NULL)
		return open_failed(output, errno);
	free(output->path);
	output->path = real;
	return 0;
}

static int take_fd(struct cli_output *output, int fd, const struct stat *before)
{
	if (fd == -1)
		return open_failed(output, errno);
	/* Keep the permissions of one's own old file if possible; else those from the umask. */
	if (before != NULL && before->st_uid == geteuid() &&
	    fchmod(fd, before->st_mode & 0777) == -1)
		errno = 0;
	output_begin(output, fd, true);
	return 0;
}

static void add_pending(struct cli_output *output)
{
	char *temporary = cli_pending_name(output->path);

	output->pending = cli_pending_add(temporary, false, NULL);
	free(temporary);
}

static int open_beside(struct cli_output *output, const struct stat *before)
{
	int fd = cli_nameless_open(output->path);

	cli_pending_guard();
	output->is_nameless = fd != -1;
	if (fd == -1) {
		add_pending(output);
		fd = open(output->pending->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	}
	return take_fd(output, fd, before);
}

static int output_start(struct cli_output *output, const char *path, bool is_trial)
{
	const char *refusal;
	struct stat st;
	bool is_there;

	*output = (struct cli_output){ .path = cli_path_join("", 0, "", path), .fd = -1 };
	if (strcmp(path, "-") == 0) {
		output_begin(output, STDOUT_FILENO, false);
		return 0;
	}
	is_there = stat(output->path, &st) == 0;
	if (!is_there && errno != ENOENT)
		return open_failed(output, errno);
	refusal = output_refusal(output->path, is_there ? &st : NULL);
	if (refusal != NULL) {
		cli_error("cannot write %s: %s", path, refusal);
		free(output->path);
		*output = (struct cli_output){ .fd = -1 };
		return CLI_EXIT_USAGE;
	}
	/* A pipe may be reachable only through such a link: /dev/stdout, and >(command) of the shell. */
	if ((!is_there || S_ISREG(st.st_mode)) && output_follow_link(output) != 0)
		return CLI_EXIT_UNKNOWN;
	if (!is_there)
		return open_beside(output, NULL);
	if (S_ISDIR(st.st_mode))
		return open_failed(output, EISDIR);
	if (access(output->path, W_OK) == -1)
		return open_failed(output, errno);
	if (S_ISREG(st.st_mode))
		return open_beside(output, &st);
	/* Opening and closing a pipe as a test would look like its end to the reader. */
	return is_trial ? 0 : open_directly(output);
}

int cli_output_open(struct cli_output *output, const char *path)
{
	return output_start(output, path, false);
}

int cli_output_open_text(struct cli_output *output, const char *path)
{
	int exit_code = cli_output_open(output, path);

	if (exit_code == 0 && strcmp(path, "-") == 0)
		cli_text(&output->sink);
	return exit_code;
}

int cli_output_check(const char *path)
{
	struct cli_output output;
	int exit_code = output_start(&output, path, true);

	cli_output_discard(&output);
	return exit_code;
}

int cli_tree_file(struct cli_tree *tree, struct cli_output *output, const char *name)
{
	char *temporary = cli_tree_path(tree, name);

	*output = (struct cli_output){ .fd = -1 };
	if (temporary == NULL)
		return CLI_EXIT_UNKNOWN;
	free(temporary);
	output->path = cli_path_join(tree->path, (int)strlen(tree->path), "/", name);
	output->is_in_tree = true;
	output->pending = cli_pending_first();
	return take_fd(output,
		       open(output->pending->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666),
		       NULL);
}

static void output_release(struct cli_output *output)
{
	sink_release(&output->sink);
	if (output->is_own_fd)
		close(output->fd);
	free(output->path);
	*output = (struct cli_output){ .fd = -1 };
}

/*
 * Returns 0 or an errno. Network file systems report a full disk on close, so a duplicate descriptor is closed first;
 * the file can still be named afterwards. Data is flushed before naming: a power cut leaves no partial file.
 */
static int finish_writing(struct cli_output *output)
{
	int fd;

	if (sink_flush(&output->sink) != OK)
		return output->sink.error;
	fd = dup(output->fd);
	if (fd == -1 || close(fd) == -1)
		return errno;
	return output->is_nameless || output->pending ? cli_nameless_settle(output->fd) : 0;
}

/* Gives it a temporary name. Returns 0 or an errno. */
static int give_name(struct cli_output *output, int why_not)
{
	int error;

	add_pending(output);
	if (why_not == EEXIST)
		why_not = cli_nameless_link(output->fd, output->pending->path);
	if (why_not == 0)
		return 0;
	error = cli_nameless_copy(output->fd, output->pending->path);
	if (error == 0)
		cli_note("%s was written as a copy, because the file system could not name the "
			 "file: %s",
			 output->path, strerror(why_not));
	return error;
}

/*
 * Returns 0 or an errno. Replacing an existing file needs rename(), so the unnamed file gets a temporary name first.
 */
static int put_in_place(struct cli_output *output)
{
	int error;

	if (output->is_nameless) {
		error = cli_nameless_link(output->fd, output->path);
		if (error != 0)
			error = give_name(output, error);
		if (error != 0 || output->pending == NULL)
			return error;
	}
	return rename(output->pending->path, output->path) == -1 ? errno : 0;
}

int cli_output_commit(struct cli_output *output, int exit_code)
{
	bool is_moved = output->is_nameless || (output->pending && !output->is_in_tree);
	int error;

	if (output->path == NULL)
		return CLI_EXIT_UNKNOWN;
	if (output->fd == STDOUT_FILENO) {
		free(output->path);
		output->path = NULL;
		return cli_finish(&output->sink, exit_code);
	}
	error = finish_writing(output);
	if (error == 0 && is_moved)
		error = put_in_place(output);
	if (error != 0)
		exit_code = cannot_write(output->path, error);
	if (is_moved)
		cli_pending_drop(output->pending, error != 0);
	output_release(output);
	return exit_code;
}

void cli_output_discard(struct cli_output *output)
{
	if (output->path == NULL)
		return;
	cli_pending_drop(output->pending, true);
	output_release(output);
}

/* Directories of files: see struct cli_tree. */

static bool is_dots(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* -1 with errno if it is missing, not a directory or unreadable. */
static int is_empty(const char *path)
{
	DIR *directory = opendir(path);
	struct dirent *entry;
	int empty = 1;

	if (directory == NULL)
		return -1;
	while (empty && (entry = readdir(directory)) != NULL)
		empty = is_dots(entry->d_name);
	closedir(directory);
	return empty;
}

static void tree_release(struct cli_tree *tree)
{
	free(tree->path);
	free(tree->temporary);
	*tree = (struct cli_tree){ 0 };
}

static int give_up(struct cli_tree *tree, int error)
{
	cli_error("cannot write %s: %s", tree->path, strerror(error));
	cli_tree_discard(tree);
	return CLI_EXIT_UNKNOWN;
}

/* Creates missing parent directories of `path`. */
static int make_parents(const char *path)
{
	char *copy = cli_path_join("", 0, "", path);
	int failed = 0;

	for (char *at = strchr(copy + 1, '/'); at != NULL && !failed; at = strchr(at + 1, '/')) {
		*at = '\0';
		failed = mkdir(copy, 0777) == -1 && errno != EEXIST;
		*at = '/';
	}
	free(copy);
	return failed ? -1 : 0;
}

/* Next to the directory, or inside it if it stays: rename() must not cross file systems. */
static char *temporary_of(const struct cli_tree *tree)
{
	char *inside, *name;

	if (!tree->is_merged)
		return cli_pending_name(tree->path);
	inside = cli_path_join(tree->path, (int)strlen(tree->path), "/", "");
	name = cli_pending_name(inside);
	free(inside);
	return name;
}

int cli_tree_open(struct cli_tree *tree, const char *path, unsigned int flags)
{
	size_t length = strlen(path);
	struct stat st;
	int empty;

	while (length > 1 && path[length - 1] == '/')
		length--;
	*tree = (struct cli_tree){ .path = cli_path_join(path, (int)length, "", "") };
	/* The owner of a directory can replace what is in it. */
	if (!is_safe_link(tree->path) || (stat(tree->path, &st) == 0 && !is_trusted(st.st_uid))) {
		cli_error("cannot write %s: it belongs to another user, or is a symbolic link that "
			  "another user can change",
			  tree->path);
		tree_release(tree);
		return CLI_EXIT_USAGE;
	}
	empty = is_empty(tree->path);
	if (empty == -1 && errno != ENOENT)
		return give_up(tree, errno);
	if (empty == 0 && !(flags & CLI_OUTPUT_FORCE)) {
		cli_error("%s is not empty: choose another directory, or add --force", tree->path);
		tree_release(tree);
		return CLI_EXIT_UNKNOWN;
	}
	tree->is_merged = empty == 0;
	tree->temporary = temporary_of(tree);
	if (make_parents(tree->temporary) == -1)
		return give_up(tree, errno);
	tree->pending = cli_pending_add(tree->temporary, true, NULL);
	if (mkdir(tree->temporary, 0777) == -1)
		return give_up(tree, errno);
	return 0;
}

char *cli_tree_path(struct cli_tree *tree, const char *name)
{
	size_t root = strlen(tree->temporary);
	char *path = cli_path_join(tree->temporary, (int)root, "/", name);

	for (char *at = strchr(path + root + 1, '/'); at != NULL; at = strchr(at + 1, '/')) {
		*at = '\0';
		/* An existing one was made by an earlier call: no other process knows this directory. */
		if (access(path, F_OK) == -1) {
			cli_pending_add(path, true, tree->pending);
			if (mkdir(path, 0777) == -1) {
				cli_error("cannot create the directory %s%s: %s", tree->path,
					  path + root, strerror(errno));
				free(path);
				return NULL;
			}
		}
		*at = '/';
	}
	cli_pending_add(path, false, tree->pending);
	return path;
}

/* The final path. The caller frees it. */
static char *place_of(const struct cli_tree *tree, const struct cli_pending *pending)
{
	return cli_path_join(tree->path, (int)strlen(tree->path), "",
			     pending->path + strlen(tree->temporary));
}

/* Moves files into the existing directory and creates subdirectories as needed. */
static int move_file(const struct cli_tree *tree, const struct cli_pending *pending)
{
	char *place = place_of(tree, pending);
	int failed = make_parents(place) == -1 || rename(pending->path, place) == -1;
	int error = errno;

	free(place);
	return failed ? error : 0;
}

static bool is_moved(const struct cli_tree *tree, const char *path)
{
	for (const struct cli_pending *at = cli_pending_first(); at != NULL; at = at->next) {
		size_t root = strlen(tree->temporary);

		if (at->tree == tree->pending && !at->is_directory &&
		    strcmp(at->path + root, path + strlen(tree->path)) == 0)
			return true;
	}
	return false;
}

/* Removes files of an earlier run from directories that have new files. */
static void remove_replaced(const struct cli_tree *tree, const char *path)
{
	DIR *directory = opendir(path);
	struct dirent *entry;

	while (directory != NULL && (entry = readdir(directory)) != NULL) {
		char *file;

		if (strncmp(entry->d_name, tree->replaces, strlen(tree->replaces)) != 0)
			continue;
		file = cli_path_join(path, (int)strlen(path), "/", entry->d_name);
		if (!is_moved(tree, file))
			unlink(file);
		free(file);
	}
	if (directory != NULL)
		closedir(directory);
}

static int tree_merge(const struct cli_tree *tree)
{
	const struct cli_pending *at;
	int error = 0;

	for (at = cli_pending_first(); at != NULL && error == 0; at = at->next)
		if (at->tree == tree->pending && !at->is_directory)
			error = move_file(tree, at);
	if (error != 0 || tree->replaces == NULL)
		return error;
	for (at = cli_pending_first(); at != NULL; at = at->next) {
		char *place;

		if (at->tree != tree->pending || !at->is_directory)
			continue;
		place = place_of(tree, at);
		remove_replaced(tree, place);
		free(place);
	}
	return 0;
}

int cli_tree_commit(struct cli_tree *tree, int exit_code)
{
	int error = 0;

	if (tree->path == NULL)
		return CLI_EXIT_UNKNOWN;
	if (tree->is_merged)
		error = tree_merge(tree);
	else if (rename(tree->temporary, tree->path) == -1)
		error = errno;
	if (error != 0)
		return give_up(tree, error);
	/* Merged: the temporary directories are empty now and are removed. */
	cli_pending_drop(tree->pending, tree->is_merged);
	tree_release(tree);
	return exit_code;
}

void cli_tree_discard(struct cli_tree *tree)
{
	if (tree->path == NULL)
		return;
	cli_pending_drop(tree->pending, true);
	tree_release(tree);
}
