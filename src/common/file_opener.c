/* A helper process that opens files: asking it, and what happens if it does not answer. */
#include "common/file_opener.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/attributes.h"
#include "common/child.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/hash.h"
#include "common/text.h"

enum { SILENT_MAX = 64, LOCAL_MAX = 16, TAKEN_MAX = 64, MILLISECOND_NS = 1000000 };
#define TAKEN_NS UINT64_C(1000000000)

/* A question as it is sent, with the directory's descriptor if there is one. */
struct sent_question {
	struct file_question question;
	char path[PATH_MAX];
};

/* The file as well, and whether asking more of its file system, or of the rest of this directory, can take no time. */
struct sent_answer {
	struct file_answer answer;
	uint64_t device;
	bool is_local;
};

/* Who is not asked again: a user, or a directory whose files nobody chose for us. */
struct silent {
	uint64_t key;
	bool is_user;
	uint32_t uid;
	pid_t helper; /* that waits for them; 0: it is gone */
	uint64_t until_ns;
};

/* The time that waiting for answers has taken since. */
struct taken {
	uint64_t key;
	uint64_t since_ns, ns;
};

static struct {
	struct file_opener_settings settings;
	pid_t owner; /* that started it: a forked child needs its own */
	pid_t helper;
	int socket;
	struct silent silent[SILENT_MAX];
	size_t silent_count;
	uint64_t local_devices[LOCAL_MAX], local_directories[LOCAL_MAX]; /* the latest */
	size_t local_count;
	struct taken taken[TAKEN_MAX],
		taken_by_all; /* by key: of two with the same place, the latest */
} opener = { .socket = -1 };

/* ---- messages --------------------------------------------------------------------------------- */

/* A message with a descriptor or without (-1). */
static bool send_with(int socket, const void *bytes, size_t size, int fd)
{
	struct iovec part = { .iov_base = (void *)(uintptr_t)bytes, .iov_len = size };
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { .bytes = { 0 } };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	struct cmsghdr *head;

	if (fd >= 0) {
		message.msg_control = control.bytes;
		message.msg_controllen = sizeof(control.bytes);
		head = CMSG_FIRSTHDR(&message);
		head->cmsg_level = SOL_SOCKET;
		head->cmsg_type = SCM_RIGHTS;
		head->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(head), &fd, sizeof(fd));
	}
	while (true) {
		ssize_t sent = sendmsg(socket, &message, MSG_NOSIGNAL);

		if (sent != -1 || errno != EINTR)
			return sent == (ssize_t)size;
	}
}

static bool receive_with(int socket, void *bytes, size_t size, int *fd)
{
	struct iovec part = { .iov_base = bytes, .iov_len = size };
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct msghdr message = { .msg_iov = &part,
				  .msg_iovlen = 1,
				  .msg_control = control.bytes,
				  .msg_controllen = sizeof(control.bytes) };
	struct cmsghdr *head;
	ssize_t got;

	*fd = -1;
	do
		got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
	while (got == -1 && errno == EINTR);
	head = got > 0 ? CMSG_FIRSTHDR(&message) : NULL;
	if (head != NULL && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS)
		memcpy(fd, CMSG_DATA(head), sizeof(*fd));
	return got == (ssize_t)size;
}

/* ---- the helper ------------------------------------------------------------------------------- */

/* What a file contains is somewhere else than its name: only reading it shows whether it can be read. */
static void try_content(const struct file_question *question, int fd)
{
	char byte;
	DIR *list;

	if (question->kind == FILE_ASK_DIRECTORY) {
		list = fdopendir(dup(fd));
		if (list != NULL && readdir(list) != NULL)
			rewinddir(list);
		if (list != NULL)
			closedir(list);
	} else if (pread(fd, &byte, 1, 0) == -1) {
		/* Its reader will find out, too. */
		errno = 0;
	}
}

/* File systems on disks and in memory of this machine. */
static bool is_local(int fd)
{
	static const uint64_t magics[] = { 0xef53,     0x58465342, 0x9123683e,
					   0x01021994, 0x858458f6, 0x2fc12fc1 };
	/* ext2 to ext4, XFS, Btrfs, tmpfs, ramfs, ZFS */
	struct statfs fs;

	if (fstatfs(fd, &fs) == -1)
		return false;
	for (size_t i = 0; i < ARRAY_LENGTH(magics); i++)
		if ((uint64_t)fs.f_type == magics[i])
			return true;
	return false;
}

static void examine(const struct file_question *question, struct sent_answer *sending)
{
	int fd = sending->answer.fd;
	struct stat st;

	try_content(question, fd);
	sending->is_local = is_local(fd) && fstat(fd, &st) == 0;
	sending->device = sending->is_local ? st.st_dev : 0;
}

