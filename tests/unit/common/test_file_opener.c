/* The helper that opens files: what it answers, and what happens if it does not. A silent file system is played by stopping the
 * helper; the file is included for that. */
#include "common/file_opener.c"

#include "tests/tap.h"

static char directory[64];

static const char *path_of(const char *name)
{
	static char path[128];

	text_format(path, sizeof(path), "%s/%s", directory, name);
	return path;
}

static void write_file(const char *name, const char *text)
{
	FILE *file = fopen(path_of(name), "w");

	fputs(text, file);
	fclose(file);
}

static void begin_with(uint64_t penalty_ns, bool only_texts)
{
	file_opener_rest();
	opener.silent_count = 0;
	opener.local_count = 0;
	memset(opener.taken, 0, sizeof(opener.taken));
	memset(&opener.taken_by_all, 0, sizeof(opener.taken_by_all));
	file_opener_begin(&(struct file_opener_settings){ .patience_ns = 100 * MILLISECOND_NS,
							  .penalty_ns = penalty_ns,
							  .only_texts = only_texts });
}

/* The error with which the text of this user's file is read; 0: it is "text". */
static int error_of(uint32_t user, const char *name)
{
	struct stat st;
	size_t length = 0;
	char *text = file_text_of(user, path_of(name), false, 100, &length, &st);
	int error = text != NULL ? 0 : errno;

	if (text != NULL && (strcmp(text, "text") != 0 || length != 4 || st.st_size != 4))
		error = -1;
	free(text);
	return error;
}

static void stop_helper(void)
{
	error_of(1, "file");
	kill(opener.helper, SIGSTOP);
}

static bool closes(int fd)
{
	return fd != -1 && close(fd) == 0;
}

static void test_answers(void)
{
	struct stat st;
	const char *why;
	struct dirent *entry;
	size_t names = 0;
	DIR *list;
	int fd;

	begin_with(0, false);
	EXPECT_THAT("a file is opened", closes(file_open(AT_FDCWD, path_of("file"), false)));
	EXPECT_THAT("by the helper", has_helper());
	EXPECT_THAT("one that is not there is not",
		    (file_open(AT_FDCWD, path_of("none"), false) == -1 ? errno : 0) == ENOENT);
	EXPECT_THAT("nor is a link",
		    (file_open(AT_FDCWD, path_of("link"), false) == -1 ? errno : 0) == ELOOP);
	EXPECT_THAT("nor a pipe",
		    (file_open(AT_FDCWD, path_of("pipe"), false) == -1 ? errno : 0) == EINVAL);
	EXPECT_THAT("nor a directory",
		    (file_open(AT_FDCWD, directory, false) == -1 ? errno : 0) == EISDIR);
	EXPECT_THAT("a link is, where that is allowed",
		    closes(file_open(AT_FDCWD, path_of("link"), true)));
	fd = file_open_directory(AT_FDCWD, directory, false);
	EXPECT_THAT("a file in a directory is opened", closes(file_open(fd, "file", false)));
	close(fd);
	stat(path_of("file"), &st);
	EXPECT_THAT("the same file is opened",
		    closes(file_open_same(path_of("file"), st.st_dev, st.st_ino)));
	EXPECT_THAT("another one is not",
		    !closes(file_open_same(path_of("file"), st.st_dev, st.st_ino + 1)));
	EXPECT_THAT("a user's file is opened",
		    closes(file_open_for(getuid(), path_of("file"), &why)));
	EXPECT_THAT("another user's is not, and why is reported",
		    file_open_for(getuid() + 1, path_of("file"), &why) == -1 && why != NULL);
	EXPECT_THAT("a file without links is opened", closes(file_open_direct(path_of("file"))));
	list = file_list(directory);
	while (list != NULL && (entry = readdir(list)) != NULL)
		names++;
	EXPECT_THAT("a directory is listed from its beginning", names == 7);
	closedir(list);
	EXPECT_THAT("a text is read", error_of(1, "file") == 0);
	EXPECT_THAT("one that is not there is not", error_of(1, "none") == ENOENT);
	EXPECT_THAT("nor one that is too large", error_of(1, "large") == EFBIG);
	EXPECT_THAT(
		"nor one behind a link, if it may not be",
		(file_text_of(1, path_of("link"), true, 100, &names, &st) == NULL ? errno : 0) ==
			ELOOP);
	EXPECT_THAT("a file is examined",
		    file_examine(-1, path_of("large"), &st) && st.st_size == 101);
	EXPECT_THAT("our own descriptors are not asked for",
		    closes(file_open(AT_FDCWD, "/dev/fd/0", true)) || errno == EINVAL);
}

