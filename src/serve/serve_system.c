/* Log, systemd, privileges, listening sockets. */
#include "serve/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "cli/cli.h"
#include "common/attributes.h"
#include "common/text.h"

/* JOURNAL_STREAM is inherited: it only applies if stderr is still that stream. */
static bool is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	char own[64];
	struct stat st;

	if (stream == NULL || fstat(STDERR_FILENO, &st) == -1)
		return false;
	text_format(own, sizeof(own), "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
	return strcmp(stream, own) == 0;
}

int serve_log(enum serve_level level, const char *format, ...)
{
	char line[3072], whole[3124];
	va_list values;
	ssize_t wrote;

	va_start(values, format);
	vsnprintf(line, sizeof(line), format, values);
	va_end(values);
	text_clean(line);
	if (is_journal())
		text_format(whole, sizeof(whole), "<%d>%s\n", (int)level, line);
	else
		text_format(whole, sizeof(whole), "%s: %s\n",
			    strcmp(program_invocation_short_name, "ringside-hub") == 0
				    ? "ringside-hub"
				    : "ringside-agent",
			    line);
	/* In one write. There is no way to report a failure. */
	wrote = write(STDERR_FILENO, whole, strlen(whole));
	(void)wrote;
	return CLI_EXIT_UNKNOWN;
}

void serve_systemd_notify(const char *format, ...)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	char message[512];
	va_list values;
	socklen_t length;
	int fd;

	if (path == NULL || (path[0] != '/' && path[0] != '@') ||
	    !text_copy(to.sun_path, sizeof(to.sun_path), path))
		return;
	va_start(values, format);
	vsnprintf(message, sizeof(message), format, values);
	va_end(values);
	length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
	/* An abstract name begins with a zero byte and has no terminator. */
	if (path[0] == '@')
		to.sun_path[0] = '\0';
	else
		length++;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd == -1)
		return;
	sendto(fd, message, strlen(message), MSG_NOSIGNAL, (struct sockaddr *)&to, length);
	close(fd);
}

uint64_t serve_systemd_watchdog_ns(void)
{
	const char *interval = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
	int64_t us, for_pid;

	if (interval == NULL || text_number(interval, 1, INT64_MAX / 1000, &us) != OK)
		return 0;
	if (pid && (text_number(pid, 1, INT32_MAX, &for_pid) != OK || for_pid != getpid()))
		return 0;
	return (uint64_t)us * 1000 / 2;
}

#define KEPT (1u << CAP_DAC_READ_SEARCH | 1u << CAP_SYS_PTRACE)
#define KEPT_TO_WRITE (1u << CAP_DAC_OVERRIDE)
_Static_assert(CAP_DAC_READ_SEARCH < 32 && CAP_SYS_PTRACE < 32 && CAP_DAC_OVERRIDE < 32,
	       "capabilities must be in the lower word");

int serve_rights_find(struct serve_rights *rights, const char *user, const char *group)
{
	struct passwd *known_user;
	struct group *known_group;

	rights->user = (uid_t)-1;
	rights->group = (gid_t)-1;
	if (user) {
		known_user = getpwnam(user);
		if (known_user == NULL) {
			serve_log(SERVE_ERROR, "--user %s: no such user", user);
			return 2;
		}
		rights->user = known_user->pw_uid;
		rights->group = known_user->pw_gid;
	}
	if (group) {
		known_group = getgrnam(group);
		if (known_group == NULL) {
			serve_log(SERVE_ERROR, "--group %s: no such group", group);
			return 2;
		}
		rights->group = known_group->gr_gid;
	}
	return 0;
}

static bool has_capabilities(void)
{
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[2] = { { 0 } };

	return syscall(SYS_capget, &header, data) == 0 &&
	       (data[0].permitted | data[1].permitted) != 0;
}