static void serve(int socket) __attribute__((noreturn));
static void serve(int socket)
{
	static struct sent_question sent;
	struct sent_answer sending;
	int directory;

	/* Whoever waits for the end of our output must not wait for a helper that is left behind. */
	child_close_files(socket);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	signal(SIGTSTP, SIG_IGN);
	while (receive_with(socket, &sent, sizeof(sent), &directory)) {
		sent.question.path = sent.path;
		sent.question.directory = directory != -1 ? directory : AT_FDCWD;
		memset(&sending, 0, sizeof(sending));
		file_answer(&sent.question, &sending.answer);
		if (sending.answer.fd != -1)
			examine(&sent.question, &sending);
		if (!send_with(socket, &sending, sizeof(sending), sending.answer.fd))
			break;
		if (sending.answer.fd != -1)
			close(sending.answer.fd);
		if (directory != -1)
			close(directory);
	}
	_exit(0);
}

static bool start_helper(void)
{
	int sockets[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) == -1)
		return false;
	opener.owner = getpid();
	opener.helper = fork();
	if (opener.helper == 0)
		serve(sockets[1]);
	close(sockets[1]);
	if (opener.helper == -1) {
		opener.helper = 0;
		close(sockets[0]);
		return false;
	}
	opener.socket = sockets[0];
	return true;
}

/* In a forked child, the helper is its parent's, and the socket's number may be something else by now. */
static bool has_helper(void)
{
	return opener.helper > 0 && opener.owner == getpid();
}

static void end_helper(void)
{
	close(opener.socket);
	kill(opener.helper, SIGKILL);
	opener.helper = 0;
}

void file_opener_rest(void)
{
	pid_t helper = opener.helper;

	if (!has_helper())
		return;
	end_helper();
	/* It had nothing to do, so it can be killed. */
	waitpid(helper, NULL, 0);
}

/* ---- who does not answer ---------------------------------------------------------------------- */

static uint64_t key_of_directory(int directory)
{
	char path[PATH_MAX + 64], link[64];
	ssize_t length;

	text_format(link, sizeof(link), "/proc/self/fd/%d", directory);
	length = readlink(link, path, sizeof(path));
	return hash_bytes(path, length > 0 ? (size_t)length : 0);
}

/* Its user, if that user chose the path. Else what the caller names: a path, or a directory with all in it. */
static uint64_t key_of(const struct file_question *question)
{
	const char *end;

	if (question->has_owner)
		return hash_bytes(&question->owner, sizeof(question->owner));
	if (question->directory >= 0)
		return key_of_directory(question->directory);
	end = strrchr(question->path, '/');
	return hash_bytes(question->path, question->kind == FILE_ASK_SAME && end != NULL
						  ? (size_t)(end - question->path)
						  : strlen(question->path));
}

static bool is_over(struct silent *silent, uint64_t now_ns)
{
	if (silent->helper != 0 && waitpid(silent->helper, NULL, WNOHANG) != 0)
		silent->helper = 0;
	return silent->helper == 0 && now_ns >= silent->until_ns;
}

static void forget_over(uint64_t now_ns)
{
	size_t kept = 0;

	for (size_t i = 0; i < opener.silent_count; i++)
		if (!is_over(&opener.silent[i], now_ns))
			opener.silent[kept++] = opener.silent[i];
	opener.silent_count = kept;
}

/* Also everybody, while there are too many: each helper that is left behind is a process. */
static bool is_silent(uint64_t key)
{
	for (size_t i = 0; i < opener.silent_count; i++)
		if (opener.silent[i].key == key)
			return true;
	return opener.silent_count == SILENT_MAX;
}

static bool is_used_up(struct taken *taken, uint64_t key, uint64_t most_ns)
{
	uint64_t now_ns = clock_system_ns(CLOCK_MONOTONIC);

	if (taken->key != key || now_ns - taken->since_ns >= TAKEN_NS)
		*taken = (struct taken){ .key = key, .since_ns = now_ns };
	return most_ns > 0 && taken->ns >= most_ns;
}

static bool has_no_time(uint64_t key)
{
	return is_used_up(&opener.taken[key % TAKEN_MAX], key, opener.settings.each_ns) ||
	       is_used_up(&opener.taken_by_all, 0, opener.settings.all_ns);
}

static void leave_helper(const struct file_question *question, uint64_t key)
{
	opener.silent[opener.silent_count++] = (struct silent){
		.key = key,
		.is_user = question->has_owner,
		.uid = question->owner,
		.helper = opener.helper,
		.until_ns = opener.settings.penalty_ns == 0
				    ? UINT64_MAX
				    : clock_system_ns(CLOCK_MONOTONIC) + opener.settings.penalty_ns,
	};
	end_helper();
}

