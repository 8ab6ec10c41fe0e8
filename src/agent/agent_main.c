/*
 *	             +--------------------- epoll -------------------------------------+
 *	             |          |             |           |           |                |
 *	         listeners   libmicrohttpd  inotify   signals    the hook's        a moment:
 *	             |          |             |           |        output     scan, textfiles, watchdog,
 *	             v          v             v           v           v       a client's patience, the
 *	          accept     answer       scan soon   exit, reload,  log it   hook's time
 *	                                              a child ended
 *
 * One thread. It does one long thing at a time, a step of a scan or one response body, and serves clients in between; child
 * processes check passwords, judge speed and make snapshots.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/agent_route.h"
#include "cli/cli_ask.h"
#include "common/clock.h"
#include "common/file_opener.h"
#include "common/text.h"
#include "hub/hub.h"
#include "serve/server.h"

struct agent {
	const struct agent_options *options;
	struct serve_loop loop;
	struct agent_route route;
	struct agent_look look;
	struct cli_host_watch host;
	struct agent_notices notices;
	struct serve_verdicts verdicts;
	struct agent_kernel kernel;
	struct agent_probe probe;
	struct serve_hook hook;
	struct agent_textfile textfile;
	bool is_watching;	 /* inotify is in the epoll set */
	uint64_t noted_look;	 /* number of the last processed scan */
	size_t status_processes; /* as in STATUS */
	size_t status_notices;
};

/* ---- setup ---------------------------------------------------------------------------------- */

static int open_look(struct agent *agent)
{
	enum status status =
		agent_look_init(&agent->look, &agent->options->watch, &agent->options->limits);
	int fd = watch_fd(&agent->look.watch);

	if (status != OK)
		return serve_log(SERVE_ERROR, "cannot watch processes: %s",
				 status == ERR_SYSTEM ? strerror(errno) : status_text(status));
	agent->is_watching = fd != -1 && serve_loop_watch(&agent->loop, fd);
	return 0;
}

static int open_all(struct agent *agent)
{
	const struct agent_options *options = agent->options;
	struct serve_rights rights = { .must_write = options->has_kernel,
				       .must_hand_on = options->probe.has_stacks };
	int code;

	code = serve_rights_find(&rights, options->serving.user, options->serving.group);
	if (code == 0)
		code = serve_loop_open(&agent->loop);
	if (code == 0)
		code = serve_loop_listen(&agent->loop, options->serving.listen,
					 options->serving.listen_count, "127.0.0.1:9749",
					 options->serving.group ? rights.group : (gid_t)-1);
	if (code == 0)
		code = serve_loop_serve(&agent->loop, options->serving.web_config, agent_route,
					&agent->route);
	/* The kernel log needs a right that is dropped. */
	cli_host_watch_open(&agent->host);
	text_copy(agent->host.facts.host, sizeof(agent->host.facts.host), options->serving.host);
	if (code == 0)
		code = serve_rights_drop(&rights);
	if (code == 0)
		code = agent_textfile_open(&agent->textfile, options->textfile,
					   options->interval_ns);
	if (code == 0)
		code = open_look(agent);
	if (code == 0)
		code = serve_hook_open(&agent->hook, options->serving.hook,
				       options->serving.hook_ns, agent->loop.epoll);
	agent->route.site.http = &agent->loop.http;
	agent->route.look = &agent->look;
	agent->look.verdicts = agent->verdicts.totals;
	agent->look.kernel = agent->kernel.totals;
	agent->look.host = &agent->host;
	agent->look.epoll = agent->loop.epoll;
	agent_probe_open(&agent->probe, &options->probe, agent->loop.epoll);
	agent->look.probe = &agent->probe;
	if (options->has_kernel)
		agent->kernel.seconds = (uint32_t)(options->kernel_ns / UINT64_C(1000000000));
	agent->route.site.host = options->serving.host;
	agent_bodies_init(&agent->route.bodies, &agent->look, options->serving.host,
			  agent->loop.epoll);
	return code;
}

static void close_all(struct agent *agent)
{
	serve_hook_release(&agent->hook);
	agent_probe_release(&agent->probe);
	serve_loop_close(&agent->loop);
	agent_bodies_release(&agent->route.bodies);
	agent_textfile_close(&agent->textfile);
	serve_verdicts_release(&agent->verdicts);
	agent_kernel_release(&agent->kernel);
	agent_look_release(&agent->look);
	cli_host_watch_close(&agent->host);
}

/* ---- events ---------------------------------------------------------------------------------- */

static void take_event(void *context, int fd, uint64_t now_ns)
{
	struct agent *agent = context;

	if (fd == agent->hook.output)
		serve_hook_handle(&agent->hook, now_ns);
	else if (agent->is_watching && fd == watch_fd(&agent->look.watch))
		agent_look_heed(&agent->look, now_ns);
}

