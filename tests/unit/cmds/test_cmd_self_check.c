/* ringside self-check: images, of which only files count, and what of this machine a test can set up. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "common/file.h"
#include "tests/support/command_play.h"
#include "tests/tap.h"

#define PLUGIN "libnccl-profiler-ringside.so"
#define THIS_VERSION "... \"git_rev\":\"ringside-" RINGSIDE_VERSION "\" ..."

static void put(const char *name, const char *text)
{
	char directory[512];

	snprintf(directory, sizeof(directory), "%s", command_path(name));
	*strrchr(directory, '/') = '\0';
	file_make_directories(directory, 0755, (gid_t)-1);
	command_write_text(name, text);
}

static void put_link(const char *to, const char *name)
{
	if (symlink(to, command_path(name)) != 0)
		abort();
}

static void make_images(void)
{
	command_directory("empty");
	put("ready/usr/lib/x86_64-linux-gnu/" PLUGIN, THIS_VERSION);
	put("ready/usr/local/lib/python3.12/dist-packages/nvidia/nccl/lib/libnccl.so.2", "");
	put("ready/usr/local/lib/python3.12/dist-packages/nvidia_nccl_cu12-2.27.3.dist-info/x", "");
	put("ready/usr/lib64/libnccl.so.2.30.7", "");
	put_link("libnccl.so.2.30.7", "ready/usr/lib64/libnccl.so.2");
	put("ready/etc/nccl.conf",
	    "# site\n# RINGSIDE_X=1\nNCCL_DEBUG=WARN\nNCCL_PROFILER_PLUGIN=" PLUGIN
	    "\nRINGSIDE_MODE=trace\n");
	put("wrong/opt/ringside/lib/" PLUGIN, "... \"git_rev\":\"ringside-0.0.1\" ...");
	put("wrong/etc/nccl.conf", "export NCCL_PROFILER_PLUGIN=ringside\n"
				   "NCCL_PROFILER_PLUGIN = ringside\nRINGSIDE_MODE=\"trace\"\n"
				   "RINGSIDE_MDOE=trace\nRINGSIDE_XYZZY=1\n\tRINGSIDE_JOB=x\n"
				   "RINGSIDE_SHM\n");
	put("wrong/usr/lib/libnccl.so.2.21.5", "");
	put_link("libnccl.so.2.21.5", "wrong/usr/lib/libnccl.so.2");
	put("names/usr/lib64/" PLUGIN, "another file");
	put("names/etc/nccl.conf", "NCCL_PROFILER_PLUGIN=ringside\nRINGSIDE_DISABLE=1\n");
	put("names/usr/lib/libnccl.so.2.25.1", "");
	put_link("libnccl.so.2.25.1", "names/usr/lib/libnccl.so.2");
	put("names/opt/a/lib/libnccl.so.2", "");
	put("names/usr/local/cuda-12/lib64/libnccl.so.3.1.1", "");
	put_link("libnccl.so.3.1.1", "names/usr/local/cuda-12/lib64/libnccl.so.2");
	put("path/usr/local/lib/" PLUGIN, THIS_VERSION);
	put("path/etc/nccl.conf", "NCCL_PROFILER_PLUGIN=/usr/local/lib/" PLUGIN
				  "\nRINGSIDE_DISABLE=0\nRINGSIDE_MODE=off");
	put("path/usr/lib/libnccl.so.2.27.3", "");
	put_link("libnccl.so.2.27.3", "path/usr/lib/libnccl.so.2");
	put("path/usr/lib64/libnccl.so.2.28.9", "");
	put_link("libnccl.so.2.28.9", "path/usr/lib64/libnccl.so.2");
	put("path/usr/local/lib/libnccl.so.2.26.0", "");
	put_link("libnccl.so.2.26.0", "path/usr/local/lib/libnccl.so.2");
	put("none/usr/local/lib64/" PLUGIN, THIS_VERSION);
	put("none/etc/nccl.conf", "NCCL_PROFILER_PLUGIN=None\nNCCL_PROFILER_PLUGIN=ringside\n");
	put("other/usr/lib/any/ringside/" PLUGIN, THIS_VERSION);
	put("other/etc/nccl.conf", "XNCCL_PROFILER_PLUGIN=a\nNCCL_PROFILER_PLUGIN=inspector\n");
	put("blank/usr/lib/" PLUGIN, THIS_VERSION);
	put("blank/etc/nccl.conf", "NCCL_PROFILER_PLUGIN=\nRINGSIDE_JOB=x\n");
}

static void images(void)
{
	static const char *const lines[] = {
		"self-check --root empty",
		"self-check --root ready",
		"self-check --root ready --json",
		"self-check --root wrong",
		"self-check --root names",
		"self-check --root names --json",
		"self-check --root path",
		"self-check --root none",
		"self-check --root other",
		"self-check --root blank",
		"self-check --root nowhere",
		"self-check x",
		"self-check --agent",
		NULL,
	};

	make_images();
	command_each(lines);
	setenv("NCCL_PROFILER_PLUGIN", "other", 1);
	setenv("RINGSIDE_DISABLE", "1", 1);
	command("self-check --root ready --no-pager");
	unsetenv("NCCL_PROFILER_PLUGIN");
	unsetenv("RINGSIDE_DISABLE");
	setenv("COLUMNS", "60", 1);
	command("self-check --root wrong");
	unsetenv("COLUMNS");
	EXPECT_THAT("images", command_expected("tests/unit/cmds/expected/self-check"));
}

/* Of this machine: the lines of one check, without what depends on it. */
static void lines_of(const char *name, const char *options)
{
	char line[512];
	struct sink tidy;
	const char *at;
	bool is_in = false;

	snprintf(line, sizeof(line), "self-check %s", options);
	command_run(cmds_main, "ringside", line);
	sink_init_memory(&tidy);
	command_tidy(&tidy, command_play.out);
	sink_format(&command_play.text, "=== %s: %s\n", name, options);
	for (at = sink_string(&tidy); *at != '\0'; at += strcspn(at, "\n") + 1) {
		if (at[0] != ' ')
			is_in = strlen(at) > 9 && strncmp(at + 9, name, strlen(name)) == 0;
		if (is_in)
			sink_format(&command_play.text, "%.*s\n", (int)strcspn(at, "\n"), at);
	}
	sink_release(&tidy);
}

