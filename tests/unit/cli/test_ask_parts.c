/*
 * Talking to ringside-fetch and to NCCL's RAS when reads and writes are short, interrupted or late. Time and system calls
 * are played; the files are included for that.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define cli_fetch(how, requests, count, take, context) \
	ask_included_fetch(how, requests, count, take, context)
#define cli_ras_ask ask_included_ras
#include "cli/cli_ask.h"
#include "common/clock.h"

static int play_poll(struct pollfd *fds, nfds_t count, int wait_ms);
static ssize_t play_read(int fd, void *bytes, size_t size);
static ssize_t play_write(int fd, const void *bytes, size_t length);
static ssize_t play_recv(int fd, void *bytes, size_t size, int flags);
static ssize_t play_send(int fd, const void *bytes, size_t length, int flags);
static uint64_t play_clock(clockid_t clock);

#define poll play_poll
#define read play_read
#define write play_write
#define recv play_recv
#define send play_send
#define clock_system_ns play_clock
#include "cli/cli_fetch.c"
#include "cli/cli_ras.c"
#undef poll
#undef read
#undef write
#undef recv
#undef send
#undef clock_system_ns

#include "tests/support/command_play.h"
#include "tests/tap.h"

/* ---- the stage -------------------------------------------------------------------------------- */

/* What the next calls do: "e" is interrupted, "a" again, "x" an error, "0" nothing or the end, a digit so many bytes, and
 * "s" the second descriptor. */
static struct {
	const char *polls, *reads, *writes;
	const char *input;
	uint64_t now_ns, step_ns;
	struct sink written;
} play;
static struct sink happened;

static char next(const char **list)
{
	return **list ? *(*list)++ : '\0';
}

static ssize_t result_of(char what, size_t size)
{
	errno = what == 'e' ? EINTR : what == 'a' ? EAGAIN : EIO;
	if (what == 'e' || what == 'a' || what == 'x')
		return -1;
	if (what == '\0')
		return (ssize_t)size;
	return (size_t)(what - '0') < size ? what - '0' : (ssize_t)size;
}

static int play_poll(struct pollfd *fds, nfds_t count, int wait_ms)
{
	char what = next(&play.polls);

	sink_format(&happened, "poll %d%s for %d ms\n", (int)count,
		    count == 0		      ? ""
		    : fds[0].events == POLLIN ? " in"
					      : " out",
		    wait_ms);
	for (nfds_t i = 0; i < count; i++)
		fds[i].revents = 0;
	if (what == 's')
		fds[1].revents = POLLIN;
	if (what == '0')
		play.now_ns += (uint64_t)wait_ms * MS_NS;
	return what == 's' ? 1 : (int)result_of(what, 1);
}

static ssize_t play_input(void *bytes, size_t size)
{
	ssize_t length = result_of(next(&play.reads), size);

	if (length > (ssize_t)strlen(play.input))
		length = (ssize_t)strlen(play.input);
	if (length > 0) {
		memcpy(bytes, play.input, (size_t)length);
		play.input += length;
	}
	return length;
}

static ssize_t play_output(const void *bytes, size_t length)
{
	ssize_t done = result_of(next(&play.writes), length);

	if (done > 0)
		sink_write(&play.written, bytes, (size_t)done);
	return done;
}

static ssize_t play_read(int fd, void *bytes, size_t size)
{
	(void)fd;
	return play_input(bytes, size);
}

static ssize_t play_write(int fd, const void *bytes, size_t length)
{
	(void)fd;
	return play_output(bytes, length);
}

static ssize_t play_recv(int fd, void *bytes, size_t size, int flags)
{
	(void)fd, (void)flags;
	return play_input(bytes, size);
}

static ssize_t play_send(int fd, const void *bytes, size_t length, int flags)
{
	(void)fd;
	if (flags != MSG_NOSIGNAL)
		abort();
	return play_output(bytes, length);
}

static uint64_t play_clock(clockid_t clock)
{
	(void)clock;
	play.now_ns += play.step_ns;
	return play.now_ns;
}

static void begin(const char *heading)
{
	sink_format(&happened, "=== %s\n", heading);
	sink_release(&play.written);
	memset(&play, 0, sizeof(play));
	sink_init_memory(&play.written);
	play.polls = play.reads = play.writes = play.input = "";
	play.now_ns = 1000 * SECOND_NS;
}

static void show_written(void)
{
	sink_format(&happened, "wrote %s", sink_string(&play.written));
}