static void test_silence(void)
{
	struct file_opener_silent silent[2];
	pid_t before;

	begin_with(0, false);
	stop_helper();
	before = opener.helper;
	EXPECT_THAT("who does not answer is left", error_of(1, "file") == ETIMEDOUT);
	EXPECT_THAT("with the helper",
		    kill(before, 0) == -1 || waitpid(before, NULL, WNOHANG) >= 0);
	EXPECT_THAT("and not asked again", file_opener_avoids(1));
	EXPECT_THAT("not for another file either", error_of(1, "none") == ETIMEDOUT);
	EXPECT_THAT("others are", !file_opener_avoids(2));
	EXPECT_THAT("and the next helper answers", error_of(2, "file") == 0);
	EXPECT_THAT("also for paths of our own",
		    closes(file_open(AT_FDCWD, path_of("file"), false)));
	EXPECT_THAT("it is known who did not answer",
		    file_opener_silent(silent, 2) == 1 && silent[0].is_user && silent[0].uid == 1);
	EXPECT_THAT("and said",
		    strcmp(file_error_text(ETIMEDOUT), "its file system does not answer") == 0);
}

static void test_penalty(void)
{
	begin_with(300 * (uint64_t)MILLISECOND_NS, false);
	stop_helper();
	EXPECT_THAT("for a while", error_of(1, "file") == ETIMEDOUT);
	while (file_opener_avoids(1))
		poll(NULL, 0, 10);
	EXPECT_THAT("a user is not asked, and then again", error_of(1, "file") == 0);
}

/* As long as a helper cannot be killed, its user's penalty goes on. */
static void test_stuck_helper(void)
{
	begin_with(1, false);
	opener.silent[opener.silent_count++] = (struct silent){
		.key = key_of(&(struct file_question){ .has_owner = true, .owner = 3 }),
		.is_user = true,
		.uid = 3,
		.helper = fork(),
		.until_ns = 1,
	};
	if (opener.silent[0].helper == 0)
		while (true)
			pause();
	EXPECT_THAT("a user that a helper still waits for is not asked", file_opener_avoids(3));
	kill(opener.silent[0].helper, SIGKILL);
	while (file_opener_avoids(3))
		poll(NULL, 0, 1);
	EXPECT_THAT("but once it is gone", true);
}

static void test_many(void)
{
	begin_with(0, false);
	for (uint32_t user = 100; user < 100 + SILENT_MAX; user++)
		opener.silent[opener.silent_count++] = (struct silent){
			.key = key_of(&(struct file_question){ .has_owner = true, .owner = user }),
			.until_ns = UINT64_MAX,
		};
	EXPECT_THAT("with too many helpers left behind, nobody is asked",
		    error_of(5, "file") == ETIMEDOUT);
	opener.silent_count--;
	EXPECT_THAT("with one less, others are", error_of(5, "file") == 0);
}

/* Many answers that each come in time take as long as one that does not. */
static void test_slow(void)
{
	begin_with(0, false);
	opener.settings.each_ns = 1;
	EXPECT_THAT("a user's first question is asked", error_of(1, "file") == 0);
	EXPECT_THAT("with the time for that user used up, the next one is not",
		    error_of(1, "file") == ETIMEDOUT && file_opener_avoids(1));
	EXPECT_THAT("but those of others", error_of(2, "file") == 0);
	EXPECT_THAT("nobody is silent",
		    file_opener_silent(NULL, 0) == 0 && opener.silent_count == 0);
	while (file_opener_avoids(1))
		poll(NULL, 0, 10);
	EXPECT_THAT("a second later it is asked again", error_of(1, "file") == 0);
	begin_with(0, false);
	opener.settings.all_ns = 1;
	EXPECT_THAT("with the time for all used up, nobody is asked",
		    error_of(1, "file") == 0 && error_of(2, "file") == ETIMEDOUT &&
			    file_opener_avoids(2));
	while (file_opener_avoids(2))
		poll(NULL, 0, 10);
	EXPECT_THAT("for a second", error_of(2, "file") == 0);
}

