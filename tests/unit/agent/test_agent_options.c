/* Command lines of agent and hub: what they become, and which are refused. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent.h"
#include "hub/hub.h"
#include "common/attributes.h"
#include "common/text.h"
#include "tests/support/scratch.h"
#include "tests/tap.h"

#define SECOND UINT64_C(1000000000)

static struct agent_options agent;
static struct hub_options hub;
static char said[2000];

/* Runs a parser with the words of a line; what it prints is in `said`. */
static int parse(bool is_hub, const char *line)
{
	static char words[2000];
	char *argv[64] = { is_hub ? "hub" : "agent" }, *rest = NULL, path[96];
	int argc = 1, code, saved = dup(STDERR_FILENO), fd;
	ssize_t length;

	text_copy(words, sizeof(words), line);
	for (char *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
		argv[argc++] = word;
	text_format(path, sizeof(path), "%s/said", scratch_dir.path);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	dup2(fd, STDERR_FILENO);
	code = is_hub ? hub_options_parse(&hub, argc, argv)
		      : agent_options_parse(&agent, argc, argv);
	fflush(stderr);
	dup2(saved, STDERR_FILENO);
	close(saved);
	length = pread(fd, said, sizeof(said) - 1, 0);
	said[length > 0 ? length : 0] = '\0';
	close(fd);
	return code;
}

static void expect_refused(bool is_hub, const char *line, const char *message)
{
	bool is_refused = parse(is_hub, line) == CLI_EXIT_USAGE && strstr(said, message) != NULL;

	if (!EXPECT_THAT(line, is_refused))
		printf("# got %s\n", said);
}

static void test_agent(void)
{
	char host[256] = "";

	gethostname(host, sizeof(host) - 1);
	setenv("RINGSIDE_SHM", "/some/where", 1);
	EXPECT_EQUAL(parse(false, ""), -1);
	EXPECT(agent.interval_ns == 15 * SECOND && agent.kernel_ns == 10 * SECOND &&
	       agent.watch.keep_ns == 300 * SECOND && !agent.has_kernel &&
	       strcmp(agent.watch.directory, "/some/where") == 0 && agent.watch.only_host == NULL);
	EXPECT(agent.limits.hang_ns == 20 * SECOND && !agent.limits.is_hang_fixed &&
	       agent.limits.lag_ns == 5 * SECOND && agent.limits.agent_port == 0);
	EXPECT(agent.serving.listen_count == 0 && agent.serving.hook == NULL &&
	       agent.serving.hook_ns == 60 * SECOND && strcmp(agent.serving.host, host) == 0);
	EXPECT_EQUAL(parse(false,
			   "--hang 7s --lag 3s --host n1 --directory /d --keep 0s --interval "
			   "1s --kernel-on-demand --kernel-time 1m --stacks --native --ras "
			   "--any-owner --hook /h --hook-time 9s --textfile /t"),
		     -1);
	EXPECT(agent.limits.hang_ns == 7 * SECOND && agent.limits.is_hang_fixed &&
	       agent.limits.lag_ns == 3 * SECOND && agent.watch.only_host == agent.serving.host &&
	       strcmp(agent.serving.host, "n1") == 0 && strcmp(agent.watch.directory, "/d") == 0 &&
	       agent.watch.keep_ns == 0 && agent.interval_ns == SECOND && agent.has_kernel &&
	       agent.kernel_ns == 60 * SECOND && agent.probe.has_stacks && agent.probe.has_native &&
	       agent.probe.has_ras && agent.watch.is_any_owner &&
	       strcmp(agent.serving.hook, "/h") == 0 && agent.serving.hook_ns == 9 * SECOND);
	expect_refused(false, "--native", "--native needs --stacks");
	expect_refused(false, "--hook h", "is not an absolute path of a program");
	expect_refused(false, "--host=", "--host '' is not a host name");
	expect_refused(false, "--listen 80x", "--listen 80x: port missing");
	expect_refused(false, "--kernel-time 61s", "is more than 1m");
	unsetenv("RINGSIDE_SHM");
}

/* Where other agents are expected. */
static void test_ports(void)
{
	static const struct {
		const char *line;
		unsigned int port;
	} cases[] = {
		{ "--listen 127.0.0.1:80", 80 },
		{ "--listen 127.0.0.1:9749", 0 },
		{ "--listen 127.0.0.1:80 --listen 10.0.0.1:81", 81 },
		{ "--listen 127.0.0.1:80 --listen 127.0.0.1:81", 80 },
		{ "--listen 10.0.0.1:81 --listen 10.0.0.1:82", 81 },
		{ "--listen 127.0.0.1:80 --listen 10.0.0.1:9749", 0 },
		{ "--listen unix:/x --listen :82", 82 },
		{ "--listen unix:/x", 0 },
		{ "--listen 127.0.0.1:0 --listen 127.0.0.1:83", 83 },
	};
	char many[400] = "";

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		EXPECT_EQUAL(parse(false, cases[i].line), -1);
		EXPECT_EQUAL(agent.limits.agent_port, cases[i].port);
	}
	for (int i = 0; i < SERVE_LISTENERS_MAX; i++)
		text_append(many, sizeof(many), "--listen :80 ");
	EXPECT(parse(false, many) == -1 && agent.serving.listen_count == SERVE_LISTENERS_MAX);
	text_append(many, sizeof(many), "--listen :80 ");
	expect_refused(false, many, "--listen can be given at most 8 times");
}

