/*
 * Rights, system calls, listeners, the log and systemd. What changes the rights of a process is played, so that it is the
 * same for every user; the file is included for that. Sockets are real.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static long play_syscall(long number, ...);
static int play_prctl(int option, ...);
static int play_setgroups(size_t count, const gid_t *list);
static int play_setresgid(gid_t real, gid_t effective, gid_t saved);
static int play_setresuid(uid_t real, uid_t effective, uid_t saved);
static uid_t play_geteuid(void);
static gid_t play_getegid(void);
static struct passwd *play_getpwnam(const char *name);
static struct group *play_getgrnam(const char *name);
static int play_socket(int family, int kind, int protocol);

#define syscall play_syscall
#define prctl play_prctl
#define setgroups play_setgroups
#define setresgid play_setresgid
#define setresuid play_setresuid
#define geteuid play_geteuid
#define getegid play_getegid
#define getpwnam play_getpwnam
#define getgrnam play_getgrnam
#define socket(family, kind, protocol) play_socket(family, kind, protocol)
#include "serve/serve_system.c"
#undef syscall
#undef prctl
#undef socket

#include "common/text.h"
#include "tests/support/scratch.h"
#include "tests/tap.h"

/* ---- the stage -------------------------------------------------------------------------------- */

static struct {
	uid_t user;
	gid_t group;
	uint32_t permitted[2], effective[2], inheritable[2];
	uint64_t bounding, ambient;
	bool has_no_new_privs, keeps_capabilities, has_filter;
	int groups;
	/* The call that fails. */
	const char *failing;
	struct sock_filter filter[200];
	size_t filter_length;
	bool has_no_v6;
	int sockets;
} play;

static bool fails(const char *call)
{
	if (play.failing == NULL || strcmp(play.failing, call) != 0)
		return false;
	errno = EPERM;
	return true;
}

static long play_syscall(long number, ...)
{
	const struct __user_cap_header_struct *header;
	struct __user_cap_data_struct *data;
	va_list list;

	va_start(list, number);
	header = va_arg(list, const struct __user_cap_header_struct *);
	data = va_arg(list, struct __user_cap_data_struct *);
	va_end(list);
	if (header->version != _LINUX_CAPABILITY_VERSION_3 || header->pid != 0 ||
	    fails(number == SYS_capget ? "capget" : "capset"))
		return -1;
	for (int i = 0; i < 2; i++)
		if (number == SYS_capget) {
			data[i].permitted = play.permitted[i];
			data[i].effective = play.effective[i];
			data[i].inheritable = play.inheritable[i];
		} else {
			play.permitted[i] = data[i].permitted;
			play.effective[i] = data[i].effective;
			play.inheritable[i] = data[i].inheritable;
		}
	return 0;
}

static int play_prctl(int option, ...)
{
	const struct sock_fprog *program;
	unsigned long first;
	va_list list;

	va_start(list, option);
	first = va_arg(list, unsigned long);
	if (option == PR_CAPBSET_DROP) {
		play.bounding &= ~(UINT64_C(1) << first);
	} else if (option == PR_CAP_AMBIENT && first == PR_CAP_AMBIENT_CLEAR_ALL) {
		play.ambient = 0;
	} else if (option == PR_CAP_AMBIENT && first == PR_CAP_AMBIENT_RAISE) {
		play.ambient |= UINT64_C(1) << va_arg(list, unsigned long);
	} else if (option == PR_SET_KEEPCAPS) {
		play.keeps_capabilities = first == 1;
	} else if (option == PR_SET_NO_NEW_PRIVS) {
		play.has_no_new_privs = first == 1;
	} else if (option == PR_SET_SECCOMP && first == SECCOMP_MODE_FILTER) {
		program = va_arg(list, const struct sock_fprog *);
		play.has_filter = true;
		play.filter_length = program->len;
		memcpy(play.filter, program->filter, program->len * sizeof(play.filter[0]));
	}
	va_end(list);
	return fails(option == PR_SET_NO_NEW_PRIVS ? "no_new_privs"
		     : option == PR_SET_SECCOMP	   ? "seccomp"
		     : option == PR_SET_KEEPCAPS   ? "keepcaps"
						   : "")
		       ? -1
		       : 0;
}