static void test_directories(void)
{
	begin_with(0, false);
	stop_helper();
	EXPECT_THAT("a path of our own does not answer",
		    (file_open(AT_FDCWD, path_of("file"), false) == -1 ? errno : 0) == ETIMEDOUT);
	EXPECT_THAT("and is not asked again",
		    (file_open(AT_FDCWD, path_of("file"), false) == -1 ? errno : 0) == ETIMEDOUT);
	EXPECT_THAT("users are", error_of(1, "file") == 0);
	EXPECT_THAT("and other paths", closes(file_open(AT_FDCWD, path_of("large"), false)));
}

static void test_local(void)
{
	struct stat st;
	int fd;

	begin_with(0, false);
	fd = file_open_directory(AT_FDCWD, directory, false);
	if (!is_local(fd)) {
		EXPECT_THAT("this directory is not on a disk # SKIP", true);
		return;
	}
	fstat(fd, &st);
	file_opener_rest();
	EXPECT_THAT("a file on the same disk is opened directly",
		    closes(file_open(fd, "file", false)) && !has_helper());
	stat(path_of("file"), &st);
	EXPECT_THAT("also if its path is given",
		    closes(file_open_same(path_of("file"), st.st_dev, st.st_ino)) && !has_helper());
	EXPECT_THAT("other paths may be elsewhere",
		    closes(file_open(AT_FDCWD, path_of("file"), false)) && has_helper());
	close(fd);
}

static void test_processes(void)
{
	int status = 0;
	pid_t child, before;

	begin_with(0, true);
	EXPECT_THAT("only texts are the helper's, if so wished",
		    closes(file_open(AT_FDCWD, path_of("file"), false)) && !has_helper());
	EXPECT_THAT("texts are", error_of(1, "file") == 0);
	before = opener.helper;
	kill(before, SIGKILL);
	waitpid(before, NULL, 0);
	EXPECT_THAT("somebody killed the helper: another one answers",
		    error_of(1, "file") == 0 && opener.helper != before);
	before = opener.helper;
	child = fork();
	if (child == 0)
		_exit(error_of(1, "file") == 0 && opener.helper != before ? 7 : 1);
	waitpid(child, &status, 0);
	EXPECT_THAT("a forked child has its own", WEXITSTATUS(status) == 7);
	EXPECT_THAT("its parent keeps the first",
		    error_of(1, "file") == 0 && opener.helper == before);
	file_opener_rest();
	EXPECT_THAT("nothing is left of it", !has_helper() && waitpid(before, NULL, WNOHANG) == -1);
	file_opener_rest();
	file_ask_other = NULL;
}

int main(void)
{
	text_copy(directory, sizeof(directory), "/tmp/ringside-opener-XXXXXX");
	if (mkdtemp(directory) == NULL)
		return 1;
	write_file("file", "text");
	write_file("large", "1234567890123456789012345678901234567890123456789012345678901234567890"
			    "1234567890123456789012345678901");
	write_file("more", "");
	if (symlink("file", path_of("link")) == -1 || mkfifo(path_of("pipe"), 0600) == -1)
		return 1;
	test_answers();
	test_silence();
	test_penalty();
	test_stuck_helper();
	test_many();
	test_slow();
	test_directories();
	test_local();
	test_processes();
	unlink(path_of("file"));
	unlink(path_of("large"));
	unlink(path_of("more"));
	unlink(path_of("link"));
	unlink(path_of("pipe"));
	rmdir(directory);
	return tap_done();
}
