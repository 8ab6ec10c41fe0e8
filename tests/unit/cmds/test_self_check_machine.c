/*
 * ringside self-check of machines that are played: what their loader finds, their memory, clock, log and rights. The
 * file is included for that.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/klog.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cmds/commands.h"
#include "common/child.h"
#include "common/clock.h"
#include "common/file.h"

static void *play_dlopen(const char *name, int flags);
static void *play_dlsym(void *handle, const char *symbol);
static char *play_dlerror(void);
static int play_dlinfo(void *handle, int request, struct link_map **map);
static int play_statfs(const char *path, struct statfs *kind);
static int play_statvfs(const char *path, struct statvfs *room);
static int play_lstat(const char *path, struct stat *st);
static int play_access(const char *path, int mode);
static bool play_read_text(const char *path, char *text, size_t size);
static int play_adjtimex(struct timex *state);
static int play_klogctl(int type, char *bytes, int size);
static int play_open(const char *path, int flags);
static int play_uname(struct utsname *name);
static uid_t play_geteuid(void);
static struct passwd *play_getpwuid(uid_t uid);
static enum status play_capture(struct cli_capture *capture, const char *const *words, int fd,
				unsigned int timeout_s, size_t most_bytes);
static bool play_plugin_find(char *path, size_t size, char *looked, size_t looked_size);
static bool play_is_on_path(const char *path);
static void play_child_run(struct child *child, const struct child_task *task);

#define cmd_self_check machine_included_self_check
#define dlopen play_dlopen
#define dlsym play_dlsym
#define dlerror play_dlerror
#define dlinfo play_dlinfo
#define statfs(path, kind) play_statfs(path, kind)
#define statvfs(path, room) play_statvfs(path, room)
#define lstat play_lstat
#define access play_access
#define file_read_text play_read_text
#define adjtimex play_adjtimex
#define klogctl play_klogctl
#define open play_open
#define uname play_uname
#define geteuid play_geteuid
#define getpwuid play_getpwuid
#define cli_capture(capture, words, fd, timeout_s, most) \
	play_capture(capture, words, fd, timeout_s, most)
#define cli_plugin_find play_plugin_find
#define cli_plugin_is_on_path play_is_on_path
#define child_run play_child_run
#include "cmds/cmd_self_check.c"
#undef cmd_self_check
#undef dlopen
#undef dlsym
#undef dlerror
#undef dlinfo
#undef statfs
#undef statvfs
#undef lstat
#undef access
#undef file_read_text
#undef adjtimex
#undef klogctl
#undef open
#undef uname
#undef geteuid
#undef getpwuid
#undef cli_capture
#undef cli_plugin_find
#undef cli_plugin_is_on_path
#undef child_run

#include "tests/support/command_play.h"
#include "tests/tap.h"

#define PLUGIN "libnccl-profiler-ringside.so"

/* ---- the stage -------------------------------------------------------------------------------- */

/* A library that can be loaded; what happens if it is. */
struct played_library {
	const char *name;
	const char *path; /* where the loader found it */
	const char *plugin;
	int interface; /* the newest */
	int nccl;      /* its version; 0: it does not say one */
	bool is_deadly;
};

static struct {
	const struct played_library *libraries;
	const char *plugin; /* beside the tool, below the scratch directory; NULL: none */
	bool is_on_path;
	const char *cache, *python; /* what they print */
	unsigned long type;	    /* of the file system of regions */
	uint64_t blocks, free_blocks;
	const char *no_room; /* path without a size */
	const char *status;  /* rights */
	int clock_code, clock_status;
	const char *source;
	bool has_log, has_ring;
	const char *sign; /* of a container */
	bool has_no_user;
	bool is_impatient;
} play;

static void *play_dlopen(const char *name, int flags)
{
	if (play.is_impatient)
		pause();
	for (const struct played_library *at = play.libraries; at && at->name; at++) {
		const char *whole = at->name[0] == '/' ? command_path(at->name + 1) : at->name;

		if (strcmp(whole, name) != 0)
			continue;
		if (at->is_deadly || flags != (RTLD_NOW | RTLD_LOCAL))
			_exit(7);
		return (void *)at;
	}
	return NULL;
}

static char *play_dlerror(void)
{
	static char text[] = "cannot open shared object file";

	return text;
}