static int play_setgroups(size_t count, const gid_t *list)
{
	play.groups = count == 1 ? (int)list[0] : -1;
	return fails("setgroups") ? -1 : 0;
}

static int play_setresgid(gid_t real, gid_t effective, gid_t saved)
{
	if (fails("setresgid") || real != effective || real != saved)
		return -1;
	play.group = real;
	return 0;
}

static int play_setresuid(uid_t real, uid_t effective, uid_t saved)
{
	if (fails("setresuid") || real != effective || real != saved)
		return -1;
	play.user = real;
	return 0;
}

static uid_t play_geteuid(void)
{
	return play.user;
}

static gid_t play_getegid(void)
{
	return play.group;
}

static struct passwd *play_getpwnam(const char *name)
{
	static struct passwd known = { .pw_uid = 70, .pw_gid = 71 };

	return strcmp(name, "ringside") == 0 ? &known : NULL;
}

static struct group *play_getgrnam(const char *name)
{
	static struct group known = { .gr_gid = 72 };

	return strcmp(name, "monitors") == 0 ? &known : NULL;
}

static int play_socket(int family, int kind, int protocol)
{
	if (play.has_no_v6 && family == AF_INET6) {
		errno = EAFNOSUPPORT;
		return -1;
	}
	if (fails("socket"))
		return -1;
	play.sockets++;
	return socket(family, kind, protocol);
}

static void begin(uid_t user)
{
	memset(&play, 0, sizeof(play));
	play.user = user;
	play.group = user;
	play.bounding = UINT64_MAX;
	play.ambient = 1;
	play.groups = -7;
	if (user == 0)
		for (int i = 0; i < 2; i++)
			play.permitted[i] = play.effective[i] = play.inheritable[i] = UINT32_MAX;
}

/* What is logged meanwhile. */
static char said[4000];
static int saved_stderr, log_fd = -1;

static void begin_log(void)
{
	char path[96];

	text_format(path, sizeof(path), "%s/log", scratch_dir.path);
	fflush(stderr);
	saved_stderr = dup(STDERR_FILENO);
	log_fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	dup2(log_fd, STDERR_FILENO);
}

static void end_log(void)
{
	ssize_t length = pread(log_fd, said, sizeof(said) - 1, 0);

	said[length > 0 ? length : 0] = '\0';
	dup2(saved_stderr, STDERR_FILENO);
	close(saved_stderr);
	close(log_fd);
}

static bool is_said(const char *wanted)
{
	if (strcmp(said, wanted) != 0)
		printf("# got %s\n", said);
	return strcmp(said, wanted) == 0;
}

/* ---- users and groups ------------------------------------------------------------------------- */

#define READS (1u << CAP_DAC_READ_SEARCH | 1u << CAP_SYS_PTRACE)
#define WRITES (1u << CAP_DAC_OVERRIDE)

static void test_find(void)
{
	struct serve_rights rights;

	EXPECT(serve_rights_find(&rights, NULL, NULL) == 0 && rights.user == (uid_t)-1 &&
	       rights.group == (gid_t)-1);
	EXPECT(serve_rights_find(&rights, "ringside", NULL) == 0 && rights.user == 70 &&
	       rights.group == 71);
	EXPECT(serve_rights_find(&rights, NULL, "monitors") == 0 && rights.user == (uid_t)-1 &&
	       rights.group == 72);
	EXPECT(serve_rights_find(&rights, "ringside", "monitors") == 0 && rights.user == 70 &&
	       rights.group == 72);
	begin_log();
	EXPECT(serve_rights_find(&rights, "nobody here", NULL) == 2);
	EXPECT(serve_rights_find(&rights, "ringside", "none") == 2);
	end_log();
	EXPECT(is_said("ringside-agent: --user nobody here: no such user\n"
		       "ringside-agent: --group none: no such group\n"));
}