/* ---- ringside-fetch --------------------------------------------------------------------------- */

static void take(void *context, size_t index, int status, const char *bytes, size_t length)
{
	(void)context;
	sink_format(&happened, "answer %zu: %d %.*s\n", index, status, (int)length, bytes);
}

static void arguments(void)
{
	static const struct cli_fetch cases[] = {
		{ .parallel = 32, .timeout_ns = 5000000000, .limit_bytes = 1 << 20 },
		{ .parallel = 1,
		  .timeout_ns = 3000000,
		  .limit_bytes = 7,
		  .auth = "a",
		  .ca_file = "c",
		  .is_insecure = true },
		{ .parallel = 2, .timeout_ns = 1000000, .limit_bytes = 7 },
		{ .parallel = 2, .timeout_ns = 1999000000, .limit_bytes = 7 },
		{ .parallel = 2, .timeout_ns = 2000000000, .limit_bytes = 7 },
	};

	begin("arguments");
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct arguments made;

		make_arguments(&made, "fetch", &cases[i]);
		for (size_t j = 0; j < made.count; j++)
			sink_format(&happened, "%s ", made.list[j]);
		sink_format(&happened, "%s\n", made.list[made.count] ? "?" : "");
	}
}

static void requests(void)
{
	static char url[FETCH_LINE_MAX];
	struct cli_fetch_request list[] = { { "http://a/", NULL },
					    { url, NULL },
					    { "http://b/", "/s" } };
	struct fetcher child = { .requests = dup(0) };

	memset(url, 'u', sizeof(url) - 1);
	begin("requests in pieces; one is too long");
	play.writes = "e3e2";
	write_requests(&child, list, 3);
	show_written();
	EXPECT(child.requests == -1);
	begin("the child is gone");
	play.writes = "5x";
	child.requests = dup(0);
	write_requests(&child, list, 3);
	show_written();
	sink_text(&happened, "\n");
}

/* A frame of this answer. */
static void add_frame(struct sink *to, uint32_t id, int status, const char *bytes)
{
	char header[FETCH_HEADER_MAX];

	sink_write(to, header, fetch_frame_header(header, id, status, strlen(bytes)));
	sink_text(to, bytes);
}

static void frames(const char *heading, const char *polls, const char *reads, uint32_t second_id,
		   int stop_fd, uint64_t step_ns)
{
	const struct cli_fetch how = {
		.parallel = 2, .timeout_ns = 3 * SECOND_NS, .limit_bytes = 100, .stop_fd = stop_fd
	};
	bool is_answered[3] = { false };
	struct asking asking = {
		.how = &how, .count = 3, .is_answered = is_answered, .take = take
	};
	struct sink input;
	int result;

	begin(heading);
	sink_init_memory(&input);
	add_frame(&input, 0, 200, "hello");
	add_frame(&input, second_id, 404, "no");
	add_frame(&input, 1, 200, "");
	play.input = sink_string(&input);
	play.polls = polls;
	play.reads = reads;
	play.step_ns = step_ns;
	result = (int)read_frames(&asking, 0);
	sink_format(&happened, "%s, %zu answers\n",
		    result == READ_MORE	     ? "all"
		    : result == READ_END     ? "end"
		    : result == READ_STOPPED ? "stopped"
					     : "broken",
		    asking.answered);
	answer_the_rest(&asking, 3);
	answer_the_rest(&asking, 137);
	sink_release(&input);
}

static void all_frames(void)
{
	frames("answers", "", "", 2, -1, 0);
	frames("answers in pieces", "e1", "9e4", 2, 5, 0);
	frames("stopped", "1s", "9", 2, 5, 0);
	frames("nothing comes", "0", "", 2, -1, 0);
	frames("polling fails", "x", "", 2, -1, 0);
	frames("reading fails", "", "x", 2, -1, 0);
	frames("the end", "", "90", 2, -1, 0);
	frames("a number that was not asked for", "", "", 3, -1, 0);
	frames("the same answer twice", "", "", 0, -1, 0);
	/* Three requests, two at a time: 3 rounds of 3 s, and 300 s. */
	frames("it takes 309 s", "", "1", 2, -1, 309 * SECOND_NS);
	frames("it takes longer", "", "1", 2, -1, 309 * SECOND_NS + 1);
}

/* ---- RAS -------------------------------------------------------------------------------------- */

