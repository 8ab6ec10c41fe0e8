/* Asks NCCL's RAS over TCP, with limits on time and bytes. */
#include "cli/cli_ask.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/text.h"

enum { CLI_RAS_TIME_S = 12, CLI_RAS_WAITS_S = 5, CLI_RAS_GREETS_S = 2, CLI_RAS_TRIES = 5 };
#define CLI_RAS_ADDRESS "localhost:28028"

/* ---- where ------------------------------------------------------------------------------------ */

static bool ras_split_address(const char *address, char *host, size_t host_size, char *port,
			      size_t port_size)
{
	const char *colon = strrchr(address, ':');
	size_t length = colon ? (size_t)(colon - address) : 0;

	if (length > 1 && address[0] == '[' && address[length - 1] == ']') {
		address++;
		length -= 2;
	}
	if (length == 0 || length >= host_size)
		return false;
	memcpy(host, address, length);
	host[length] = '\0';
	return colon[1 + strspn(colon + 1, "0123456789")] == '\0' && colon[1] != '\0' &&
	       text_copy(port, port_size, colon + 1);
}

/* ---- waiting ---------------------------------------------------------------------------------- */

static bool is_ready(int fd, short events, uint64_t until_ns)
{
	for (;;) {
		uint64_t now_ns = clock_system_ns(CLOCK_MONOTONIC);
		struct pollfd wait = { .fd = fd, .events = events };
		int count;

		if (now_ns >= until_ns)
			break;
		count = poll(&wait, 1, (int)((until_ns - now_ns) / MS_NS) + 1);
		if (count > 0)
			return true;
		if (count == -1 && errno != EINTR)
			return false;
	}
	errno = ETIMEDOUT;
	return false;
}

static int connect_one(const struct addrinfo *to, uint64_t until_ns)
{
	int fd = socket(to->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int error = 0;
	socklen_t size = sizeof(error);

	if (fd == -1)
		return -1;
	if (connect(fd, to->ai_addr, to->ai_addrlen) == 0)
		return fd;
	if (errno != EINPROGRESS)
		error = errno;
	else if (!is_ready(fd, POLLOUT, until_ns))
		error = errno;
	else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == -1)
		error = errno;
	if (error == 0)
		return fd;
	close(fd);
	errno = error;
	return -1;
}

static int connect_to(struct ras_answer *answer, uint64_t until_ns)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *list = NULL;
	char host[256], port[8];
	int fd = -1, code;

	if (!ras_split_address(answer->address, host, sizeof(host), port, sizeof(port))) {
		text_format(answer->why, sizeof(answer->why), "'%.200s' is not HOST:PORT",
			    answer->address);
		return -1;
	}
	code = getaddrinfo(host, port, &hints, &list);
	if (code != 0) {
		text_format(answer->why, sizeof(answer->why), "%.200s: %s", answer->address,
			    gai_strerror(code));
		return -1;
	}
	for (const struct addrinfo *at = list; at && fd == -1; at = at->ai_next)
		fd = connect_one(at, until_ns);
	if (fd == -1)
		text_format(answer->why, sizeof(answer->why), "cannot connect to %.200s: %s",
			    answer->address, strerror(errno));
	freeaddrinfo(list);
	return fd;
}

/* ---- talking ---------------------------------------------------------------------------------- */

static bool send_request(int fd, struct ras_talk *talk, uint64_t until_ns)
{
	size_t done = 0, length = strlen(talk->request);

	while (done < length) {
		ssize_t sent;

		if (!is_ready(fd, POLLOUT, until_ns))
			return false;
		sent = send(fd, talk->request + done, length - done, MSG_NOSIGNAL);
		if (sent == -1 && errno != EINTR && errno != EAGAIN)
			return false;
		done += sent > 0 ? (size_t)sent : 0;
	}
	talk->request[0] = '\0';
	return true;
}

/* ERR_SYSTEM with errno. */
static enum status talk_until_end(int fd, struct ras_talk *talk, uint64_t until_ns)
{
	uint64_t greeting_ns = clock_system_ns(CLOCK_MONOTONIC) + CLI_RAS_GREETS_S * SECOND_NS;
	char bytes[16384];

	for (;;) {
		bool is_greeting = talk->state == RAS_GREETS && greeting_ns < until_ns;
		enum status status;
		ssize_t got;

		if (!send_request(fd, talk, until_ns) ||
		    !is_ready(fd, POLLIN, is_greeting ? greeting_ns : until_ns))
			return ERR_SYSTEM;
		got = recv(fd, bytes, sizeof(bytes), 0);
		if (got == 0)
			return ras_talk_end(talk);
		if (got == -1 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (got == -1)
			return ERR_SYSTEM;
		status = ras_talk_take(talk, bytes, (size_t)got);
		if (status != OK)
			return status == ERR_RANGE ? OK : status;
	}
}

static void take_talk(struct ras_answer *answer, struct ras_talk *talk, enum status status,
		      int error)
{
	if (status == ERR_SYSTEM && error == ETIMEDOUT && talk->answer_length > 0)
		text_format(answer->why, sizeof(answer->why), "no complete answer within %d s",
			    CLI_RAS_TIME_S);
	else if (status == ERR_SYSTEM)
		text_format(answer->why, sizeof(answer->why), "%.200s: %s", answer->address,
			    strerror(error));
	else if (status != OK)
		text_format(answer->why, sizeof(answer->why), "%s",
			    status == ERR_FORMAT ? talk->why : status_text(status));
	if (status != OK)
		return;
	answer->text = talk->answer;
	answer->length = talk->answer_length;
	answer->is_json = talk->is_json;
	answer->is_cut = talk->is_cut;
	talk->answer = NULL;
}

/* *is_silent: it accepted the connection and said nothing. */
static enum status ask_once(struct ras_answer *answer, enum ras_request request, uint64_t until_ns,
			    bool *is_silent)
{
	struct ras_talk talk;
	enum status status;
	int fd = connect_to(answer, until_ns);

	*is_silent = false;
	if (fd == -1)
		return ERR_SYSTEM;
	ras_talk_init(&talk, request, CLI_RAS_WAITS_S);
	status = talk_until_end(fd, &talk, until_ns);
	*is_silent = status == ERR_SYSTEM && errno == ETIMEDOUT && talk.state == RAS_GREETS;
	take_talk(answer, &talk, status, errno);
	ras_talk_release(&talk);
	close(fd);
	return status;
}

enum status cli_ras_ask(struct ras_answer *answer, const char *address, enum ras_request request)
{
	uint64_t until_ns = clock_system_ns(CLOCK_MONOTONIC) + (uint64_t)CLI_RAS_TIME_S * SECOND_NS;
	const char *named = getenv("NCCL_RAS_ADDR");
	bool is_silent = true;
	enum status status = ERR_SYSTEM;

	*answer = (struct ras_answer){ .text = NULL };
	if (address == NULL)
		address = named && named[0] ? named : CLI_RAS_ADDRESS;
	text_copy(answer->address, sizeof(answer->address), address);
	for (int i = 0; i < CLI_RAS_TRIES && is_silent; i++)
		status = ask_once(answer, request, until_ns, &is_silent);
	return status;
}