static void test_drop(void)
{
	struct serve_rights rights = { .user = 70, .group = 71 };

	begin(0);
	EXPECT(serve_rights_drop(&rights) == 0 && play.user == 70 && play.group == 71 &&
	       play.groups == 71 && play.keeps_capabilities);
	EXPECT(play.permitted[0] == READS && play.effective[0] == READS &&
	       play.inheritable[0] == 0 && play.permitted[1] == 0 && play.effective[1] == 0 &&
	       play.inheritable[1] == 0);
	EXPECT(play.bounding == 0 && play.ambient == 0 && play.has_no_new_privs && play.has_filter);
	rights.must_write = true;
	begin(0);
	EXPECT(serve_rights_drop(&rights) == 0 && play.permitted[0] == (READS | WRITES));
	rights.must_hand_on = true;
	begin(0);
	EXPECT(serve_rights_drop(&rights) == 0 && play.bounding == READS);
	rights = (struct serve_rights){ .user = (uid_t)-1,
					.group = (gid_t)-1,
					.must_read_nothing = true };
	begin(0);
	EXPECT(serve_rights_drop(&rights) == 0 && play.user == 0 && play.groups == -7 &&
	       play.permitted[0] == 0 && !play.keeps_capabilities);
	begin(1000);
	rights = (struct serve_rights){ .user = 1000, .group = 1000 };
	EXPECT_THAT("who one is already needs no rights",
		    serve_rights_drop(&rights) == 0 && play.groups == -7 &&
			    !play.keeps_capabilities && play.permitted[0] == 0);
	begin(1000);
	rights.group = 5;
	EXPECT(serve_rights_drop(&rights) == 0 && play.group == 5 && play.groups == -7);
}

static void test_drop_fails(void)
{
	static const struct {
		const char *failing;
		uid_t user;
		int code;
		const char *said;
	} cases[] = {
		{ "setgroups", 0, 3, "cannot switch user: Operation not permitted" },
		{ "setresgid", 0, 3, "cannot switch user: Operation not permitted" },
		{ "setresuid", 1000, 3,
		  "cannot switch user: Operation not permitted; requires root" },
		{ "keepcaps", 0, 3, "cannot switch user: Operation not permitted" },
		{ "capset", 0, 3, "cannot drop capabilities: Operation not permitted" },
		{ "no_new_privs", 0, 3, "cannot drop capabilities: Operation not permitted" },
		{ "seccomp", 0, 0, "cannot restrict system calls: Operation not permitted" },
	};
	const struct serve_rights rights = { .user = 70, .group = 71 };
	char wanted[200];

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		begin(cases[i].user);
		play.failing = cases[i].failing;
		begin_log();
		EXPECT_EQUAL(serve_rights_drop(&rights), cases[i].code);
		end_log();
		text_format(wanted, sizeof(wanted), "ringside-agent: %s\n", cases[i].said);
		EXPECT_THAT(cases[i].failing, is_said(wanted));
	}
	begin(0);
	play.failing = "capget";
	EXPECT(!serve_rights_drop_all() && !rights_keep(1, 1) && !has_capabilities());
}

static void test_hand_on(void)
{
	begin(0);
	serve_rights_hand_on();
	EXPECT(play.permitted[0] == READS && play.inheritable[0] == READS &&
	       play.ambient == (READS | 1));
	EXPECT(serve_rights_drop_all() && play.permitted[0] == 0 && play.inheritable[0] == 0);
	begin(0);
	play.failing = "capset";
	serve_rights_hand_on();
	EXPECT(play.ambient == 1);
	begin(1000);
	EXPECT(!has_capabilities());
	play.permitted[1] = 1;
	EXPECT(has_capabilities());
	play.permitted[1] = 0;
	play.permitted[0] = 1;
	EXPECT(has_capabilities());
}

