/* NCCL's RAS: the doctor and bundles ask it. The server is a child of the test and plays one conversation. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "cli/cli_ask.h"
#include "tests/support/command_play.h"
#include "tests/tap.h"

enum manner {
	POLITE,	 /* knows JSON */
	OLD,	 /* knows only text */
	CLOSES,	 /* ends at once */
	GARBAGE, /* another protocol */
	CUT,	 /* ends in the middle of a greeting */
};

static const char text_answer[] = "NCCL version 2.28.9 compiled with CUDA 12.8\nJob summary\n"
				  "===========\n  1 process MISSING\n";
static const char json_answer[] = "{\"nccl_version\": \"2.28.9\"}\n";

static void put(int fd, const char *text)
{
	if (send(fd, text, strlen(text), MSG_NOSIGNAL) == -1)
		_exit(0);
}

static void answer_line(int fd, const char *line, enum manner manner, bool *is_json)
{
	if (strncasecmp(line, "client protocol", 15) == 0) {
		put(fd, manner == CUT ? "SERVER PROT" : "SERVER PROTOCOL 2\n");
		if (manner == CUT)
			_exit(0);
	} else if (strncasecmp(line, "timeout ", 8) == 0) {
		put(fd, "OK\n");
	} else if (strcasecmp(line, "set format json") == 0) {
		*is_json = manner == POLITE;
		put(fd, *is_json ? "OK\n" : "ERROR: Unknown command\n");
	} else if (strcasecmp(line, "verbose status") == 0) {
		/* In pieces, as a network may. */
		const char *text = *is_json ? json_answer : text_answer;

		for (size_t at = 0, length = strlen(text); at < length; at += 7)
			if (send(fd, text + at, length - at < 7 ? length - at : 7, MSG_NOSIGNAL) ==
			    -1)
				break;
		_exit(0);
	} else {
		put(fd, "ERROR: unknown\n");
	}
}

static void converse(int fd, enum manner manner)
{
	char bytes[1024];
	size_t used = 0;
	bool is_json = false;
	ssize_t got;

	if (manner == CLOSES)
		_exit(recv(fd, bytes, sizeof(bytes), 0) < 0);
	if (manner == GARBAGE)
		put(fd, "HTTP/1.1 400 Bad Request\r\n\r\n");
	while (used < sizeof(bytes) - 1 &&
	       (got = recv(fd, bytes + used, sizeof(bytes) - 1 - used, 0)) > 0) {
		char *end;

		used += (size_t)got;
		bytes[used] = '\0';
		while ((end = strchr(bytes, '\n')) != NULL) {
			*end = '\0';
			if (manner != GARBAGE)
				answer_line(fd, bytes, manner, &is_json);
			memmove(bytes, end + 1, used - (size_t)(end - bytes));
			used -= (size_t)(end - bytes) + 1;
		}
	}
	_exit(0);
}

/* Answers so many connections, then ends. Returns the port. */
static int serve(enum manner manner, int connections, pid_t *server)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t size = sizeof(address);
	int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (listening == -1 || bind(listening, (struct sockaddr *)&address, sizeof(address)) != 0 ||
	    listen(listening, 8) != 0 ||
	    getsockname(listening, (struct sockaddr *)&address, &size) != 0)
		abort();
	fflush(NULL);
	*server = fork();
	if (*server == 0) {
		for (int i = 0; i < connections; i++) {
			int fd = accept(listening, NULL, NULL);
			pid_t child = fork();

			if (child == 0)
				converse(fd, manner);
			close(fd);
			waitpid(child, NULL, 0);
		}
		_exit(0);
	}
	close(listening);
	return ntohs(address.sin_port);
}

static void direct(void)
{
	static const struct {
		enum manner manner;
		enum ras_request request;
		enum status status;
		const char *text;
		bool is_json;
		const char *why; /* part of it */
	} cases[] = {
		{ POLITE, RAS_JSON, OK, json_answer, true, "" },
		{ POLITE, RAS_TEXT, OK, text_answer, false, "" },
		{ OLD, RAS_JSON, OK, text_answer, false, "" },
		{ OLD, RAS_TEXT, OK, text_answer, false, "" },
	};
	struct ras_answer answer;
	char address[64];
	pid_t server;

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		int port = serve(cases[i].manner, 1, &server);

		snprintf(address, sizeof(address), i % 2 ? "localhost:%d" : "127.0.0.1:%d", port);
		if (i == 3)
			setenv("NCCL_RAS_ADDR", address, 1);
		EXPECT_EQUAL(cli_ras_ask(&answer, i == 3 ? NULL : address, cases[i].request),
			     cases[i].status);
		EXPECT(strcmp(answer.address, address) == 0);
		EXPECT(answer.text != NULL && strcmp(answer.text, cases[i].text) == 0);
		EXPECT(answer.length == strlen(cases[i].text) && !answer.is_cut &&
		       answer.is_json == cases[i].is_json);
		free(answer.text);
		kill(server, SIGKILL);
		waitpid(server, NULL, 0);
	}
	unsetenv("NCCL_RAS_ADDR");
}

static void refusals(void)
{
	static const struct {
		enum manner manner;
		const char *why;
	} cases[] = { { CLOSES, "" }, { GARBAGE, "" }, { CUT, "" } };
	static const char *const addresses[] = {
		"x", ":1", "host:", "host:1x", "[]:1", "127.0.0.1:1", "[127.0.0.1]:1",
	};
	struct ras_answer answer;
	char address[64];
	pid_t server;

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		int port = serve(cases[i].manner, 3, &server);

		snprintf(address, sizeof(address), "127.0.0.1:%d", port);
		EXPECT(cli_ras_ask(&answer, address, RAS_JSON) != OK && answer.text == NULL);
		sink_format(&command_play.text, "manner %d: %s\n", (int)cases[i].manner,
			    strncmp(answer.why, address, strlen(address)) == 0
				    ? answer.why + strlen(address)
				    : answer.why);
		kill(server, SIGKILL);
		waitpid(server, NULL, 0);
	}
	for (size_t i = 0; i < ARRAY_LENGTH(addresses); i++) {
		EXPECT_EQUAL(cli_ras_ask(&answer, addresses[i], RAS_JSON), ERR_SYSTEM);
		sink_format(&command_play.text, "%s: %s\n", addresses[i], answer.why);
	}
	EXPECT_THAT("servers that do not answer are reported",
		    command_expected("tests/unit/cli/expected/ras"));
}

int main(void)
{
	command_begin();
	direct();
	refusals();
	return tap_done();
}