bool file_opener_avoids(uint32_t uid)
{
	uint64_t key = key_of(&(struct file_question){ .has_owner = true, .owner = uid });

	forget_over(clock_system_ns(CLOCK_MONOTONIC));
	return is_silent(key) || has_no_time(key);
}

size_t file_opener_silent(struct file_opener_silent *list, size_t most)
{
	size_t count = 0;

	forget_over(clock_system_ns(CLOCK_MONOTONIC));
	for (size_t i = 0; i < opener.silent_count && count < most; i++)
		list[count++] = (struct file_opener_silent){ opener.silent[i].is_user,
							     opener.silent[i].uid };
	return count;
}

/* ---- what answers at once --------------------------------------------------------------------- */

static void note_local(const struct file_question *question, uint64_t device, int fd)
{
	size_t at = opener.local_count++ % LOCAL_MAX;

	opener.local_devices[at] = device;
	opener.local_directories[at] =
		question->kind == FILE_ASK_DIRECTORY ? key_of_directory(fd) : 0;
}

static bool has_word(const uint64_t *list, uint64_t word)
{
	for (size_t i = 0; i < LOCAL_MAX && i < opener.local_count; i++)
		if (list[i] == word)
			return true;
	return false;
}

/* In such a directory, something else may be mounted: that is asked for. */
static bool is_known_local(const struct file_question *question, uint64_t key)
{
	int place;

	if (question->kind == FILE_ASK_SAME)
		return has_word(opener.local_devices, question->device);
	if (question->kind != FILE_ASK_ANY || question->directory < 0 ||
	    !has_word(opener.local_directories, key))
		return false;
	place = file_open_inside(question->directory, question->path, O_PATH);
	if (place != -1)
		close(place);
	return place != -1;
}

/* ---- asking ----------------------------------------------------------------------------------- */

static bool send_question(const struct file_question *question)
{
	static struct sent_question sent;

	sent.question = *question;
	return text_copy(sent.path, sizeof(sent.path), question->path) &&
	       send_with(opener.socket, &sent, sizeof(sent), question->directory);
}

/* False: not in time. */
static bool wait_for_answer(uint64_t key)
{
	uint64_t begun_ns = clock_system_ns(CLOCK_MONOTONIC), now_ns = begun_ns, taken_ns;
	struct pollfd answer = { .fd = opener.socket, .events = POLLIN };
	bool is_there = false;

	while (!is_there && now_ns < begun_ns + opener.settings.patience_ns) {
		int left_ms =
			(int)((begun_ns + opener.settings.patience_ns - now_ns) / MILLISECOND_NS) +
			1;

		is_there = poll(&answer, 1, left_ms) > 0;
		now_ns = clock_system_ns(CLOCK_MONOTONIC);
	}
	taken_ns = now_ns - begun_ns;
	opener.taken[key % TAKEN_MAX].ns += taken_ns;
	opener.taken_by_all.ns += taken_ns;
	return is_there;
}

static bool ask_helper(const struct file_question *question, uint64_t key,
		       struct file_answer *answer)
{
	struct sent_answer sent;
	int fd;

	if (!send_question(question))
		return false;
	if (!wait_for_answer(key)) {
		leave_helper(question, key);
		return true;
	}
	if (!receive_with(opener.socket, &sent, sizeof(sent), &fd))
		return false;
	*answer = sent.answer;
	answer->fd = fd;
	if (sent.is_local)
		note_local(question, sent.device, fd);
	return true;
}

static bool ask_other(const struct file_question *question, struct file_answer *answer)
{
	bool is_text = question->kind == FILE_ASK_TEXT || question->kind == FILE_ASK_DIRECT_TEXT;

	uint64_t key = key_of(question);

	if ((opener.settings.only_texts && !is_text) || is_known_local(question, key))
		return false;
	forget_over(clock_system_ns(CLOCK_MONOTONIC));
	*answer = (struct file_answer){ .fd = -1, .error = ETIMEDOUT };
	if (is_silent(key) || has_no_time(key))
		return true;
	/* Somebody may have killed it; then the next one is asked. */
	for (int i = 0; i < 2; i++) {
		if (!has_helper() && !start_helper())
			return false;
		if (ask_helper(question, key, answer))
			return true;
		file_opener_rest();
	}
	return false;
}

void file_opener_begin(const struct file_opener_settings *settings)
{
	opener.settings = *settings;
	file_ask_other = ask_other;
}