/* A server that sends this to the next one who asks. Returns its port. */
static int serve(const char *answer, pid_t *server)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t size = sizeof(address);
	int listening = socket(AF_INET, SOCK_STREAM, 0), fd;
	char request[1024];

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (listening == -1 || bind(listening, (struct sockaddr *)&address, sizeof(address)) != 0 ||
	    listen(listening, 1) != 0 ||
	    getsockname(listening, (struct sockaddr *)&address, &size) != 0)
		abort();
	fflush(NULL);
	*server = fork();
	if (*server == 0) {
		fd = accept(listening, NULL, NULL);
		_exit(fd == -1 || read(fd, request, sizeof(request)) <= 0 ||
		      strncmp(request, "GET /healthz HTTP/1.0\r\nHost: 127.0.0.1:", 39) != 0 ||
		      write(fd, answer, strlen(answer)) != (ssize_t)strlen(answer));
	}
	close(listening);
	return ntohs(address.sin_port);
}

static void servers(void)
{
	static const struct {
		const char *answer, *said;
	} cases[] = {
		{ "HTTP/1.0 200 OK\r\n\r\n{\"version\":\"" RINGSIDE_VERSION "\"}",
		  "ok       agent        127.0.0.1:%d answers, version " RINGSIDE_VERSION "\n" },
		{ "HTTP/1.0 200 OK\r\n\r\n{\"version\":\"0.0.1\"}",
		  "note     agent        127.0.0.1:%d answers, version 0.0.1; this tool "
		  "is " RINGSIDE_VERSION "\n" },
		{ "HTTP/1.0 401 Unauthorized\r\n\r\n",
		  "note     agent        127.0.0.1:%d answers, but not as expected: it wants a "
		  "password\n" },
		{ "HTTP/1.0 200 OK\r\n\r\nhello",
		  "note     agent        127.0.0.1:%d answers, but not as expected\n" },
		{ "SSH-2.0-OpenSSH_9.2\r\n",
		  "note     agent        127.0.0.1:%d answers, but not as expected: TLS, or "
		  "something else\n" },
		{ "", "note     agent        127.0.0.1:%d accepts connections, but gave no answer "
		      "(waited up to 5 s)\n" },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		char line[256], wanted[256];
		pid_t server;
		int port = serve(cases[i].answer, &server), status = 1;

		snprintf(line, sizeof(line), "self-check --agent %s127.0.0.1:%d%s",
			 i % 2 ? "http://" : "", port, i % 2 ? "/x" : "");
		snprintf(wanted, sizeof(wanted), cases[i].said, port);
		command_run(cmds_main, "ringside", line);
		if (!EXPECT_THAT("a server's answer is judged",
				 strstr(command_play.out, wanted) != NULL))
			printf("# wanted %s", wanted);
		EXPECT_THAT("which was asked for its health",
			    waitpid(server, &status, 0) == server && status == 0);
	}
}