static void addresses(void)
{
	static const char *const cases[] = { "node1:28028", "[::1]:80",	 "[]:80",      ":80",
					     "node1:",	    "node1",	 "a:b",	       "[a:80",
					     "::1:80",	    "x:1234567", "x:12345678", "[x]:1x" };
	char host[8], port[8];

	begin("addresses");
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		bool is_good = ras_split_address(cases[i], host, sizeof(host), port, sizeof(port));

		sink_format(&happened, "%s: %s %s\n", cases[i], is_good ? host : "no",
			    is_good ? port : "");
	}
	EXPECT(!ras_split_address("12345678:1", host, sizeof(host), port, sizeof(port)) &&
	       ras_split_address("1234567:1", host, sizeof(host), port, sizeof(port)));
}

static void waiting(void)
{
	static const struct {
		const char *what, *polls;
		uint64_t for_ns;
	} cases[] = {
		{ "ready", "", 2500 * MS_NS },
		{ "interrupted", "ee", 2500 * MS_NS },
		{ "an error", "x", 2500 * MS_NS },
		{ "too late", "0", 2500 * MS_NS },
		{ "no time", "", 0 },
		{ "little time", "", 1 },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		bool is;

		begin(cases[i].what);
		play.polls = cases[i].polls;
		is = is_ready(0, POLLIN, play.now_ns + cases[i].for_ns);
		sink_format(&happened, "%s\n", is ? "ready" : strerror(errno));
	}
}

static void talk(const char *heading, const char *polls, const char *reads, const char *writes,
		 const char *input, uint64_t for_ns)
{
	struct ras_answer answer = { .address = "node1:28028" };
	struct ras_talk talking;
	enum status status;

	begin(heading);
	play.polls = polls;
	play.reads = reads;
	play.writes = writes;
	play.input = input;
	ras_talk_init(&talking, RAS_TEXT, 5);
	status = talk_until_end(0, &talking, play.now_ns + for_ns);
	take_talk(&answer, &talking, status, errno);
	sink_format(&happened, "status %d, state %d, '%s', text %s\n", status, talking.state,
		    answer.why, answer.text ? answer.text : "none");
	show_written();
	sink_text(&happened, "\n");
	free(answer.text);
	ras_talk_release(&talking);
}

static void talks(void)
{
	static const char good[] = "SERVER PROTOCOL 2\nOK\nNCCL version 2.28.9\nall is well\n";

	talk("an answer", "", "", "", good, 12 * SECOND_NS);
	talk("in pieces", "", "5ea7", "3ea4", good, 12 * SECOND_NS);
	talk("sending fails", "", "", "x", good, 12 * SECOND_NS);
	talk("receiving fails", "", "x", "", good, 12 * SECOND_NS);
	talk("nobody greets", "1000", "", "", good, 12 * SECOND_NS);
	talk("hardly any time", "1000", "", "", good, SECOND_NS);
	talk("it ends early", "", "990", "", good, 12 * SECOND_NS);
	talk("another server", "", "", "", "SSH-2.0\n", 12 * SECOND_NS);
}

static void results(void)
{
	static const struct {
		enum status status;
		int error;
		size_t length;
	} cases[] = {
		{ ERR_SYSTEM, ETIMEDOUT, 0 }, { ERR_SYSTEM, ETIMEDOUT, 5 }, { ERR_SYSTEM, EIO, 5 },
		{ ERR_FORMAT, 0, 0 },	      { ERR_NO_SPACE, 0, 0 },	    { OK, 0, 5 },
	};

	begin("results");
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct ras_answer answer = { .address = "node1:28028" };
		struct ras_talk talking = { .answer_length = cases[i].length,
					    .answer = strdup("text"),
					    .is_cut = true,
					    .why = "no RAS" };

		take_talk(&answer, &talking, cases[i].status, cases[i].error);
		sink_format(&happened, "'%s', %s, %zu%s\n", answer.why,
			    answer.text ? answer.text : "none", answer.length,
			    answer.is_cut ? ", cut" : "");
		free(answer.text);
		free(talking.answer);
	}
}

int main(void)
{
	command_begin();
	sink_init_memory(&happened);
	arguments();
	requests();
	all_frames();
	addresses();
	waiting();
	talks();
	results();
	sink_release(&play.written);
	EXPECT_THAT("talking to others",
		    expected_text(&happened, "tests/unit/cli/expected/ask-parts"));
	return tap_done();
}