/* Permitted and effective sets are reduced to `kept`; only what is in `inheritable` is. */
static bool rights_keep(uint32_t kept, uint32_t inheritable)
{
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[2] = { { 0 } };

	if (syscall(SYS_capget, &header, data) == -1)
		return false;
	data[0].permitted &= kept;
	data[0].effective = data[0].permitted;
	data[0].inheritable = data[0].permitted & inheritable;
	data[1] = (struct __user_cap_data_struct){ 0 };
	return syscall(SYS_capset, &header, data) == 0;
}

/* Not all kernels have all of them, and without CAP_SETPCAP none can be dropped: then none can be gained. */
static void reduce_bounding_set(uint32_t kept)
{
	for (unsigned long capability = 0; capability < 64; capability++)
		if (capability >= 32 || !(kept >> capability & 1))
			prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
}

static bool rights_become_user(const struct serve_rights *rights)
{
	bool has_group = rights->group != (gid_t)-1;

	/* Also drop the supplementary groups of root. */
	if (has_group && geteuid() == 0 && setgroups(1, &rights->group) == -1)
		return false;
	if (has_group && rights->group != getegid() &&
	    setresgid(rights->group, rights->group, rights->group) == -1)
		return false;
	if (rights->user == (uid_t)-1 || rights->user == geteuid())
		return true;
	return prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) == 0 &&
	       setresuid(rights->user, rights->user, rights->user) == 0;
}

/* ---- system calls ------------------------------------------------------------------------------ */

#if defined(__x86_64__)
#define NATIVE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE AUDIT_ARCH_AARCH64
#endif

/* Calls that change the machine, or reach around permissions: nothing that we or our children do needs them. */
static const uint16_t never_called[] = {
	SYS_mount,
	SYS_umount2,
	SYS_pivot_root,
	SYS_chroot,
	SYS_move_mount,
	SYS_open_tree,
	SYS_fsopen,
	SYS_fsmount,
	SYS_fsconfig,
	SYS_fspick,
	SYS_setns,
	SYS_unshare,
	SYS_kexec_load,
	SYS_reboot,
	SYS_init_module,
	SYS_finit_module,
	SYS_delete_module,
	SYS_swapon,
	SYS_swapoff,
	SYS_acct,
	SYS_settimeofday,
	SYS_clock_settime,
	SYS_clock_adjtime,
	SYS_adjtimex,
	SYS_sethostname,
	SYS_setdomainname,
	SYS_bpf,
	SYS_perf_event_open,
	SYS_userfaultfd,
	SYS_add_key,
	SYS_request_key,
	SYS_keyctl,
	SYS_quotactl,
	SYS_fanotify_init,
	SYS_io_uring_setup,
	SYS_open_by_handle_at,
#ifdef SYS_kexec_file_load
	SYS_kexec_file_load,
#endif
#ifdef SYS_mount_setattr
	SYS_mount_setattr,
#endif
#ifdef SYS_iopl
	SYS_iopl,
	SYS_ioperm,
#endif
};
/* What CAP_SYS_PTRACE would allow besides reading /proc. A user's own hook may use them on the user's own processes. */
static const uint16_t never_called_as_root[] = {
	SYS_ptrace,	 SYS_process_vm_readv, SYS_process_vm_writev, SYS_kcmp,
#ifdef SYS_pidfd_getfd
	SYS_pidfd_getfd,
#endif
};

#ifdef NATIVE
static struct sock_filter *deny(struct sock_filter *at, const uint16_t *calls, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		*at++ = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i], 0, 1);
		*at++ = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
	}
	return at;
}
#endif

bool serve_calls_limit(bool is_privileged)
{
#ifdef NATIVE
	struct sock_filter
		list[8 + 2 * (ARRAY_LENGTH(never_called) + ARRAY_LENGTH(never_called_as_root))];
	struct sock_filter *at = list;
	struct sock_fprog program = { .filter = list };

	/* Numbers are those of one architecture; x86-64 has a second set (x32) above these. */
	*at++ = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
					     offsetof(struct seccomp_data, arch));
	*at++ = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NATIVE, 1, 0);
	*at++ = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
	*at++ = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
					     offsetof(struct seccomp_data, nr));
	*at++ = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1);
	*at++ = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
	at = deny(at, never_called, ARRAY_LENGTH(never_called));
	if (is_privileged)
		at = deny(at, never_called_as_root, ARRAY_LENGTH(never_called_as_root));
	*at++ = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	program.len = (unsigned short)(at - list);
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
#else
	(void)is_privileged;
	return false;