/* ---- system calls ----------------------------------------------------------------------------- */

/* What the filter says about a call; the few instructions that it has. */
static uint32_t judge(uint32_t architecture, uint32_t number)
{
	uint32_t value = 0;

	for (size_t i = 0; i < play.filter_length; i++) {
		const struct sock_filter *at = &play.filter[i];

		switch (at->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			value = at->k == offsetof(struct seccomp_data, arch) ? architecture
				: at->k == offsetof(struct seccomp_data, nr) ? number
									     : 0;
			break;
		case BPF_JMP | BPF_JEQ | BPF_K:
			i += value == at->k ? at->jt : at->jf;
			break;
		case BPF_JMP | BPF_JGE | BPF_K:
			i += value >= at->k ? at->jt : at->jf;
			break;
		case BPF_RET | BPF_K:
			return at->k;
		default:
			return 0;
		}
	}
	return 0;
}

static void test_filter(void)
{
#ifdef NATIVE
	static const uint32_t denied = SECCOMP_RET_ERRNO | EPERM;
	size_t wrong = 0;

	for (int is_privileged = 0; is_privileged < 2; is_privileged++) {
		begin(1000);
		EXPECT(serve_calls_limit(is_privileged == 1));
		for (size_t i = 0; i < ARRAY_LENGTH(never_called); i++)
			wrong += judge(NATIVE, never_called[i]) != denied;
		for (size_t i = 0; i < ARRAY_LENGTH(never_called_as_root); i++)
			wrong += judge(NATIVE, never_called_as_root[i]) !=
				 (is_privileged ? denied : SECCOMP_RET_ALLOW);
		EXPECT_EQUAL(wrong, 0);
		EXPECT(judge(NATIVE, SYS_read) == SECCOMP_RET_ALLOW &&
		       judge(NATIVE, SYS_clone) == SECCOMP_RET_ALLOW &&
		       judge(NATIVE, 0x3fffffff) == SECCOMP_RET_ALLOW);
		EXPECT_THAT("calls of another architecture, or of the second set, are denied",
			    judge(NATIVE + 1, SYS_read) == denied &&
				    judge(NATIVE, 0x40000000) == denied);
	}
	begin(0);
	EXPECT(serve_rights_drop(&(struct serve_rights){ .user = (uid_t)-1, .group = (gid_t)-1 }) ==
	       0);
#ifndef __SANITIZE_ADDRESS__
	EXPECT(judge(NATIVE, SYS_ptrace) == denied);
#endif
	EXPECT(serve_rights_drop(&(struct serve_rights){
		       .user = (uid_t)-1, .group = (gid_t)-1, .must_hand_on = true }) == 0);
	EXPECT_THAT("tools that read processes may trace",
		    judge(NATIVE, SYS_ptrace) == SECCOMP_RET_ALLOW);
	begin(1000);
	EXPECT(serve_rights_drop(&(struct serve_rights){ .user = (uid_t)-1, .group = (gid_t)-1 }) ==
	       0);
	EXPECT(judge(NATIVE, SYS_ptrace) == SECCOMP_RET_ALLOW);
#endif
}

/* ---- listeners -------------------------------------------------------------------------------- */

static struct web_address address_of(const char *name)
{
	struct web_address address;
	const char *why;
	char text[120];

	text_format(text, sizeof(text), name[0] == '/' ? "unix:%s%s" : "%s%s",
		    name[0] == '/' ? scratch_dir.path : "", name);
	if (web_address_parse(&address, text, &why) != OK)
		abort();
	return address;
}

