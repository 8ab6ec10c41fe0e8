/*
 * A rank looks for rank 0: by its address, or by the file that rank 0 writes. What is found there may
 * be somebody else (the port of a job that is gone, taken by another), so it is asked, and looked for
 * again until it answers as rank 0 of this job does.
 */
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/text.h"
#include "programs/bench/hub_arrive.h"
#include "programs/bench/hub_card.h"

/* One connection, and one answer. */
enum { TRY_SECONDS = 2, PAUSE_MS = 20 };

enum found { FOUND = 1, NOT_YET = 0, REFUSED = -1 };

struct search {
	struct bench_hub *hub;
	const struct bench_place *place;
	uint64_t deadline_ns;
	bool is_connection_refused;
	char last[256]; /* why it did not work */
};

/* Our own launcher listens before it starts ranks, on a port that is nobody else's. */
static bool is_certain(const struct bench_place *place)
{
	return strcmp(place->launcher, "self") == 0;
}

/* Where nobody else can be, rank 0 has all the time there is: it may have no processor yet. */
static uint64_t sooner(const struct search *search)
{
	uint64_t try_ns = hub_now() + (uint64_t)TRY_SECONDS * 1000000000;

	return try_ns < search->deadline_ns && !is_certain(search->place) ? try_ns
									  : search->deadline_ns;
}

static int connect_to(const struct addrinfo *address, uint64_t deadline_ns)
{
	int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct pollfd poll_fd = { .fd = fd, .events = POLLOUT };
	socklen_t length = sizeof(errno);
	int error = 0;

	if (fd == -1)
		return -1;
	if (connect(fd, address->ai_addr, address->ai_addrlen) == 0)
		return fd;
	error = errno;
	if (error == EINPROGRESS) {
		uint64_t now = hub_now();
		int left = deadline_ns > now ? (int)((deadline_ns - now) / 1000000 + 1) : 0;

		length = sizeof(error);
		if (poll(&poll_fd, 1, left) != 1)
			error = ETIMEDOUT;
		else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) == -1)
			error = errno;
		if (error == 0)
			return fd;
	}
	close(fd);
	errno = error;
	return -1;
}

/* Say who we are, hear who that is. */
static enum found greet(struct search *search, int fd, uint64_t token)
{
	struct {
		struct hub_header header;
		struct hub_hello hello;
	} say = { .header = { .magic = HUB_MAGIC,
			      .kind = HUB_HELLO,
			      .length = sizeof(struct hub_hello) },
		  .hello = hub_hello_of(search->hub, token) };
	struct hub_peer *peer = &search->hub->peers[0];
	struct hub_header header;
	struct hub_hello hello;
	uint64_t until = sooner(search);
	char why[HUB_PROBLEM_BYTES] = "";

	if (hub_write_whole(fd, &say, sizeof(say), until) != 0 ||
	    hub_read_whole(fd, &header, sizeof(header), until) != 0) {
		text_copy(search->last, sizeof(search->last), "it does not answer");
		return NOT_YET;
	}
	if (header.magic != HUB_MAGIC)
		goto not_ours;
	if (header.kind == HUB_FAIL && header.length < sizeof(why)) {
		hub_read_whole(fd, why, header.length, until);
		text_from_field(search->last, sizeof(search->last), why, sizeof(why));
		return REFUSED;
	}
	if (header.kind != HUB_WELCOME || header.length != sizeof(hello) ||
	    hub_read_whole(fd, &hello, sizeof(hello), until) != 0 || hello.token != token)
		goto not_ours;
	text_from_field(peer->host, sizeof(peer->host), hello.host, sizeof(hello.host));
	peer->fd = fd;
	return FOUND;
not_ours:
	text_copy(search->last, sizeof(search->last),
		  "who answers there is not rank 0 of this job");
	return NOT_YET;
}

static enum found try_host(struct search *search, const char *host, int port, uint64_t token)
{
	struct addrinfo wanted = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *all = NULL;
	enum found found = NOT_YET;
	char service[16];
	int error;

	text_format(service, sizeof(service), "%d", port);
	error = getaddrinfo(host, service, &wanted, &all);
	if (error != 0) {
		text_format(search->last, sizeof(search->last), "no address for %s: %s", host,
			    gai_strerror(error));
		return NOT_YET;
	}
	for (struct addrinfo *at = all; at != NULL && found == NOT_YET; at = at->ai_next) {
		int fd = connect_to(at, sooner(search));

		search->is_connection_refused = fd == -1 && errno == ECONNREFUSED;
		if (fd == -1) {
			text_format(search->last, sizeof(search->last), "%s", strerror(errno));
			continue;
		}
		hub_set_options(fd);
		found = greet(search, fd, token);
		if (found != FOUND)
			close(fd);
	}
	freeaddrinfo(all);
	return found;
}

static enum found try_card(struct search *search)
{
	struct hub_card card;
	enum found found = NOT_YET;
	enum status status = hub_card_read(&card, search->place->file);

	if (status != OK) {
		text_format(search->last, sizeof(search->last), "%s",
			    status == ERR_SYSTEM  ? strerror(errno)
			    : status == ERR_RANGE ? "it is not this user's file"
						  : "it does not say where");
		return NOT_YET;
	}
	for (size_t i = 0; i < card.count && found == NOT_YET; i++)
		found = try_host(search, card.hosts[i], card.port, card.token);
	return found;
}

static enum found try_ports(struct search *search)
{
	const struct bench_place *place = search->place;
	const char *host = place->address;
	enum found found = NOT_YET;
	int ports = place->ports > 0 ? place->ports : 1;

	/* Rank 0 listens on the loopback alone then. */
	if (hub_is_local(place) && strcmp(host, "::1") != 0)
		host = "127.0.0.1";
	for (int i = 0; i < ports && found == NOT_YET; i++)
		found = try_host(search, host, place->port + i, place->token);
	return found;
}

/* When nobody listens any more, rank 0 is gone, and it or the launcher tells why. */
static bool is_hopeless(const struct search *search, const struct bench_place *place)
{
	return is_certain(place) && search->is_connection_refused;
}

int hub_look_for(struct bench_hub *hub, const struct bench_place *place, int patience_s)
{
	struct search search = { .hub = hub,
				 .place = place,
				 .deadline_ns = hub_now() + (uint64_t)patience_s * 1000000000 };
	bool is_by_file = place->file[0] != '\0';

	for (;;) {
		enum found found = is_by_file ? try_card(&search) : try_ports(&search);

		if (found == FOUND)
			return 0;
		if (found == REFUSED) {
			hub->is_refused = true;
			return hub_break(hub, NULL, "rank %d was refused by rank 0: %s", hub->rank,
					 search.last);
		}
		if (is_hopeless(&search, place) || hub_now() >= search.deadline_ns)
			break;
		poll(NULL, 0, PAUSE_MS);
	}
	hub->is_rank_0_lost = !is_certain(place);
	if (is_by_file)
		return hub_break(hub, NULL,
				 "rank %d did not find rank 0 by %s within %d s: %s; is it on a "
				 "file system that all machines have?",
				 hub->rank, place->file, patience_s, search.last);
	return hub_break(hub, NULL, "rank %d did not find rank 0 at %s port %d within %d s: %s",
			 hub->rank, place->address, place->port, patience_s, search.last);
}