#endif
}

int serve_rights_drop(const struct serve_rights *rights)
{
	bool denies_tracing = (geteuid() == 0 || has_capabilities()) && !rights->must_hand_on;

	reduce_bounding_set(rights->must_hand_on ? KEPT : 0);
	if (!rights_become_user(rights))
		return serve_log(SERVE_ERROR, "cannot switch user: %s%s", strerror(errno),
				 geteuid() != 0 ? "; requires root" : "");
	if (!rights_keep(
		    rights->must_read_nothing ? 0 : KEPT | (rights->must_write ? KEPT_TO_WRITE : 0),
		    0) ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1)
		return serve_log(SERVE_ERROR, "cannot drop capabilities: %s", strerror(errno));
#ifdef __SANITIZE_ADDRESS__
	/* The search for leaks traces the process. */
	denies_tracing = false;
#endif
	/* Not all kernels have it. */
	if (!serve_calls_limit(denies_tracing))
		serve_log(SERVE_WARNING, "cannot restrict system calls: %s", strerror(errno));
	return 0;
}

void serve_rights_hand_on(void)
{
	static const unsigned long list[] = { CAP_DAC_READ_SEARCH, CAP_SYS_PTRACE };

	if (!rights_keep(KEPT, KEPT))
		return;
	for (size_t i = 0; i < ARRAY_LENGTH(list); i++)
		prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, list[i], 0, 0);
}

bool serve_rights_drop_all(void)
{
	return rights_keep(0, 0);
}

enum { FIRST_INHERITED = 3, BACKLOG = 256, SOCKET_MODE = 0660 };

static const char *path_of(const struct web_address *address)
{
	return ((const struct sockaddr_un *)&address->socket)->sun_path;
}

/* ---- Unix sockets ------------------------------------------------------------------------------ */

/* Removes the file of a stale socket. Anything else stays. */
static void remove_stale(const struct web_address *address)
{
	const char *path = path_of(address);
	struct stat st;
	int fd;

	if (lstat(path, &st) == -1 || !S_ISSOCK(st.st_mode))
		return;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd == -1)
		return;
	if (connect(fd, (const struct sockaddr *)&address->socket, address->length) == -1 &&
	    errno == ECONNREFUSED)
		unlink(path);
	close(fd);
}

static bool own_file(struct serve_listener *listener, gid_t group)
{
	const char *path = path_of(&listener->address);
	struct stat st;

	if (lstat(path, &st) == -1)
		return false;
	listener->is_ours = true;
	listener->device = st.st_dev;
	listener->inode = st.st_ino;
	return (group == (gid_t)-1 || lchown(path, (uid_t)-1, group) == 0) &&
	       chmod(path, SOCKET_MODE) == 0;
}

/* ---- opening ----------------------------------------------------------------------------------- */

static bool listener_prepare(const struct serve_listener *listener)
{
	int one = 1, only_v6 = !listener->address.is_any;

	if (listener->address.is_unix)
		return true;
	if (listener->address.socket.ss_family == AF_INET6 &&
	    setsockopt(listener->fd, IPPROTO_IPV6, IPV6_V6ONLY, &only_v6, sizeof(only_v6)) == -1)
		return false;
	return setsockopt(listener->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) == 0;
}