static void test_hub(void)
{
	char long_name[300], many[600] = "";

	EXPECT_EQUAL(parse(true, "--agents n[1-2]"), CLI_GO_ON);
	EXPECT(hub.source_count == 1 && hub.sources[0].kind == HUB_SOURCE_LIST &&
	       strcmp(hub.sources[0].value, "n[1-2]") == 0 && hub.interval_ns == 5 * SECOND &&
	       hub.refresh_ns == 30 * SECOND && hub.check_ns == 60 * SECOND &&
	       hub.timeout_ns == 3 * SECOND && hub.hang_ns == 20 * SECOND && !hub.is_hang_fixed &&
	       !hub.is_check_fixed);
	EXPECT_EQUAL(parse(true, "--slurm --dns a.b-c_d:80 --file-sd /f --http-sd http://h/x "
				 "--agents @/list --hang 7s --grafana https://g --check 0s"),
		     CLI_GO_ON);
	EXPECT(hub.source_count == 5 && hub.sources[0].kind == HUB_SOURCE_SLURM &&
	       hub.sources[1].kind == HUB_SOURCE_DNS && hub.sources[2].kind == HUB_SOURCE_FILE_SD &&
	       hub.sources[3].kind == HUB_SOURCE_HTTP_SD &&
	       hub.sources[4].kind == HUB_SOURCE_LIST && hub.hang_ns == 7 * SECOND &&
	       hub.is_hang_fixed && hub.check_ns == 0 && strcmp(hub.grafana, "https://g") == 0);
	EXPECT(parse(true, "--prometheus http://p:9090") == CLI_GO_ON && hub.source_count == 0 &&
	       strcmp(hub.prometheus, "http://p:9090") == 0);
	expect_refused(true, "", "no agents: use --agents");
	expect_refused(true, "--agents a:x", "--agents: 'a:x' has no port");
	expect_refused(true, "--agents #", "--agents: lists no agent");
	expect_refused(true, "--http-sd ftp://x", "--http-sd 'ftp://x' is not a URL");
	expect_refused(true, "--http-sd http://x#y", "is not a URL");
	expect_refused(true, "--prometheus http://p?x", "--prometheus 'http://p?x' is not a URL");
	expect_refused(true, "--prometheus p", "is not a URL");
	expect_refused(true, "--grafana g", "--grafana 'g' is not a URL");
	expect_refused(true, "--dns a/b", "--dns 'a/b' is not a host name");
	expect_refused(true, "--dns :80", "is not a host name");
	memset(long_name, 'a', sizeof(long_name));
	memcpy(long_name, "--dns ", 6);
	long_name[6 + 253] = '\0';
	EXPECT_EQUAL(parse(true, long_name), CLI_GO_ON);
	long_name[6 + 253] = 'a';
	long_name[6 + 254] = '\0';
	expect_refused(true, long_name, "is not a host name");
	for (int i = 0; i < HUB_SOURCES_MAX; i++)
		text_append(many, sizeof(many), "--slurm ");
	EXPECT(parse(true, many) == CLI_GO_ON && hub.source_count == HUB_SOURCES_MAX);
	text_append(many, sizeof(many), "--slurm ");
	EXPECT_EQUAL(parse(true, many), CLI_EXIT_USAGE);
}

int main(void)
{
	scratch_make();
	test_agent();
	test_ports();
	test_hub();
	return tap_done();
}