static void tell_status(struct agent *agent)
{
	size_t processes = agent->look.watch.recording.count;
	size_t notices = agent->look.live.notice_count;

	if (processes == agent->status_processes && notices == agent->status_notices)
		return;
	agent->status_processes = processes;
	agent->status_notices = notices;
	serve_systemd_notify("STATUS=%zu processes, %zu notices", processes, notices);
}

/* A hang is reported when what its processes were asked is known. */
static bool is_pending(const void *probe, const struct verdict *verdict, uint64_t now_ns)
{
	return agent_probe_is_pending(probe, verdict, now_ns);
}

static void note_scan(struct agent *agent, uint64_t now_ns)
{
	const struct serve_verdicts_to to = { &agent->hook, agent->options->serving.host,
					      &agent->look.watch, is_pending, &agent->probe };

	agent->noted_look = agent->look.number;
	agent_bodies_age(&agent->route.bodies);
	agent_notices_report(&agent->notices, &agent->look.live, now_ns);
	serve_verdicts_report(&agent->verdicts, &agent->look.live, &to, now_ns);
	agent_kernel_look(&agent->kernel, &agent->look.live, &agent->look.watch, now_ns);
	tell_status(agent);
	file_opener_rest();
}

/* What needs the result of a scan, while none is under way. *is_busy: something that takes long was done. */
static uint64_t use_scan(struct agent *agent, uint64_t now_ns, bool *is_busy)
{
	struct agent_textfile *textfile = &agent->textfile;
	bool has_news;
	uint64_t next, at;

	at = agent_probe_run(&agent->probe, &agent->look.live, &agent->look.watch, now_ns,
			     &has_news);
	if (has_news)
		agent->look.next_ns = now_ns;
	next = agent_look_search(&agent->look) ? now_ns : agent->look.next_ns;
	if (at < next)
		next = at;
	at = agent_look_judge(&agent->look, now_ns);
	next = at < next ? at : next;
	if (textfile->directory && (agent->look.watch.recording.count > 0 || textfile->count > 0)) {
		if (now_ns >= textfile->next_ns && !*is_busy) {
			agent_textfile_write(textfile, &agent->look.live, now_ns);
			*is_busy = true;
		}
		next = textfile->next_ns < next ? textfile->next_ns : next;
	}
	at = agent_look_host(&agent->look, now_ns);
	return at < next ? at : next;
}

/* Runs what is due; returns when the next thing is due. */
static uint64_t do_due(void *context, uint64_t now_ns)
{
	struct agent *agent = context;
	uint64_t next, at;
	bool is_busy;

	if (agent->loop.must_reload) {
		serve_loop_reload(&agent->loop, agent->options->serving.web_config);
		/* Cached answers have the old headers. */
		agent_bodies_forget(&agent->route.bodies);
	}
	is_busy = agent_look_step(&agent->look, now_ns);
	if (agent->look.number != agent->noted_look)
		note_scan(agent, now_ns);
	next = agent->look.is_scanning ? now_ns : use_scan(agent, now_ns, &is_busy);
	at = agent_bodies_run(&agent->route.bodies, &agent->loop.http, is_busy, now_ns);
	next = at < next ? at : next;
	at = serve_hook_run(&agent->hook, now_ns);
	return at < next ? at : next;
}

/* ringside-agent: see docs/AGENT.md. Started by `ringside agent`. */

static int agent_run(const struct agent_options *options)
{
	struct agent *agent = calloc(1, sizeof(*agent));
	struct serve_loop_program program = { do_due, take_event, agent };
	int code;

	if (agent == NULL)
		return serve_log(SERVE_ERROR, "out of memory");
	agent->options = options;
	serve_loop_init(&agent->loop);
	agent->textfile.fd = agent->hook.output = -1;
	agent->look.watch.inotify = -1;
	agent->host.log.fd = -1;
	code = open_all(agent);
	if (code == 0)
		code = serve_loop_run(&agent->loop, &program);
	close_all(agent);
	free(agent);
	return code;
}

int main(int argc, char **argv)
{
	/* Between two answers. */
	const struct file_opener_settings impatient = { .patience_ns = 50 * MS_NS,
							.penalty_ns = 60 * SECOND_NS,
							.only_texts = true,
							.each_ns = 50 * MS_NS,
							.all_ns = 50 * MS_NS };
	struct agent_options options;
	int code;

	if (argc > 1 && strcmp(argv[1], "hub") == 0)
		return hub_main(argc - 1, argv + 1);
	file_opener_begin(&impatient);
	code = agent_options_parse(&options, argc, argv);
	return code == -1 ? agent_run(&options) : code;
}
