/*
 * Rank 0 waits for the others. Whoever connects is a guest until it has said who it is; one that says
 * something else, or nothing for a while, is turned away, and the job goes on waiting for its ranks.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/text.h"
#include "programs/bench/hub_arrive.h"
#include "programs/bench/hub_card.h"

/* Files beside connections: libraries, GPUs, results. */
enum { GUESTS_MAX = 64, BACKLOG = 1024, FILES_ELSE = 128, LOOK_NS = 200000000 };
#define GUEST_PATIENCE_NS UINT64_C(10000000000)

struct guest {
	int fd; /* -1: free */
	uint64_t deadline_ns;
	size_t got;
	struct {
		struct hub_header header;
		struct hub_hello hello;
	} said;
};

struct door {
	struct bench_hub *hub;
	uint64_t token;
	int listen_fd;
	int port;
	size_t missing;
	bool has_card;
	uint64_t next_look_ns;
	struct guest guests[GUESTS_MAX];
	struct pollfd polls[GUESTS_MAX + 1];
	size_t turned_away;
	char why[128]; /* the last one was */
};

/* ---- listening --------------------------------------------------------------------------------- */

static int listen_at(const struct sockaddr *address, socklen_t length)
{
	int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int on = 1, off = 0, error;

	if (fd == -1)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (address->sa_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	if (bind(fd, address, length) == 0 && listen(fd, BACKLOG) == 0)
		return fd;
	error = errno;
	close(fd);
	errno = error;
	return -1;
}

static int listen_everywhere(int port)
{
	struct sockaddr_in6 six = { .sin6_family = AF_INET6,
				    .sin6_port = htons((uint16_t)port),
				    .sin6_addr = IN6ADDR_ANY_INIT };
	struct sockaddr_in four = { .sin_family = AF_INET,
				    .sin_port = htons((uint16_t)port),
				    .sin_addr = { htonl(INADDR_ANY) } };
	int fd = listen_at((const struct sockaddr *)&six, sizeof(six));

	if (fd == -1 && errno != EADDRINUSE && errno != EACCES)
		fd = listen_at((const struct sockaddr *)&four, sizeof(four));
	return fd;
}

static int listen_here(int port, bool is_six)
{
	struct sockaddr_in6 six = { .sin6_family = AF_INET6,
				    .sin6_port = htons((uint16_t)port),
				    .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	struct sockaddr_in four = { .sin_family = AF_INET,
				    .sin_port = htons((uint16_t)port),
				    .sin_addr = { htonl(INADDR_LOOPBACK) } };

	return is_six ? listen_at((const struct sockaddr *)&six, sizeof(six))
		      : listen_at((const struct sockaddr *)&four, sizeof(four));
}

static int port_of(int fd)
{
	struct sockaddr_storage address = { 0 };
	socklen_t length = sizeof(address);

	if (getsockname(fd, (struct sockaddr *)&address, &length) == -1)
		return 0;
	if (address.ss_family == AF_INET6)
		return ntohs(((struct sockaddr_in6 *)&address)->sin6_port);
	return ntohs(((struct sockaddr_in *)&address)->sin_port);
}

static int open_door(struct door *door, const struct bench_place *place)
{
	bool is_six = strcmp(place->address, "::1") == 0;
	int ports = place->ports > 0 ? place->ports : 1;
	int port = place->file[0] != '\0' ? 0 : place->port;

	if (place->listen_fd != -1) {
		door->listen_fd = place->listen_fd;
	} else {
		for (int i = 0; i < ports; i++) {
			door->listen_fd = hub_is_local(place)
						  ? listen_here(port ? port + i : 0, is_six)
						  : listen_everywhere(port ? port + i : 0);
			if (door->listen_fd != -1 || errno != EADDRINUSE)
				break;
		}
	}
	if (door->listen_fd == -1)
		return hub_break(door->hub, NULL,
				 "rank 0 cannot listen on port %d: %s; --meet HOST:PORT names "
				 "another",
				 port, strerror(errno));
	door->port = port_of(door->listen_fd);
	return 0;
}

/* ---- the file ---------------------------------------------------------------------------------- */

static void add_host(struct hub_card *card, const char *host)
{
	for (size_t i = 0; i < card->count; i++)
		if (strcmp(card->hosts[i], host) == 0)
			return;
	if (card->count < HUB_CARD_ADDRESSES)
		text_copy(card->hosts[card->count++], HUB_CARD_HOST, host);
}

/* Names may not resolve on the others, so numbers are there too. */
static void add_interfaces(struct hub_card *card)
{
	struct ifaddrs *all = NULL;
	char text[HUB_CARD_HOST];

	if (getifaddrs(&all) == -1)
		return;
	for (struct ifaddrs *at = all; at != NULL; at = at->ifa_next) {
		int family = at->ifa_addr ? at->ifa_addr->sa_family : AF_UNSPEC;
		socklen_t length = family == AF_INET ? sizeof(struct sockaddr_in)
						     : sizeof(struct sockaddr_in6);

		if ((family != AF_INET && family != AF_INET6) || (at->ifa_flags & IFF_LOOPBACK) ||
		    !(at->ifa_flags & IFF_UP))
			continue;
		/* A link-local address means something on one machine only. */
		if (family == AF_INET6 &&
		    IN6_IS_ADDR_LINKLOCAL(&((struct sockaddr_in6 *)at->ifa_addr)->sin6_addr))
			continue;
		if (getnameinfo(at->ifa_addr, length, text, sizeof(text), NULL, 0,
				NI_NUMERICHOST) == 0)
			add_host(card, text);
	}
	freeifaddrs(all);
}

/* A card that a job left may go, and the empty file of mktemp. Nothing else is ours to remove. */
static bool is_replaceable(const char *path)
{
	struct hub_card card;
	struct stat st;

	if (lstat(path, &st) == -1)
		return true; /* where it cannot be written, that is told */
	if (S_ISREG(st.st_mode) && st.st_size == 0 && st.st_uid == geteuid())
		return true;
	return hub_card_read(&card, path) == OK;
}

static int write_card(struct door *door, const struct bench_place *place)
{
	struct hub_card card = { .port = door->port };

	if (!is_replaceable(place->file))
		return hub_break(door->hub, NULL,
				 "%s is there and was not written for ranks to meet: --meet names "
				 "a new file",
				 place->file);
	if (getrandom(&card.token, sizeof(card.token), 0) != (ssize_t)sizeof(card.token))
		return hub_break(door->hub, NULL, "no random numbers: %s", strerror(errno));
	if (hub_is_local(place)) {
		add_host(&card, "127.0.0.1");
	} else {
		add_host(&card, door->hub->host);
		add_interfaces(&card);
	}
	unlink(place->file);
	if (hub_card_write(&card, place->file) != OK)
		return hub_break(door->hub, NULL, "rank 0 cannot write %s for ranks to meet: %s",
				 place->file, strerror(errno));
	door->has_card = true;
	door->token = card.token;
	return 0;
}

/* ---- guests ------------------------------------------------------------------------------------ */

static void turn_away(struct door *door, struct guest *guest, const char *why)
{
	close(guest->fd);
	guest->fd = -1;
	door->turned_away++;
	text_copy(door->why, sizeof(door->why), why);
}

static void take_guest(struct door *door)
{
	struct guest *place = NULL;
	int fd = accept4(door->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd == -1)
		return;
	for (size_t i = 0; i < GUESTS_MAX && place == NULL; i++)
		if (door->guests[i].fd == -1)
			place = &door->guests[i];
	if (place == NULL) {
		place = &door->guests[0];
		for (size_t i = 1; i < GUESTS_MAX; i++)
			if (door->guests[i].deadline_ns < place->deadline_ns)
				place = &door->guests[i];
		turn_away(door, place, "too many strangers at once");
	}
	hub_set_options(fd);
	place->fd = fd;
	place->got = 0;
	place->deadline_ns = hub_now() + GUEST_PATIENCE_NS;
}

/* A rank of this job that cannot be let in hears why: it would try again otherwise. */
static void refuse(struct door *door, struct guest *guest, const char *why)
{
	struct hub_header header = { .magic = HUB_MAGIC, .kind = HUB_FAIL, .length = strlen(why) };

	if (hub_write_whole(guest->fd, &header, sizeof(header), hub_now()) == 0)
		hub_write_whole(guest->fd, why, header.length, hub_now());
	turn_away(door, guest, why);
}

static bool is_stranger(const struct door *door, const struct guest *guest)
{
	const struct hub_header *header = &guest->said.header;

	return header->magic != HUB_MAGIC || header->kind != HUB_HELLO ||
	       header->length != sizeof(struct hub_hello) || guest->said.hello.token != door->token;
}

/* It waited too long for an answer and comes again: what it said lies here still. */
static bool has_left(const struct guest *guest)
{
	char byte;

	return recv(guest->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

static void welcome(struct door *door, struct guest *guest)
{
	struct {
		struct hub_header header;
		struct hub_hello hello;
	} answer = { .header = { .magic = HUB_MAGIC,
				 .kind = HUB_WELCOME,
				 .length = sizeof(struct hub_hello) },
		     .hello = hub_hello_of(door->hub, door->token) };
	struct hub_hello *hello = &guest->said.hello;
	struct hub_peer *peer = &door->hub->peers[hello->rank - 1];

	if (has_left(guest) ||
	    hub_write_whole(guest->fd, &answer, sizeof(answer), hub_now()) != 0) {
		turn_away(door, guest, "it hung up");
		return;
	}
	text_from_field(peer->host, sizeof(peer->host), hello->host, sizeof(hello->host));
	peer->fd = guest->fd;
	if (hello->machine != door->hub->machine)
		door->hub->is_one_machine = false;
	guest->fd = -1;
	door->missing--;
}

static void judge(struct door *door, struct guest *guest)
{
	const struct hub_hello *hello = &guest->said.hello;
	char why[128];

	if (is_stranger(door, guest)) {
		turn_away(door, guest, "not of this job");
	} else if (hello->version != HUB_VERSION) {
		refuse(door, guest, "another release of ringside is on rank 0's machine");
	} else if (hello->nranks != door->hub->nranks) {
		text_format(why, sizeof(why), "a rank says there are %d ranks, rank 0 says %d",
			    (int)hello->nranks, door->hub->nranks);
		refuse(door, guest, why);
	} else if (hello->rank < 1 || hello->rank >= door->hub->nranks) {
		refuse(door, guest, "no such rank in this job");
	} else if (door->hub->peers[hello->rank - 1].fd != -1) {
		text_format(why, sizeof(why), "rank %d is here already, from %s", (int)hello->rank,
			    door->hub->peers[hello->rank - 1].host);
		refuse(door, guest, why);
	} else {
		welcome(door, guest);
	}
}

static void listen_to_guest(struct door *door, struct guest *guest)
{
	ssize_t now = recv(guest->fd, (char *)&guest->said + guest->got,
			   sizeof(guest->said) - guest->got, MSG_DONTWAIT);

	if (now < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (now <= 0) {
		turn_away(door, guest, "it hung up");
		return;
	}
	guest->got += (size_t)now;
	/* Garbage is told from its first bytes: nobody waits for the rest. */
	if (guest->got >= sizeof(uint32_t) && guest->said.header.magic != HUB_MAGIC)
		turn_away(door, guest, "not of this job");
	else if (guest->got == sizeof(guest->said))
		judge(door, guest);
}

/* ---- waiting ----------------------------------------------------------------------------------- */

static int tell_missing(struct door *door, int patience_s)
{
	char list[96] = "", strangers[192] = "";
	size_t at = 0, named = 0;

	for (int rank = 1; rank < door->hub->nranks && named < 8; rank++) {
		if (door->hub->peers[rank - 1].fd != -1)
			continue;
		snprintf(list + at, sizeof(list) - at, "%s%d", named ? ", " : "", rank);
		at += strlen(list + at);
		named++;
	}
	if (named < door->missing)
		snprintf(list + at, sizeof(list) - at, " and %zu more", door->missing - named);
	if (door->turned_away > 0)
		snprintf(strangers, sizeof(strangers), "; turned away: %zu, the last: %s",
			 door->turned_away, door->why);
	return hub_break(door->hub, NULL, "%s %s did not come within %d s%s",
			 text_which(door->missing, "rank", "ranks"), list, patience_s, strangers);
}

static int wait_at_door(struct door *door, uint64_t deadline_ns)
{
	uint64_t now = hub_now();
	uint64_t until = deadline_ns;
	uint64_t left;

	door->polls[GUESTS_MAX] = (struct pollfd){ .fd = door->listen_fd, .events = POLLIN };
	for (size_t i = 0; i < GUESTS_MAX; i++) {
		struct guest *guest = &door->guests[i];

		if (guest->fd != -1 && guest->deadline_ns <= now)
			turn_away(door, guest, "it said nothing");
		if (guest->fd != -1 && guest->deadline_ns < until)
			until = guest->deadline_ns;
		door->polls[i] = (struct pollfd){ .fd = guest->fd, .events = POLLIN };
	}
	left = until > now ? (until - now) / 1000000 + 1 : 0;
	return poll(door->polls, GUESTS_MAX + 1, left > 200 ? 200 : (int)left);
}

/* Whether one of those who are here already failed is looked at now and then: there may be thousands. */
static int look_inside(struct door *door)
{
	uint64_t now = hub_now();

	if (now < door->next_look_ns)
		return 0;
	door->next_look_ns = now + LOOK_NS;
	return hub_peek(door->hub);
}

/* A rank 0 that had no processor for all that time finds ranks at the door that came early enough: they are let
 * in before anybody is said to be missing. */
static int wait_for_ranks(struct door *door, int patience_s)
{
	uint64_t deadline_ns = hub_now() + (uint64_t)patience_s * 1000000000;
	size_t late_looks = door->hub->peer_count + GUESTS_MAX;

	while (door->missing > 0) {
		bool is_late = hub_now() >= deadline_ns;
		bool has_come = wait_at_door(door, deadline_ns) > 0;

		if (is_late && (!has_come || late_looks-- == 0))
			return tell_missing(door, patience_s);
		if (door->polls[GUESTS_MAX].revents != 0)
			take_guest(door);
		for (size_t i = 0; i < GUESTS_MAX; i++)
			if (door->polls[i].revents != 0 && door->guests[i].fd == door->polls[i].fd)
				listen_to_guest(door, &door->guests[i]);
		if (look_inside(door) != 0)
			return -1;
	}
	return 0;
}

/* A connection for each rank. */
static int allow_files(struct bench_hub *hub)
{
	rlim_t wanted = hub->peer_count + GUESTS_MAX + FILES_ELSE;
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == -1 || limit.rlim_cur >= wanted)
		return 0;
	if (limit.rlim_max < wanted)
		return hub_break(hub, NULL,
				 "rank 0 may open %llu files and needs %llu for %d ranks: raise "
				 "ulimit -n",
				 (unsigned long long)limit.rlim_max, (unsigned long long)wanted,
				 hub->nranks);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	return 0;
}

int hub_let_in(struct bench_hub *hub, const struct bench_place *place, int patience_s)
{
	struct door door = {
		.hub = hub, .token = place->token, .listen_fd = -1, .missing = hub->peer_count
	};
	int result;

	for (size_t i = 0; i < GUESTS_MAX; i++)
		door.guests[i].fd = -1;
	hub->is_one_machine = true;
	result = allow_files(hub);
	if (result == 0)
		result = open_door(&door, place);
	if (result == 0 && place->file[0] != '\0')
		result = write_card(&door, place);
	if (result == 0)
		result = wait_for_ranks(&door, patience_s);
	for (size_t i = 0; i < GUESTS_MAX; i++)
		if (door.guests[i].fd != -1)
			close(door.guests[i].fd);
	if (door.listen_fd != -1)
		close(door.listen_fd);
	/* All are here, or nobody comes any more: whatever ends this job later leaves no file. */
	if (door.has_card)
		unlink(place->file);
	return result;
}