static int the_version(int *version)
{
	*version = play.libraries[0].nccl;
	return 0;
}

static int no_version(int *version)
{
	*version = 22809;
	return 1;
}

static void *play_dlsym(void *handle, const char *symbol)
{
	static struct played_library *library;
	int version;

	library = handle;
	if (strcmp(symbol, "ncclGetVersion") == 0)
		return library->nccl == 0    ? NULL
		       : library->nccl == -1 ? (void *)no_version
					     : (void *)the_version;
	if (library->plugin != NULL && sscanf(symbol, "ncclProfiler_v%d", &version) == 1 &&
	    version <= library->interface)
		return &library->plugin;
	return NULL;
}

static int play_dlinfo(void *handle, int request, struct link_map **map)
{
	const struct played_library *library = handle;
	static struct link_map found;

	found.l_name = (char *)library->path;
	if (library->path != NULL && request == RTLD_DI_LINKMAP)
		*map = &found;
	return 0;
}

static int play_statfs(const char *path, struct statfs *kind)
{
	int code = statfs(path, kind);

	kind->f_type = (long)play.type;
	return code;
}

static int play_statvfs(const char *path, struct statvfs *room)
{
	*room = (struct statvfs){ .f_blocks = play.blocks,
				  .f_bavail = play.free_blocks,
				  .f_frsize = 1 << 20 };
	errno = EIO;
	return play.no_room && strstr(path, play.no_room) != NULL ? -1 : 0;
}

/* The user is 4711, whoever runs the test. */
static uid_t play_geteuid(void)
{
	return 4711;
}

static int play_lstat(const char *path, struct stat *st)
{
	int code = lstat(path, st);

	st->st_uid = st->st_uid == geteuid() ? 4711 : st->st_uid;
	return code;
}

static int play_access(const char *path, int mode)
{
	if (strncmp(path, scratch_dir.path, strlen(scratch_dir.path)) == 0)
		return access(path, mode);
	return play.sign && strcmp(path, play.sign) == 0 ? 0 : -1;
}

/* Files of the machine are below machine/. */
static bool play_read_text(const char *path, char *text, size_t size)
{
	char whole[512];
	const char *played = strcmp(path, "/proc/self/status") == 0 ? play.status
			     : strstr(path, "clocksource")	    ? play.source
								    : NULL;

	if (played != NULL)
		return text_copy(text, size, played);
	if (strncmp(path, scratch_dir.path, strlen(scratch_dir.path)) == 0)
		return file_read_text(path, text, size);
	snprintf(whole, sizeof(whole), "%s%s", command_path("machine"), path);
	return file_read_text(whole, text, size);
}

static int play_adjtimex(struct timex *state)
{
	state->status = play.clock_status;
	return state->modes != 0 ? -1 : play.clock_code;
}

static int play_klogctl(int type, char *bytes, int size)
{
	return type == 10 && bytes == NULL && size == 0 && play.has_ring ? 65536 : -1;
}

static int play_open(const char *path, int flags)
{
	if (strcmp(path, "/dev/kmsg") != 0)
		return open(path, flags);
	return play.has_log && flags == (O_RDONLY | O_NONBLOCK | O_CLOEXEC) ? dup(0) : -1;
}

static int play_uname(struct utsname *name)
{
	text_copy(name->nodename, sizeof(name->nodename), "gpu-node-07");
	return 0;
}

static struct passwd *play_getpwuid(uid_t uid)
{
	static struct passwd user;

	user.pw_dir = (char *)command_path("user");
	return play.has_no_user || uid != getuid() ? NULL : &user;
}

static enum status play_capture(struct cli_capture *capture, const char *const *words, int fd,
				unsigned int timeout_s, size_t most_bytes)
{
	const char *text = strcmp(words[0], "python3") == 0 ? play.python : play.cache;

	*capture = (struct cli_capture){ .bytes = text ? strdup(text) : NULL };
	return text != NULL && fd == -1 && timeout_s == 10 && most_bytes == 1 << 20 ? OK
										    : ERR_SYSTEM;
}

static bool play_plugin_find(char *path, size_t size, char *looked, size_t looked_size)
{
	text_copy(looked, looked_size, "/usr/bin/../lib/ringside");
	return play.plugin && text_copy(path, size, command_path(play.plugin));
}