static void test_unix(void)
{
	struct serve_listeners listeners = { .count = 0 };
	struct web_address address = address_of("/a.sock");
	char path[96], other[96];
	struct stat st;
	FILE *file;

	begin(1000);
	text_format(path, sizeof(path), "%s/a.sock", scratch_dir.path);
	text_format(other, sizeof(other), "%s/b.sock", scratch_dir.path);
	EXPECT(serve_listen_open(&listeners, &address, (gid_t)-1) == 0 && listeners.count == 1);
	EXPECT(lstat(path, &st) == 0 && S_ISSOCK(st.st_mode) && (st.st_mode & 0777) == 0660 &&
	       listeners.list[0].is_ours && listeners.list[0].inode == st.st_ino &&
	       listeners.list[0].device == st.st_dev);
	EXPECT((fcntl(listeners.list[0].fd, F_GETFL) & O_NONBLOCK) != 0 &&
	       (fcntl(listeners.list[0].fd, F_GETFD) & FD_CLOEXEC) != 0);
	begin_log();
	EXPECT_THAT("a socket that is in use is not taken",
		    serve_listen_open(&listeners, &address, (gid_t)-1) == 3);
	end_log();
	EXPECT(strstr(said, "a.sock: Address already in use; choose another with --listen\n"));
	close(listeners.list[1].fd);
	listeners.count = 1;
	rename(path, other);
	file = fopen(path, "we");
	fclose(file);
	serve_listen_close(&listeners);
	EXPECT_THAT("a file that is not ours stays",
		    access(path, F_OK) == 0 && listeners.count == 0);
	begin_log();
	EXPECT(serve_listen_open(&listeners, &address, (gid_t)-1) == 3);
	end_log();
	EXPECT(access(path, F_OK) == 0 && strstr(said, "Address already in use"));
	serve_listen_close(&listeners);
	remove(path);
	rename(other, path);
	EXPECT_THAT("a socket that nobody listens on is replaced",
		    serve_listen_open(&listeners, &address, getgid()) == 0 &&
			    lstat(path, &st) == 0 && st.st_gid == getgid());
	serve_listen_close(&listeners);
	EXPECT_THAT("our own is removed at the end", access(path, F_OK) == -1);
	begin_log();
	address = address_of("/none/a.sock");
	EXPECT(serve_listen_open(&listeners, &address, (gid_t)-1) == 3);
	play.failing = "socket";
	EXPECT(serve_listen_open(&listeners, &address, (gid_t)-1) == 3);
	end_log();
	EXPECT(strstr(said, "none/a.sock: No such file or directory\n") &&
	       strstr(said, "none/a.sock: Operation not permitted\n") && listeners.count == 1);
	serve_listen_close(&listeners);
}

static void test_ports(void)
{
	struct serve_listeners listeners = { .count = 0 };
	struct web_address address = address_of("127.0.0.1:0");
	int one = 0;
	socklen_t length = sizeof(one);

	begin(1000);
	EXPECT(serve_listen_open(&listeners, &address, (gid_t)-1) == 0);
	EXPECT(web_address_port(&listeners.list[0].address) > 0 &&
	       listeners.list[0].address.is_loopback && !listeners.list[0].is_ours);
	EXPECT(getsockopt(listeners.list[0].fd, SOL_SOCKET, SO_REUSEADDR, &one, &length) == 0 &&
	       one == 1);
	EXPECT(getsockopt(listeners.list[0].fd, SOL_SOCKET, SO_ACCEPTCONN, &one, &length) == 0 &&
	       one == 1);
	begin_log();
	address = listeners.list[0].address;
	EXPECT(serve_listen_open(&listeners, &address, (gid_t)-1) == 3);
	end_log();
	EXPECT(strstr(said, "; choose another with --listen\n"));
	serve_listen_close(&listeners);
	play.has_no_v6 = true;
	address = address_of(":0");
	EXPECT_THAT("all addresses, on a host without IPv6",
		    serve_listen_open(&listeners, &address, (gid_t)-1) == 0 &&
			    listeners.list[0].address.socket.ss_family == AF_INET &&
			    listeners.list[0].address.length == sizeof(struct sockaddr_in));
	serve_listen_close(&listeners);
	begin_log();
	address = address_of("[::1]:0");
	EXPECT_THAT("one IPv6 address does not become all",
		    serve_listen_open(&listeners, &address, (gid_t)-1) == 3);
	end_log();
	EXPECT_EQUAL(listeners.count, 0);
}