/* The library of the fake GPU, as a job would find it. */
static void an_nccl_that_loads(void)
{
	char path[4096];
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);

	path[length > 0 ? length : 0] = '\0';
	*strrchr(path, '/') = '\0';
	text_append(path, sizeof(path), "/../fake_gpu");
	setenv("LD_LIBRARY_PATH", path, 1);
	/* The loader reads this when a program begins, and takes it before an NCCL of this machine. */
	command_install();
	command_run(command_again, "ringside", "self-check --agent 127.0.0.1:1");
	EXPECT_THAT("its version is asked for",
		    strstr(command_play.out,
			   "ok       NCCL         2.28.9, interface 5, GPU times of a "
			   "share of the launches, 12 "
			   "blind spots: /") != NULL &&
			    strstr(command_play.out, "/fake_gpu/libnccl.so.2\n") != NULL);
	setenv("LD_LIBRARY_PATH", "/no/such/place:;/dev/null", 1);
	command_run(cmds_main, "ringside", "self-check --agent 127.0.0.1:1");
	EXPECT(strstr(command_play.out, "/fake_gpu/") == NULL);
	unsetenv("LD_LIBRARY_PATH");
}

static void this_machine(void)
{
	char own[64];

	put("conf", "RINGSIDE_MODE=trace\nRINGSIDE_DIR=/dev/null/x\nRINGSIDE_MDOE=x\n");
	put("lib/" PLUGIN, "no library");
	put(".nccl.conf",
	    "NCCL_PROFILER_PLUGIN=ringside\nRINGSIDE_MODE=full\nRINGSIDE_DIR=traces\n");
	lines_of("agent", "--agent 127.0.0.1:1");
	lines_of("agent", "--agent nowhere");
	lines_of("hub", "--agent 127.0.0.1:1 --hub http://127.0.0.1:1/");
	lines_of("hub", "--agent 127.0.0.1:1");
	lines_of("setting", "--agent 127.0.0.1:1");
	lines_of("nccl.conf", "--agent 127.0.0.1:1");
	setenv("NCCL_CONF_FILE", command_path("conf"), 1);
	lines_of("traces", "--agent 127.0.0.1:1");
	lines_of("nccl.conf", "--agent 127.0.0.1:1");
	unsetenv("NCCL_CONF_FILE");
	setenv("NCCL_PROFILER_PLUGIN", "none", 1);
	lines_of("setting", "--agent 127.0.0.1:1");
	setenv("NCCL_PROFILER_PLUGIN", "other", 1);
	lines_of("setting", "--agent 127.0.0.1:1");
	setenv("NCCL_PROFILER_PLUGIN", command_path("lib/" PLUGIN), 1);
	lines_of("setting", "--agent 127.0.0.1:1");
	setenv("NCCL_PROFILER_PLUGIN", "", 1);
	lines_of("setting", "--agent 127.0.0.1:1");
	unsetenv("NCCL_PROFILER_PLUGIN");
	setenv("RINGSIDE_DISABLE", "yes", 1);
	lines_of("setting", "--agent 127.0.0.1:1");
	setenv("RINGSIDE_DISABLE", "0", 1);
	setenv("RINGSIDE_MODE", "off", 1);
	lines_of("setting", "--agent 127.0.0.1:1");
	unsetenv("RINGSIDE_MODE");
	setenv("RINGSIDE_SHM", command_path("no-such-place"), 1);
	lines_of("memory", "--agent 127.0.0.1:1");
	snprintf(own, sizeof(own), "shm/ringside-%u", (unsigned int)geteuid());
	put(own, "a file");
	setenv("RINGSIDE_SHM", command_path("shm"), 1);
	command_run(cmds_main, "ringside", "self-check --agent 127.0.0.1:1");
	EXPECT_THAT("the place of the regions is a file",
		    strstr(command_play.out, own + 4) != NULL &&
			    strstr(command_play.out, " belongs to somebody else\n") != NULL);
	unlink(command_path(own));
	command_run(cmds_main, "ringside", "self-check --agent 127.0.0.1:1");
	EXPECT_THAT("the room for regions is reported",
		    strstr(command_play.out, "memory       ") != NULL &&
			    strstr(command_play.out, "/shm has ") != NULL);
	EXPECT_THAT("this machine", command_expected("tests/unit/cmds/expected/self-check-here"));
}

int main(void)
{
	char path[4096];

	command_begin();
	/* Python would look for NCCL in its packages. */
	put("bin/python3", "#!/bin/sh\n");
	chmod(command_path("bin/python3"), 0755);
	snprintf(path, sizeof(path), "%s:%s", command_path("bin"), getenv("PATH"));
	setenv("PATH", path, 1);
	images();
	this_machine();
	an_nccl_that_loads();
	servers();
	return tap_done();
}