static bool play_is_on_path(const char *path)
{
	return play.is_on_path && strcmp(path, command_path(play.plugin)) == 0;
}

/* A tenth of a second instead of ten seconds. */
static void play_child_run(struct child *child, const struct child_task *task)
{
	struct child_task short_task = *task;

	if (play.is_impatient)
		short_task.timeout_ns = SECOND_NS / 10;
	child_run(child, &short_task);
}

/* ---- machines --------------------------------------------------------------------------------- */

static int program(int argc, char **argv)
{
	return machine_included_self_check(argc - 1, argv + 1);
}

static void put(const char *name, const char *text)
{
	char directory[512];

	snprintf(directory, sizeof(directory), "%s", command_path(name));
	*strrchr(directory, '/') = '\0';
	file_make_directories(directory, 0755, (gid_t)-1);
	command_write_text(name, text);
}

static const struct played_library good_libraries[] = {
	{ .name = "/lib/" PLUGIN,
	  .path = "/usr/lib/" PLUGIN,
	  .plugin = "ringside",
	  .interface = 5 },
	{ .name = "libnccl-profiler-ringside.so",
	  .path = "/usr/lib/" PLUGIN,
	  .plugin = "ringside",
	  .interface = 5 },
	{ .name = NULL },
};

static void begin(void)
{
	memset(&play, 0, sizeof(play));
	play.libraries = good_libraries;
	play.plugin = "lib/" PLUGIN;
	play.is_on_path = true;
	play.type = 0x01021994;
	play.blocks = 4096;
	play.free_blocks = 2048;
	play.status = "Name:\tx\nCapEff:\t000001ffffffffff\n";
	play.source = "tsc\n";
	play.has_log = true;
}

static void check(const char *heading)
{
	sink_format(&command_play.text, "##### %s\n", heading);
	command("self-check --agent 127.0.0.1:1");
}

/* Only the lines of one check. */
static void check_line(const char *heading, const char *name)
{
	struct sink tidy;
	const char *at;
	bool is_in = false;

	command_run(program, "ringside", "self-check --agent 127.0.0.1:1");
	sink_format(&command_play.text, "##### %s (exit %d)\n", heading, command_play.code);
	sink_init_memory(&tidy);
	command_tidy(&tidy, command_play.out);
	for (at = sink_string(&tidy); *at != '\0'; at += strcspn(at, "\n") + 1) {
		if (at[0] != ' ')
			is_in = strlen(at) > 9 && strncmp(at + 9, name, strlen(name)) == 0;
		if (is_in)
			sink_format(&command_play.text, "%.*s\n", (int)strcspn(at, "\n"), at);
	}
	sink_release(&tidy);
}

static void plugins(void)
{
	static const struct played_library none[] = { { .name = NULL } };
	static const struct played_library no_plugin[] = {
		{ .name = "/lib/" PLUGIN, .path = "/x", .plugin = NULL }, { .name = NULL }
	};
	static const struct played_library deadly[] = {
		{ .name = "/lib/" PLUGIN, .path = "/x", .is_deadly = true }, { .name = NULL }
	};
	static const struct played_library by_itself[] = { { .name = "libnccl-profiler.so",
							     .plugin = "ringside",
							     .interface = 2,
							     .path = "/l/p" },
							   { .name = NULL } };
	static const struct played_library another[] = {
		{ .name = "libnccl-profiler.so", .plugin = "inspector", .interface = 4 },
		{ .name = NULL }
	};

	begin();
	check("a machine that is ready");
	command("self-check --agent 127.0.0.1:1 --json");
	begin();
	play.plugin = NULL;
	check("no plugin");
	begin();
	play.is_on_path = false;
	check_line("the loader would not find it", "setting");
	begin();
	play.libraries = none;
	check_line("it cannot be loaded", "plugin");
	play.libraries = no_plugin;
	check_line("it is another library", "plugin");
	play.libraries = deadly;
	check_line("it ends the process", "plugin");
	begin();
	play.is_impatient = true;
	check_line("it takes 10 s", "plugin");
	begin();
	play.plugin = "lib/damaged";
	play.libraries = none;
	check_line("a damaged one", "plugin");
	begin();
	play.libraries = by_itself;
	check_line("it is loaded by itself", "setting");
	play.libraries = another;
	check_line("another one is loaded by itself", "setting");
}