/* A host without IPv6 still has its IPv4 addresses. */
static int open_socket(struct web_address *address)
{
	int kind = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
	int fd = socket(address->socket.ss_family, kind, 0);
	struct sockaddr_in *v4 = (struct sockaddr_in *)&address->socket;
	uint16_t port;

	if (fd != -1 || errno != EAFNOSUPPORT || !address->is_any)
		return fd;
	port = ((struct sockaddr_in6 *)&address->socket)->sin6_port;
	address->socket = (struct sockaddr_storage){ 0 };
	v4->sin_family = AF_INET;
	v4->sin_port = port;
	address->length = sizeof(*v4);
	return socket(AF_INET, kind, 0);
}

/* With port 0 the system chooses one: find out which. */
static void ask_address(struct serve_listener *listener)
{
	struct sockaddr_storage bound;
	socklen_t length = sizeof(bound);

	if (getsockname(listener->fd, (struct sockaddr *)&bound, &length) == 0)
		web_address_of(&listener->address, &bound, length);
}

int serve_listen_open(struct serve_listeners *listeners, const struct web_address *address,
		      gid_t group)
{
	struct serve_listener *listener = &listeners->list[listeners->count];
	char text[160];

	web_address_text(address, text, sizeof(text));
	*listener = (struct serve_listener){ .address = *address };
	listener->fd = open_socket(&listener->address);
	if (listener->fd == -1)
		return serve_log(SERVE_ERROR, "cannot listen on %s: %s", text, strerror(errno));
	listeners->count++;
	if (address->is_unix)
		remove_stale(address);
	if (!listener_prepare(listener) ||
	    bind(listener->fd, (struct sockaddr *)&listener->address.socket,
		 listener->address.length) == -1 ||
	    (address->is_unix && !own_file(listener, group)) || listen(listener->fd, BACKLOG) == -1)
		return serve_log(SERVE_ERROR, "cannot listen on %s: %s%s", text, strerror(errno),
				 errno == EADDRINUSE ? "; choose another with --listen" : "");
	if (!address->is_unix)
		ask_address(listener);
	return 0;
}

int serve_listen_inherit(struct serve_listeners *listeners)
{
	const char *pid = getenv("LISTEN_PID"), *fds = getenv("LISTEN_FDS");
	int64_t number, count;

	if (pid == NULL || fds == NULL || text_number(pid, 1, INT32_MAX, &number) != OK ||
	    number != getpid())
		return 0;
	if (text_number(fds, 0, SERVE_LISTENERS_MAX, &count) != OK) {
		serve_log(SERVE_ERROR, "LISTEN_FDS=%s: at most %d sockets are supported", fds,
			  SERVE_LISTENERS_MAX);
		return -1;
	}
	for (int i = 0; i < (int)count; i++) {
		struct serve_listener *listener = &listeners->list[listeners->count];
		int is_listening = 0, fd = FIRST_INHERITED + i;
		socklen_t length = sizeof(is_listening);

		if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &length) == -1 ||
		    !is_listening || fcntl(fd, F_SETFD, FD_CLOEXEC) == -1 ||
		    fcntl(fd, F_SETFL, O_NONBLOCK) == -1) {
			serve_log(SERVE_ERROR,
				  "LISTEN_FDS: descriptor %d is not a listening socket", fd);
			return -1;
		}
		*listener = (struct serve_listener){ .fd = fd };
		ask_address(listener);
		listeners->count++;
	}
	return (int)count;
}

void serve_listen_close(struct serve_listeners *listeners)
{
	for (size_t i = 0; i < listeners->count; i++) {
		struct serve_listener *listener = &listeners->list[i];
		const char *path = path_of(&listener->address);
		struct stat st;

		/* Another agent may have replaced our socket. */
		if (listener->is_ours && lstat(path, &st) == 0 && st.st_dev == listener->device &&
		    st.st_ino == listener->inode)
			unlink(path);
		close(listener->fd);
	}
	listeners->count = 0;
}

/* ---- this process ----------------------------------------------------------------------------- */

uint64_t serve_resident_bytes(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	unsigned long size, resident = 0;

	if (file == NULL)
		return 0;
	if (fscanf(file, "%lu %lu", &size, &resident) != 2)
		resident = 0;
	fclose(file);
	return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}