/* In a child: its descriptors from 3 on are sockets of systemd. */
static int inherit(const char *fds, bool is_ours, int listening, int *count)
{
	struct serve_listeners listeners = { .count = 0 };
	struct web_address address = address_of("127.0.0.1:0");
	char pid[24];
	int code;

	for (int i = 0; i < 3; i++) {
		int fd = socket(AF_INET, SOCK_STREAM, 0);

		bind(fd, (struct sockaddr *)&address.socket, address.length);
		if (i < listening)
			listen(fd, 1);
		dup2(fd, 20 + i);
		close(fd);
	}
	for (int i = 0; i < 3; i++) {
		dup2(20 + i, 3 + i);
		close(20 + i);
	}
	text_format(pid, sizeof(pid), "%d", (int)getpid() + !is_ours);
	setenv("LISTEN_PID", pid, 1);
	setenv("LISTEN_FDS", fds, 1);
	code = serve_listen_inherit(&listeners);
	*count = (int)listeners.count;
	for (size_t i = 0; i < listeners.count; i++)
		if (listeners.list[i].fd != 3 + (int)i || !listeners.list[i].address.is_loopback ||
		    (fcntl(3 + (int)i, F_GETFL) & O_NONBLOCK) == 0 ||
		    (fcntl(3 + (int)i, F_GETFD) & FD_CLOEXEC) == 0)
			return 99;
	return code;
}