static void settings(void)
{
	static const struct played_library by_path[] = { { .name = "/lib/" PLUGIN,
							   .path = "/real/path",
							   .plugin = "ringside",
							   .interface = 5 },
							 { .name = NULL } };
	static const struct played_library by_value[] = {
		{ .name = "ringside", .path = "/by/value", .plugin = "ringside", .interface = 5 },
		{ .name = NULL }
	};
	char text[512];

	begin();
	put("machine/etc/nccl.conf", "RINGSIDE_JOB=a\nNCCL_PROFILER_PLUGIN=ringside\n"
				     "RINGSIDE_MODE=trace\nRINGSIDE_SHM=/nowhere\n");
	check("settings of the machine");
	put(".nccl.conf", "RINGSIDE_SHM=\nRINGSIDE_MODE=off\nRINGSIDE_JOBB=x\n\n"
			  "RINGSIDE_XYZZY_PLUGH=1\n");
	check("and of the user");
	unsetenv("HOME");
	snprintf(text, sizeof(text), "RINGSIDE_MODE=full\nRINGSIDE_DIR=%s/%%j\nRINGSIDE_SHM=\n",
		 command_path("lib"));
	put("user/.nccl.conf", text);
	check_line("a user without HOME", "traces");
	play.has_no_user = true;
	check_line("nor an account", "traces");
	setenv("HOME", command_path("file"), 1);
	put("file", "");
	check_line("a home that is a file", "nccl.conf");
	setenv("HOME", scratch_dir.path, 1);
	unlink(command_path(".nccl.conf"));
	unlink(command_path("machine/etc/nccl.conf"));
	begin();
	setenv("NCCL_PROFILER_PLUGIN", command_path("lib/" PLUGIN), 1);
	play.libraries = by_path;
	check_line("by path", "setting");
	setenv("NCCL_PROFILER_PLUGIN", "ringside", 1);
	check_line("by name, but there is no such library", "setting");
	play.libraries = by_value;
	check_line("by name", "setting");
	unsetenv("NCCL_PROFILER_PLUGIN");
	begin();
	setenv("RINGSIDE_MODE", "full", 1);
	check_line("traces in the current directory", "traces");
	setenv("RINGSIDE_DIR", scratch_dir.path, 1);
	check_line("traces elsewhere", "traces");
	play.no_room = scratch_dir.path;
	check_line("where the room is not known", "traces");
	unsetenv("RINGSIDE_MODE");
	check_line("no traces", "traces");
	unsetenv("RINGSIDE_DIR");
}

static void libraries(void)
{
	static const struct played_library nccl[] = {
		{ .name = "/n1/libnccl.so.2.27.3", .path = "/n1", .nccl = 22809 },
		{ .name = "/n2/libnccl.so.2.21.5", .path = "/n2" },
		{ .name = "/n3/libnccl.so.2.100.0", .path = "/n3" },
		{ .name = "/n4/libnccl.so.2.24.1", .path = "/n4", .nccl = -1 },
		{ .name = NULL },
	};
	static const char *const files[] = { "n1/libnccl.so.2.27.3",   "n2/libnccl.so.2.21.5",
					     "n3/libnccl.so.2.100.0",  "n4/libnccl.so.2.24.1",
					     "n5/libnccl.so.2.22.100", "n6/libnccl.so.2.99.99",
					     "n7/libnccl.so.2.26" };
	char cache[2048], path[1024], link[64];

	begin();
	play.libraries = nccl;
	for (size_t i = 0; i < ARRAY_LENGTH(files); i++) {
		put(files[i], "");
		snprintf(link, sizeof(link), "n%zu/libnccl.so.2", i + 1);
		if (symlink(strchr(files[i], '/') + 1, command_path(link)) != 0)
			abort();
	}
	/* Twice the same, a name that does not exist, and lines about others. */
	snprintf(cache, sizeof(cache),
		 "900 libs found in cache\n\tlibnccl.so.2 (libc6,x86-64) => %s\n"
		 "\tlibnccl.so.2 => %s\n\tlibnccl.so.2 (nothing)\n\tlibnccl.so => %s\n"
		 "\tlibnccl.so.2 => /nowhere/libnccl.so.2\n",
		 command_path("n2/libnccl.so.2"), command_path("n2/libnccl.so.2"),
		 command_path("n2/other"));
	play.cache = cache;
	snprintf(path, sizeof(path), " => %s\n => %s\n => %s\n => %s\n",
		 command_path("n4/libnccl.so.2"), command_path("n5/libnccl.so.2"),
		 command_path("n6/libnccl.so.2"), command_path("n7/libnccl.so.2"));
	play.python = path;
	snprintf(link, sizeof(link), "/nowhere:%s", command_path("n1"));
	setenv("LD_LIBRARY_PATH", link, 1);
	text_format(cache + strlen(cache), sizeof(cache) - strlen(cache), "libnccl.so.2 => %s\n",
		    command_path("n3/libnccl.so.2"));
	check_line("libraries of the loader, the cache and Python", "NCCL");
	setenv("NCCL_PROFILER_PLUGIN", "ringside", 1);
	check_line("which do not all find the plugin", "setting");
	unsetenv("NCCL_PROFILER_PLUGIN");
	unsetenv("LD_LIBRARY_PATH");
	begin();
	check_line("none", "NCCL");
}

static void memory(void)
{
	static const struct {
		const char *what;
		uint64_t left;
	} rooms[] = { { "almost nothing", 15 }, { "a little", 16 },	    { "for some", 127 },
		      { "for eight", 128 },	{ "less than usual", 367 }, { "enough", 368 } };

	begin();
	for (size_t i = 0; i < ARRAY_LENGTH(rooms); i++) {
		play.free_blocks = rooms[i].left;
		check_line(rooms[i].what, "memory");
	}
	play.blocks = 0;
	check_line("no limit", "memory");
	play.type = 0xef53;
	check_line("a disk", "memory");
	play.no_room = "shm";
	check_line("no answer", "memory");
	begin();
	put("shm/ringside-4711", "");
	check_line("a file in its place", "memory");
	unlink(command_path("shm/ringside-4711"));
	command_directory("shm/ringside-4711");
	check_line("its own directory", "memory");
}

static void the_rest(void)
{
	static const char *const rights[] = {
		"CapEff:\t0000000000000000", "CapEff:\t0000000000080000",
		"CapEff:\t0000000000000006", "CapEff:\t0000000000080004",
		"CapEff:\t0000000000080002", "CapInh:\tffffffff"
	};
	static const char *const signs[] = { "/.dockerenv", "/run/.containerenv",
					     "/run/systemd/container" };
	static const char *const variables[] = { "KUBERNETES_SERVICE_HOST", "APPTAINER_CONTAINER",
						 "SINGULARITY_CONTAINER", "container" };

	begin();
	for (size_t i = 0; i < ARRAY_LENGTH(rights); i++) {
		play.status = rights[i];
		check_line(rights[i], "permissions");
	}
	begin();
	play.clock_status = STA_UNSYNC;
	check_line("no NTP", "clock");
	play.clock_status = STA_PLL;
	check_line("NTP", "clock");
	play.clock_code = -1;
	play.source = "hpet";
	check_line("nobody knows", "clock");
	begin();
	play.has_log = false;
	check_line("no log", "kernel log");
	play.has_ring = true;
	check_line("the ring of the log", "kernel log");
	for (size_t i = 0; i < ARRAY_LENGTH(signs); i++) {
		play.sign = signs[i];
		check_line(signs[i], "container");
	}
	play.sign = NULL;
	for (size_t i = 0; i < ARRAY_LENGTH(variables); i++) {
		setenv(variables[i], "1", 1);
		check_line(variables[i], "container");
		unsetenv(variables[i]);
	}
	check_line("no container", "container");
	check_line("an agent", "agent");
	command_run(program, "ringside", "self-check --agent [::1]:1");
	EXPECT_THAT("an address in brackets is one of IPv6",
		    strstr(command_play.out, "agent        nothing answers on [::1]:1: ") != NULL &&
			    strstr(command_play.out, strerror(EADDRNOTAVAIL)) == NULL);
}

int main(void)
{
	command_begin();
	command_play.program = program;
	command_directory("shm");
	put("lib/" PLUGIN, "... \"git_rev\":\"ringside-" RINGSIDE_VERSION "\" ...");
	put("lib/damaged", "");
	plugins();
	settings();
	libraries();
	memory();
	the_rest();
	EXPECT_THAT("machines", command_expected("tests/unit/cmds/expected/self-check-machines"));
	return tap_done();
}