static int result_of(const char *fds, bool is_ours, int listening)
{
	int status, count = 0;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (child == 0) {
		int code = inherit(fds, is_ours, listening, &count);

		_exit(code == -1 ? 50 + count : code == count ? code : 90);
	}
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_inherit(void)
{
	struct serve_listeners listeners = { .count = 0 };

	begin(1000);
	begin_log();
	EXPECT_EQUAL(result_of("2", true, 3), 2);
	EXPECT_EQUAL(result_of("0", true, 3), 0);
	EXPECT_EQUAL(result_of("3", true, 2), 52);
	EXPECT_EQUAL(result_of("2", false, 3), 0);
	EXPECT_EQUAL(result_of("8", true, 3), 53);
	EXPECT_EQUAL(result_of("9", true, 3), 50);
	EXPECT_EQUAL(result_of("x", true, 3), 50);
	end_log();
	EXPECT(strstr(said, "LISTEN_FDS: descriptor 5 is not a listening socket\n") &&
	       strstr(said, "LISTEN_FDS=9: at most 8 sockets are supported\n"));
	setenv("LISTEN_FDS", "1", 1);
	unsetenv("LISTEN_PID");
	EXPECT_EQUAL(serve_listen_inherit(&listeners), 0);
	unsetenv("LISTEN_FDS");
	setenv("LISTEN_PID", "1", 1);
	EXPECT_EQUAL(serve_listen_inherit(&listeners), 0);
	unsetenv("LISTEN_PID");
}

/* ---- the log and systemd ---------------------------------------------------------------------- */

static void test_log(void)
{
	const char *name = program_invocation_short_name;
	char stream[64];
	struct stat st;

	unsetenv("JOURNAL_STREAM");
	begin_log();
	EXPECT(serve_log(SERVE_WARNING, "one %d\ntwo", 7) == CLI_EXIT_UNKNOWN);
	program_invocation_short_name = "ringside-hub";
	serve_log(SERVE_INFO, "three");
	fstat(STDERR_FILENO, &st);
	text_format(stream, sizeof(stream), "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
	setenv("JOURNAL_STREAM", stream, 1);
	serve_log(SERVE_NOTICE, "four");
	setenv("JOURNAL_STREAM", "1:1", 1);
	serve_log(SERVE_NOTICE, "five");
	end_log();
	program_invocation_short_name = (char *)(uintptr_t)name;
	unsetenv("JOURNAL_STREAM");
	EXPECT(is_said("ringside-agent: one 7?two\nringside-hub: three\n<5>four\n"
		       "ringside-hub: five\n"));
}

static const char *notified(const char *path, const char *bound, size_t length)
{
	static char bytes[100];
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	ssize_t got;

	memcpy(address.sun_path, bound, length);
	if (bind(fd, (struct sockaddr *)&address,
		 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)) == -1)
		abort();
	setenv("NOTIFY_SOCKET", path, 1);
	serve_systemd_notify("STATUS=%d", 7);
	unsetenv("NOTIFY_SOCKET");
	got = recv(fd, bytes, sizeof(bytes) - 1, MSG_DONTWAIT);
	bytes[got > 0 ? got : 0] = '\0';
	close(fd);
	return bytes;
}

static void test_systemd(void)
{
	char path[120], name[60];

	begin(1000);
	text_format(path, sizeof(path), "%s/notify", scratch_dir.path);
	EXPECT(strcmp(notified(path, path, strlen(path) + 1), "STATUS=7") == 0);
	text_format(path, sizeof(path), "@ringside-test-%d", (int)getpid());
	text_copy(name, sizeof(name), path);
	name[0] = '\0';
	EXPECT(strcmp(notified(path, name, strlen(path)), "STATUS=7") == 0);
	play.sockets = 0;
	setenv("NOTIFY_SOCKET", "relative", 1);
	serve_systemd_notify("x");
	memset(path, 'x', sizeof(path) - 1);
	path[0] = '/';
	path[sizeof(path) - 1] = '\0';
	setenv("NOTIFY_SOCKET", path, 1);
	serve_systemd_notify("x");
	unsetenv("NOTIFY_SOCKET");
	serve_systemd_notify("x");
	EXPECT_EQUAL(play.sockets, 0);
}

static void test_watchdog(void)
{
	char pid[24];

	unsetenv("WATCHDOG_PID");
	unsetenv("WATCHDOG_USEC");
	EXPECT_EQUAL(serve_systemd_watchdog_ns(), 0);
	setenv("WATCHDOG_USEC", "0", 1);
	EXPECT_EQUAL(serve_systemd_watchdog_ns(), 0);
	setenv("WATCHDOG_USEC", "9223372036854775", 1);
	EXPECT_EQUAL(serve_systemd_watchdog_ns(), INT64_C(4611686018427387500));
	setenv("WATCHDOG_USEC", "9223372036854776", 1);
	EXPECT_EQUAL(serve_systemd_watchdog_ns(), 0);
	setenv("WATCHDOG_USEC", "30", 1);
	EXPECT_EQUAL(serve_systemd_watchdog_ns(), 15000);
	text_format(pid, sizeof(pid), "%d", (int)getpid());
	setenv("WATCHDOG_PID", pid, 1);
	EXPECT_EQUAL(serve_systemd_watchdog_ns(), 15000);
	setenv("WATCHDOG_PID", "1", 1);
	EXPECT_EQUAL(serve_systemd_watchdog_ns(), getpid() == 1 ? 15000 : 0);
	setenv("WATCHDOG_PID", "x", 1);
	EXPECT_EQUAL(serve_systemd_watchdog_ns(), 0);
	unsetenv("WATCHDOG_PID");
	unsetenv("WATCHDOG_USEC");
}

int main(void)
{
	scratch_make();
	test_find();
	test_drop();
	test_drop_fails();
	test_hand_on();
	test_filter();
	test_unix();
	test_ports();
	test_inherit();
	test_log();
	test_systemd();
	test_watchdog();
	return tap_done();
}
