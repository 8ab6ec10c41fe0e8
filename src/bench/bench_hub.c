/*
 * Communication between ranks besides NCCL: frames between rank 0 and each other rank. Also the rendezvous: rank 0
 * listens and admits ranks, the others connect to it.
 */
#include "bench/bench_launch.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <inttypes.h>
#include <limits.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/file.h"
#include "common/hash.h"
#include "common/text.h"

/* How long a waiting rank spins before it sleeps in the kernel. */
enum { SPIN_NS = 1000000, LAST_WORDS_NS = 1000000000 };

/* For poll(): -1 for no deadline; rounded up, so that a wait does not end just before it. */
static int milliseconds_until(uint64_t deadline_ns)
{
	uint64_t now = clock_now_system();
	uint64_t left;

	if (deadline_ns == 0)
		return -1;
	left = now < deadline_ns ? (deadline_ns - now + 999999) / 1000000 : 0;
	return left > 3600000 ? 3600000 : (int)left;
}

static bool is_past(uint64_t deadline_ns)
{
	return deadline_ns != 0 && clock_now_system() >= deadline_ns;
}

static bool is_later(int error)
{
	return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

static int move_whole(int fd, void *bytes, size_t length, uint64_t deadline_ns, bool is_write)
{
	struct pollfd poll_fd = { .fd = fd, .events = is_write ? POLLOUT : POLLIN };
	size_t moved = 0;

	while (moved < length) {
		char *at = (char *)bytes + moved;
		ssize_t now = is_write ? send(fd, at, length - moved, MSG_DONTWAIT | MSG_NOSIGNAL)
				       : recv(fd, at, length - moved, MSG_DONTWAIT);

		if (now > 0 || (now == 0 && is_write)) {
			moved += (size_t)now;
			continue;
		}
		if (now == 0) {
			errno = 0;
			return -1;
		}
		if (!is_later(errno))
			return -1;
		if (is_past(deadline_ns)) {
			errno = ETIMEDOUT;
			return -1;
		}
		poll(&poll_fd, 1, milliseconds_until(deadline_ns));
	}
	return 0;
}

int hub_read_whole(int fd, void *bytes, size_t length, uint64_t deadline_ns)
{
	return move_whole(fd, bytes, length, deadline_ns, false);
}

static int hub_write_whole(int fd, const void *bytes, size_t length, uint64_t deadline_ns)
{
	return move_whole(fd, (void *)(uintptr_t)bytes, length, deadline_ns, true);
}

/* ---- failing ----------------------------------------------------------------------------------- */

/* Best effort: a rank that does not receive it within a second notices the closed connection. */
static void peer_tell_why(struct bench_hub *hub, struct hub_peer *peer)
{
	struct hub_header header = { .magic = HUB_MAGIC,
				     .kind = HUB_FAIL,
				     .step = hub->step,
				     .length = strlen(hub->problem) };
	char frame[sizeof(header) + HUB_PROBLEM_BYTES];

	if (peer->fd == -1)
		return;
	memcpy(frame, &header, sizeof(header));
	memcpy(frame + sizeof(header), hub->problem, header.length);
	if (peer->is_mid_send || hub_write_whole(peer->fd, frame, sizeof(header) + header.length,
						 clock_now_system() + LAST_WORDS_NS) != 0)
		shutdown(peer->fd, SHUT_RDWR);
}

/* Breaks the hub. The first reason is kept and, on rank 0, sent to the others. */
static int PRINTF_LIKE(3, 4)
	hub_break(struct bench_hub *hub, const struct hub_peer *except, const char *format, ...)
{
	va_list values;

	pthread_mutex_lock(&hub->lock);
	if (hub->is_broken) {
		pthread_mutex_unlock(&hub->lock);
		return -1;
	}
	va_start(values, format);
	vsnprintf(hub->problem, sizeof(hub->problem), format, values);
	va_end(values);
	hub->is_broken = true;
	for (size_t i = 0; i < hub->peer_count; i++)
		if (&hub->peers[i] != except)
			peer_tell_why(hub, &hub->peers[i]);
	pthread_mutex_unlock(&hub->lock);
	return -1;
}

/* The header of a HUB_FAIL has been read. */
static int take_reason(struct bench_hub *hub, struct hub_peer *peer)
{
	char reason[HUB_PROBLEM_BYTES] = "";
	char clean[HUB_PROBLEM_BYTES];
	size_t length = peer->header.length < sizeof(reason) ? (size_t)peer->header.length
							     : sizeof(reason) - 1;

	hub_read_whole(peer->fd, reason, length, clock_now_system() + LAST_WORDS_NS);
	text_from_field(clean, sizeof(clean), reason, length);
	return hub_break(hub, peer, "%s",
			 clean[0] != '\0' ? clean : "another rank failed without giving a reason");
}

/* The connection ended: is there a reason in the data still to be read? */
static int take_last_words(struct bench_hub *hub, struct hub_peer *peer)
{
	char waste[4096];
	bool is_whole =
		hub_read_whole(peer->fd, (char *)&peer->header + peer->header_got,
			       sizeof(peer->header) - peer->header_got, clock_now_system()) == 0;

	while (is_whole && peer->header.magic == HUB_MAGIC) {
		size_t left = (size_t)peer->header.length - peer->payload_got;

		if (peer->header.kind == HUB_FAIL)
			return take_reason(hub, peer);
		for (; left > 0; left -= left < sizeof(waste) ? left : sizeof(waste))
			if (hub_read_whole(peer->fd, waste,
					   left < sizeof(waste) ? left : sizeof(waste),
					   clock_now_system()) != 0)
				break;
		peer->payload_got = 0;
		is_whole =
			left == 0 && hub_read_whole(peer->fd, &peer->header, sizeof(peer->header),
						    clock_now_system()) == 0;
	}
	/* Rank 0 knows the reason that another thread gave here, and reports it: that is why it closed. */
	if (peer->rank == 0 && !hub->is_broken)
		hub->is_rank_0_lost = true;
	return hub_break(hub, peer, "rank %d on %s ended unexpectedly: killed, or crashed",
			 peer->rank, peer->host);
}

/* ---- receiving --------------------------------------------------------------------------------- */

/* 1: all `length` bytes received; 0: not yet; -1: the connection ended. */
static int read_some(int fd, void *bytes, size_t *got, size_t length)
{
	while (*got < length) {
		ssize_t now = recv(fd, (char *)bytes + *got, length - *got, MSG_DONTWAIT);

		if (now < 0 && is_later(errno))
			return 0;
		if (now <= 0)
			return -1;
		*got += (size_t)now;
	}
	return 1;
}

/* 1: a header has been received; 0: not yet; -1: broken. */
static int read_header(struct bench_hub *hub, struct hub_peer *peer)
{
	int done;

	if (peer->header_got == sizeof(peer->header))
		return 1;
	done = read_some(peer->fd, &peer->header, &peer->header_got, sizeof(peer->header));
	if (done == -1)
		return take_last_words(hub, peer);
	if (done == 0)
		return 0;
	peer->payload_got = 0;
	if (peer->header.magic != HUB_MAGIC || peer->header.length > HUB_MESSAGE_MAX)
		return hub_break(hub, peer, "rank %d on %s sent an invalid message", peer->rank,
				 peer->host);
	if (peer->header.kind == HUB_FAIL)
		return take_reason(hub, peer);
	return 1;
}

static int check_step(struct bench_hub *hub, const struct hub_peer *peer, enum hub_kind kind,
		      size_t length)
{
	const struct hub_header *header = &peer->header;

	if (header->kind == kind && header->length == length && header->step == hub->step)
		return 0;
	if (header->kind == HUB_BYE)
		return hub_break(hub, NULL, "rank %d on %s disconnected before the others",
				 peer->rank, peer->host);
	return hub_break(hub, NULL,
			 "rank %d on %s is at another step than rank %d (%u of %llu bytes at %llu, "
			 "not %u of %zu at %llu): do all ranks run the same command?",
			 peer->rank, peer->host, hub->rank, header->kind,
			 (unsigned long long)header->length, (unsigned long long)header->step,
			 (unsigned int)kind, length, (unsigned long long)hub->step);
}

/* 1: its frame of this step is complete now; 0: not yet, or was before; -1: broken. */
static int peer_advance(struct bench_hub *hub, struct hub_peer *peer, enum hub_kind kind,
			void *into, size_t length)
{
	int done = read_header(hub, peer);

	if (done != 1 || peer->is_done)
		return done == -1 ? -1 : 0;
	if (check_step(hub, peer, kind, length) != 0)
		return -1;
	done = read_some(peer->fd, into, &peer->payload_got, length);
	if (done == -1)
		return take_last_words(hub, peer);
	if (done == 1) {
		peer->is_done = true;
		peer->header_got = 0;
	}
	return done;
}

static bool is_ahead(const struct hub_peer *peer)
{
	return peer->is_done && peer->header_got == sizeof(peer->header);
}

static int name_missing(struct bench_hub *hub)
{
	const struct hub_peer *first = NULL;
	size_t count = 0;

	for (size_t i = 0; i < hub->peer_count; i++) {
		if (hub->peers[i].is_done)
			continue;
		if (first == NULL)
			first = &hub->peers[i];
		count++;
	}
	if (first == NULL)
		return hub_break(hub, NULL, "ranks did not answer in time");
	if (count > 1)
		return hub_break(hub, NULL,
				 "rank %d on %s and %zu more did not answer in time (rank %d "
				 "waited)",
				 first->rank, first->host, count - 1, hub->rank);
	return hub_break(hub, NULL, "rank %d on %s did not answer in time (rank %d waited)",
			 first->rank, first->host, hub->rank);
}

/* Sets revents. A peer that is a step ahead is only watched for its end. */
static int poll_peers(struct bench_hub *hub, int timeout_ms, bool *is_quiet)
{
	for (size_t i = 0; i < hub->peer_count; i++) {
		hub->polls[i].fd = hub->peers[i].fd;
		hub->polls[i].events =
			(short)(is_ahead(&hub->peers[i]) ? POLLRDHUP : POLLIN | POLLRDHUP);
		hub->polls[i].revents = 0;
	}
	*is_quiet = poll(hub->polls, hub->peer_count, timeout_ms) == 0;
	for (size_t i = 0; i < hub->peer_count; i++)
		if (hub->polls[i].revents != 0 && is_ahead(&hub->peers[i]))
			return take_last_words(hub, &hub->peers[i]);
	return 0;
}

/* Waits for an event. A rank that had no CPU until the deadline first handles what arrived meanwhile. */
static int wait_for_peers(struct bench_hub *hub, uint64_t spin_until_ns, uint64_t deadline_ns)
{
	bool is_spinning = hub->may_spin && clock_now_system() < spin_until_ns, is_quiet;

	if (poll_peers(hub, is_spinning ? 0 : milliseconds_until(deadline_ns), &is_quiet) != 0)
		return -1;
	return is_quiet && !is_spinning && is_past(deadline_ns) ? name_missing(hub) : 0;
}

int hub_collect(struct bench_hub *hub, enum hub_kind kind, void *into, size_t length,
		uint64_t *value, uint64_t deadline_ns)
{
	uint64_t spin_until_ns = clock_now_system() + SPIN_NS;
	size_t missing = hub->peer_count;

	for (size_t i = 0; i < hub->peer_count; i++) {
		hub->peers[i].is_done = false;
		hub->polls[i].revents = POLLIN;
	}
	while (missing > 0) {
		for (size_t i = 0; i < hub->peer_count; i++) {
			struct hub_peer *peer = &hub->peers[i];
			size_t at = hub->rank == 0 ? (size_t)peer->rank * length : 0;
			int done;

			if (hub->polls[i].revents == 0)
				continue;
			done = peer_advance(hub, peer, kind, length ? (char *)into + at : NULL,
					    length);
			if (done == -1)
				return -1;
			if (done == 1) {
				missing--;
				*value = peer->header.value;
			}
		}
		if (missing > 0 &&
		    (hub->is_broken || wait_for_peers(hub, spin_until_ns, deadline_ns) != 0))
			return -1;
	}
	return 0;
}

int hub_peek(struct bench_hub *hub)
{
	bool is_quiet;

	for (size_t i = 0; i < hub->peer_count; i++)
		hub->peers[i].is_done = true;
	if (poll_peers(hub, 0, &is_quiet) != 0)
		return -1;
	for (size_t i = 0; i < hub->peer_count; i++)
		if (hub->polls[i].revents != 0 && read_header(hub, &hub->peers[i]) == -1)
			return -1;
	return 0;
}

/* ---- sending ----------------------------------------------------------------------------------- */

/* The socket is full: wait, and meanwhile handle messages of others. */
static int wait_to_send(struct bench_hub *hub, struct hub_peer *peer, uint64_t deadline_ns)
{
	struct pollfd poll_fd = { .fd = peer->fd, .events = POLLOUT };
	uint64_t second_ns = clock_now_system() + 1000000000;

	if (is_past(deadline_ns)) {
		peer->is_mid_send = true;
		return hub_break(hub, NULL, "rank %d on %s did not accept a message in time",
				 peer->rank, peer->host);
	}
	if (deadline_ns != 0 && deadline_ns < second_ns)
		second_ns = deadline_ns;
	if (poll(&poll_fd, 1, milliseconds_until(second_ns)) == 0)
		return hub_peek(hub);
	return 0;
}

/* Sends one frame. 0, -1: broken. The deadline is a time of clock_now_system(); 0: none. */
static int hub_send(struct bench_hub *hub, struct hub_peer *peer, enum hub_kind kind,
		    uint64_t value, const void *payload, size_t length, uint64_t deadline_ns)
{
	struct hub_header header = { .magic = HUB_MAGIC,
				     .kind = kind,
				     .step = hub->step,
				     .value = value,
				     .length = length };
	size_t sent = 0;

	while (sent < sizeof(header) + length) {
		size_t of_header = sent < sizeof(header) ? sent : sizeof(header);
		size_t of_payload = sent - of_header;
		struct iovec parts[2] = {
			{ (char *)&header + of_header, sizeof(header) - of_header },
			{ length ? (char *)(uintptr_t)payload + of_payload : NULL,
			  length - of_payload },
		};
		struct msghdr message = { .msg_iov = parts, .msg_iovlen = 2 };
		ssize_t now;

		if (hub->is_broken)
			return -1;
		pthread_mutex_lock(&hub->lock);
		now = sendmsg(peer->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
		sent += now > 0 ? (size_t)now : 0;
		peer->is_mid_send = sent > 0 && sent < sizeof(header) + length;
		pthread_mutex_unlock(&hub->lock);
		if (now >= 0)
			continue;
		if (!is_later(errno))
			return take_last_words(hub, peer);
		if (wait_to_send(hub, peer, deadline_ns) != 0)
			return -1;
	}
	return 0;
}

enum { TOKEN_DIGITS = 16 };

static enum status parse_port(const char *text, size_t length, int *port)
{
	char digits[8];
	int64_t number;

	if (length == 0 || length >= sizeof(digits))
		return ERR_FORMAT;
	memcpy(digits, text, length);
	digits[length] = '\0';
	if (text_number(digits, 1, 65535, &number) != OK)
		return ERR_FORMAT;
	*port = (int)number;
	return OK;
}

enum status hub_card_address(const char *text, size_t length, char host[static HUB_CARD_HOST],
			     int *port)
{
	const char *colon = memrchr(text, ':', length);
	size_t host_length = colon ? (size_t)(colon - text) : 0;
	const char *begin = text;

	if (host_length == 0 || parse_port(colon + 1, length - host_length - 1, port) != OK)
		return ERR_FORMAT;
	if (text[0] == '[' && text[host_length - 1] == ']') {
		begin++;
		host_length -= 2;
	} else if (memchr(text, ':', host_length) != NULL) {
		return ERR_FORMAT;
	}
	if (host_length == 0 || host_length >= HUB_CARD_HOST)
		return ERR_FORMAT;
	for (size_t i = 0; i < host_length; i++)
		if ((unsigned char)begin[i] <= ' ' || begin[i] == '/' || begin[i] == 0x7f)
			return ERR_FORMAT;
	memcpy(host, begin, host_length);
	host[host_length] = '\0';
	return OK;
}

static enum status parse_line(struct hub_card *card, const char *line)
{
	const char *blank = strchr(line, ' ');
	uint64_t token;
	int port;

	if (blank == NULL || card->count == HUB_CARD_ADDRESSES ||
	    hub_card_address(line, (size_t)(blank - line), card->hosts[card->count], &port) != OK ||
	    strlen(blank + 1) != TOKEN_DIGITS ||
	    strspn(blank + 1, "0123456789abcdef") != TOKEN_DIGITS)
		return ERR_FORMAT;
	token = strtoull(blank + 1, NULL, 16);
	if (card->count > 0 && (token != card->token || port != card->port))
		return ERR_FORMAT;
	card->token = token;
	card->port = port;
	card->count++;
	return OK;
}

enum status hub_card_parse(struct hub_card *card, const char *text, size_t length)
{
	char copy[HUB_CARD_BYTES];
	char *at = copy;

	*card = (struct hub_card){ 0 };
	if (length == 0 || length >= sizeof(copy) || memchr(text, '\0', length) != NULL)
		return ERR_FORMAT;
	memcpy(copy, text, length);
	copy[length] = '\0';
	while (*at != '\0') {
		char *end = strchr(at, '\n');

		if (end == NULL)
			return ERR_FORMAT;
		*end = '\0';
		if (parse_line(card, at) != OK)
			return ERR_FORMAT;
		at = end + 1;
	}
	return OK;
}

static size_t card_text(const struct hub_card *card, char *text, size_t size)
{
	text[0] = '\0';
	for (size_t i = 0; i < card->count; i++) {
		bool is_bare = strchr(card->hosts[i], ':') == NULL;

		text_append(text, size, "%s%s%s:%d %016" PRIx64 "\n", is_bare ? "" : "[",
			    card->hosts[i], is_bare ? "" : "]", card->port, card->token);
	}
	return strlen(text);
}

enum status hub_card_write(const struct hub_card *card, const char *path)
{
	char text[HUB_CARD_BYTES], temporary[PATH_MAX];
	size_t length = card_text(card, text, sizeof(text));
	int fd, error;
	bool is_fine;

	if (!text_format(temporary, sizeof(temporary), "%s.%ld.part", path, (long)getpid())) {
		errno = ENAMETOOLONG;
		return ERR_SYSTEM;
	}
	fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd == -1)
		return ERR_SYSTEM;
	is_fine = write(fd, text, length) == (ssize_t)length;
	error = errno;
	if (close(fd) == -1 && is_fine) {
		is_fine = false;
		error = errno;
	}
	if (is_fine && rename(temporary, path) == 0)
		return OK;
	if (is_fine)
		error = errno;
	unlink(temporary);
	errno = error;
	return ERR_SYSTEM;
}

/*
 * ERR_SYSTEM: errno (ENOENT: does not exist yet). ERR_RANGE: owned by another user, not a regular file, or too
 * long. ERR_FORMAT.
 */
static enum status hub_card_read(struct hub_card *card, const char *path)
{
	char text[HUB_CARD_BYTES];
	struct stat st;
	ssize_t got;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	int error;

	if (fd == -1)
		return ERR_SYSTEM;
	if (fstat(fd, &st) == -1 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
	    st.st_size >= HUB_CARD_BYTES) {
		close(fd);
		return ERR_RANGE;
	}
	got = read(fd, text, sizeof(text));
	error = errno;
	close(fd);
	errno = error;
	if (got < 0)
		return ERR_SYSTEM;
	return hub_card_parse(card, text, (size_t)got);
}

enum { READ_MS = 50 };

/* Discards remaining data; true once the peer has closed its side. */
static bool has_ended(int fd)
{
	char waste[4096];
	ssize_t got;

	do {
		got = recv(fd, waste, sizeof(waste), MSG_DONTWAIT);
	} while (got > 0);
	return got == 0;
}

static size_t count_silent(struct bench_hub *hub, int *ranks, size_t most)
{
	size_t silent = 0;

	for (size_t i = 0; i < hub->peer_count; i++) {
		if (hub->peers[i].fd == -1 || has_ended(hub->peers[i].fd))
			continue;
		if (silent < most)
			ranks[silent] = hub->peers[i].rank;
		silent++;
	}
	return silent;
}

size_t hub_silent(struct bench_hub *hub, int wait_ms, int *ranks, size_t most)
{
	uint64_t deadline_ns = clock_now_system() + (uint64_t)wait_ms * 1000000;
	size_t silent;

	for (size_t i = 0; i < hub->peer_count; i++)
		if (hub->peers[i].fd != -1)
			shutdown(hub->peers[i].fd, SHUT_WR);
	while ((silent = count_silent(hub, ranks, most)) > 0 && clock_now_system() < deadline_ns)
		poll(NULL, 0, READ_MS);
	return silent;
}

/*
 * Ranks of one host leave hub_meet() together, this long after the last one arrived. Sending to one takes about
 * that.
 */
#define LONGER_NS UINT64_C(5000000000)
enum { GO_NS_FIRST = 10000, GO_NS_EACH = 6000 };
enum { ANSWER_SECONDS = 5, CLOSE_SECONDS = 30, DRAIN_SECONDS = 2 };

/* ---- this rank --------------------------------------------------------------------------------- */

static uint64_t this_machine(void)
{
	char text[64];

	return file_read_text("/proc/sys/kernel/random/boot_id", text, sizeof(text))
		       ? hash_bytes(text, strlen(text))
		       : 0;
}

static int processor_count(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
}

struct hub_greeting {
	struct hub_header header;
	struct hub_hello hello;
};

/* This rank's HUB_HELLO or HUB_WELCOME. */
static struct hub_greeting greeting_of(const struct bench_hub *hub, enum hub_kind kind,
				       uint64_t token)
{
	struct hub_greeting greeting = {
		.header = { .magic = HUB_MAGIC, .kind = kind, .length = sizeof(greeting.hello) },
		.hello = { .version = HUB_VERSION,
			   .rank = hub->rank,
			   .nranks = hub->nranks,
			   .token = token,
			   .machine = hub->machine },
	};

	text_copy(greeting.hello.host, sizeof(greeting.hello.host), hub->host);
	return greeting;
}

/* TCP_NODELAY, keepalive. */
static void hub_set_options(int fd)
{
	int on = 1, idle_s = 30, interval_s = 10, count = 3;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof(interval_s));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
}

static bool is_loopback(const char *address)
{
	struct in6_addr six;
	struct in_addr four;

	if (inet_pton(AF_INET, address, &four) == 1)
		return ntohl(four.s_addr) >> 24 == 127;
	if (inet_pton(AF_INET6, address, &six) == 1)
		return IN6_IS_ADDR_LOOPBACK(&six);
	return strcmp(address, "localhost") == 0;
}

/* Whether all ranks are on this host, so that the loopback is enough. */
static bool hub_is_local(const struct bench_place *place)
{
	return place->local_ranks == place->nranks || is_loopback(place->address);
}

/* ---- opening ----------------------------------------------------------------------------------- */

static struct bench_hub *new_hub(const struct bench_place *place)
{
	struct bench_hub *hub = calloc(1, sizeof(*hub));
	int here = place->local_ranks > 0 ? place->local_ranks : place->nranks;

	if (hub == NULL)
		return NULL;
	pthread_mutex_init(&hub->lock, NULL);
	hub->rank = place->rank;
	hub->nranks = place->nranks;
	hub->peer_count = place->nranks == 1 ? 0 : place->rank == 0 ? (size_t)place->nranks - 1 : 1;
	hub->machine = this_machine();
	hub->may_spin = 2 * here <= processor_count();
	if (gethostname(hub->host, sizeof(hub->host) - 1) == -1)
		text_copy(hub->host, sizeof(hub->host), "unknown");
	hub->peers = calloc(hub->peer_count + 1, sizeof(*hub->peers));
	hub->polls = calloc(hub->peer_count + 1, sizeof(*hub->polls));
	if (hub->peers == NULL || hub->polls == NULL) {
		free(hub->peers);
		free(hub->polls);
		free(hub);
		return NULL;
	}
	for (size_t i = 0; i < hub->peer_count; i++) {
		hub->peers[i].fd = -1;
		hub->peers[i].rank = place->rank == 0 ? (int)i + 1 : 0;
		text_copy(hub->peers[i].host, sizeof(hub->peers[i].host), "unknown");
	}
	return hub;
}

/* ---- closing ----------------------------------------------------------------------------------- */

static void say_goodbye(struct bench_hub *hub)
{
	uint64_t deadline_ns = clock_now_system() + (uint64_t)CLOSE_SECONDS * 1000000000;
	uint64_t value;

	hub->step++;
	if (hub->rank == 0 && hub_collect(hub, HUB_BYE, NULL, 0, &value, deadline_ns) != 0)
		return;
	for (size_t i = 0; i < hub->peer_count; i++)
		if (hub_send(hub, &hub->peers[i], HUB_BYE, 0, NULL, 0, deadline_ns) != 0)
			return;
	if (hub->rank != 0)
		hub_collect(hub, HUB_BYE, NULL, 0, &value, deadline_ns);
}

/* The last frames must arrive: closing a connection with unread data resets it. */
static void hub_drain(struct bench_hub *hub)
{
	uint64_t deadline_ns = clock_now_system() + (uint64_t)DRAIN_SECONDS * 1000000000;
	char waste[4096];

	for (size_t i = 0; i < hub->peer_count; i++)
		if (hub->peers[i].fd != -1)
			shutdown(hub->peers[i].fd, SHUT_WR);
	for (size_t i = 0; i < hub->peer_count; i++)
		while (hub->peers[i].fd != -1 && clock_now_system() < deadline_ns &&
		       hub_read_whole(hub->peers[i].fd, waste, 1, deadline_ns) == 0)
			if (recv(hub->peers[i].fd, waste, sizeof(waste), MSG_DONTWAIT) == 0)
				break;
}

void hub_close(struct bench_hub *hub)
{
	if (hub == NULL)
		return;
	if (!hub->is_broken)
		say_goodbye(hub);
	if (hub->is_broken)
		hub_drain(hub);
	for (size_t i = 0; i < hub->peer_count; i++)
		if (hub->peers[i].fd != -1)
			close(hub->peers[i].fd);
	free(hub->peers);
	free(hub->polls);
	free(hub);
}

/* ---- calls ------------------------------------------------------------------------------------- */

static uint64_t begin_step(struct bench_hub *hub)
{
	/* Rank 0 knows which ranks are missing, so its limit must expire first. */
	uint64_t longer_ns = hub->rank == 0 ? 0 : LONGER_NS;

	hub->step++;
	return hub->patience_ns ? clock_now_system() + hub->patience_ns + longer_ns : 0;
}

void hub_set_patience(struct bench_hub *hub, int seconds)
{
	hub->patience_ns = (uint64_t)seconds * 1000000000;
}

static int let_all_go(struct bench_hub *hub, uint64_t deadline_ns, uint64_t *go_ns)
{
	uint64_t value;

	if (hub_collect(hub, HUB_MEET, NULL, 0, &value, deadline_ns) != 0)
		return -1;
	*go_ns = 0;
	if (hub->is_one_machine && hub->may_spin)
		*go_ns = clock_now_system() + GO_NS_FIRST + hub->peer_count * GO_NS_EACH;
	for (size_t i = 0; i < hub->peer_count; i++)
		if (hub_send(hub, &hub->peers[i], HUB_GO, *go_ns, NULL, 0, deadline_ns) != 0)
			return -1;
	return 0;
}

int hub_meet(struct bench_hub *hub)
{
	uint64_t deadline_ns = begin_step(hub);
	uint64_t go_ns = 0;

	if (hub->is_broken)
		return -1;
	if (hub->nranks == 1)
		return 0;
	if (hub->rank == 0) {
		if (let_all_go(hub, deadline_ns, &go_ns) != 0)
			return -1;
	} else if (hub_send(hub, &hub->peers[0], HUB_MEET, 0, NULL, 0, deadline_ns) != 0 ||
		   hub_collect(hub, HUB_GO, NULL, 0, &go_ns, deadline_ns) != 0) {
		return -1;
	}
	/* Rank 0 would only announce a time in the near future; later ones are ignored. */
	if (go_ns != 0 && go_ns < clock_now_system() + 100000000)
		while (clock_now_system() < go_ns)
			;
	return 0;
}

int hub_share(struct bench_hub *hub, void *bytes, size_t length)
{
	uint64_t deadline_ns = begin_step(hub);
	uint64_t value;

	if (hub->is_broken)
		return -1;
	if (length > HUB_MESSAGE_MAX)
		return hub_break(hub, NULL, "a message of %zu bytes is too long", length);
	if (hub->rank != 0)
		return hub_collect(hub, HUB_SHARE, bytes, length, &value, deadline_ns);
	for (size_t i = 0; i < hub->peer_count; i++)
		if (hub_send(hub, &hub->peers[i], HUB_SHARE, 0, bytes, length, deadline_ns) != 0)
			return -1;
	return hub->peer_count ? hub_peek(hub) : 0;
}

int hub_gather(struct bench_hub *hub, const void *bytes, size_t length, void *into)
{
	uint64_t deadline_ns = begin_step(hub);
	uint64_t value;

	if (hub->is_broken)
		return -1;
	if (length > HUB_MESSAGE_MAX)
		return hub_break(hub, NULL, "a message of %zu bytes is too long", length);
	if (hub->rank != 0)
		return hub_send(hub, &hub->peers[0], HUB_GATHER, 0, bytes, length, deadline_ns);
	if (length > 0)
		memcpy(into, bytes, length);
	return hub->peer_count ? hub_collect(hub, HUB_GATHER, into, length, &value, deadline_ns)
			       : 0;
}

int hub_poll(struct bench_hub *hub)
{
	if (hub->is_broken)
		return -1;
	return hub->peer_count ? hub_peek(hub) : 0;
}

void hub_fail(struct bench_hub *hub, const char *reason)
{
	if (hub->nranks == 1)
		hub_break(hub, NULL, "%s", reason);
	else
		hub_break(hub, NULL, "rank %d on %s: %s", hub->rank, hub->host, reason);
}

const char *hub_problem(const struct bench_hub *hub)
{
	return hub == NULL ? "out of memory for joining the other ranks" : hub->problem;
}

bool hub_is_teller(const struct bench_hub *hub)
{
	return hub == NULL || hub->rank == 0 || hub->is_refused ||
	       (hub->rank == 1 && hub->is_rank_0_lost);
}

/*
 * Rank 0 waits for the others. A new connection is a client until it has identified itself; one that sends something
 * else, or nothing for a while, is rejected, and waiting continues.
 */

/* Files besides connections: libraries, GPUs, results. */
enum { CLIENTS_MAX = 64, BACKLOG = 1024, FILES_ELSE = 128, POLL_NS = 200000000 };
#define CLIENT_TIMEOUT_NS UINT64_C(10000000000)

struct hub_client {
	int fd; /* -1: free */
	uint64_t deadline_ns;
	size_t got;
	struct hub_greeting said;
};

struct hub_listener {
	struct bench_hub *hub;
	uint64_t token;
	int listen_fd;
	int port;
	size_t missing;
	bool has_card;
	uint64_t next_poll_ns;
	struct hub_client clients[CLIENTS_MAX];
	struct pollfd polls[CLIENTS_MAX + 1];
	size_t turned_away;
	char why[128]; /* reason for the last rejection */
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

static int listener_open(struct hub_listener *listener, const struct bench_place *place)
{
	bool is_six = strcmp(place->address, "::1") == 0;
	int ports = place->ports > 0 ? place->ports : 1;
	int port = place->file[0] != '\0' ? 0 : place->port;

	if (place->listen_fd != -1) {
		listener->listen_fd = place->listen_fd;
	} else {
		for (int i = 0; i < ports; i++) {
			listener->listen_fd = hub_is_local(place)
						      ? listen_here(port ? port + i : 0, is_six)
						      : listen_everywhere(port ? port + i : 0);
			if (listener->listen_fd != -1 || errno != EADDRINUSE)
				break;
		}
	}
	if (listener->listen_fd == -1)
		return hub_break(listener->hub, NULL,
				 "rank 0 cannot listen on port %d: %s; use --meet HOST:PORT with "
				 "another port",
				 port, strerror(errno));
	listener->port = port_of(listener->listen_fd);
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

/* Names may not resolve on other hosts, so include numeric addresses. */
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
		/* A link-local address is only valid on one host. */
		if (family == AF_INET6 &&
		    IN6_IS_ADDR_LINKLOCAL(&((struct sockaddr_in6 *)at->ifa_addr)->sin6_addr))
			continue;
		if (getnameinfo(at->ifa_addr, length, text, sizeof(text), NULL, 0,
				NI_NUMERICHOST) == 0)
			add_host(card, text);
	}
	freeifaddrs(all);
}

/* A card left by an earlier job and an empty file from mktemp can be replaced. Nothing else is ours to remove. */
static bool is_replaceable(const char *path)
{
	struct hub_card card;
	struct stat st;

	if (lstat(path, &st) == -1)
		return true; /* if it cannot be written, that is reported */
	if (S_ISREG(st.st_mode) && st.st_size == 0 && st.st_uid == geteuid())
		return true;
	return hub_card_read(&card, path) == OK;
}

static int write_card(struct hub_listener *listener, const struct bench_place *place)
{
	struct hub_card card = { .port = listener->port };

	if (!is_replaceable(place->file))
		return hub_break(listener->hub, NULL,
				 "%s exists and is not a rendezvous file: use --meet with a new "
				 "file",
				 place->file);
	if (getrandom(&card.token, sizeof(card.token), 0) != (ssize_t)sizeof(card.token))
		return hub_break(listener->hub, NULL, "cannot get random numbers: %s",
				 strerror(errno));
	if (hub_is_local(place)) {
		add_host(&card, "127.0.0.1");
	} else {
		add_host(&card, listener->hub->host);
		add_interfaces(&card);
	}
	unlink(place->file);
	if (hub_card_write(&card, place->file) != OK)
		return hub_break(listener->hub, NULL,
				 "rank 0 cannot write the rendezvous file %s: %s", place->file,
				 strerror(errno));
	listener->has_card = true;
	listener->token = card.token;
	return 0;
}

/* ---- clients ----------------------------------------------------------------------------------- */

static void turn_away(struct hub_listener *listener, struct hub_client *client, const char *why)
{
	close(client->fd);
	client->fd = -1;
	listener->turned_away++;
	text_copy(listener->why, sizeof(listener->why), why);
}

static void client_add(struct hub_listener *listener)
{
	struct hub_client *place = NULL;
	int fd = accept4(listener->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd == -1)
		return;
	for (size_t i = 0; i < CLIENTS_MAX && place == NULL; i++)
		if (listener->clients[i].fd == -1)
			place = &listener->clients[i];
	if (place == NULL) {
		place = &listener->clients[0];
		for (size_t i = 1; i < CLIENTS_MAX; i++)
			if (listener->clients[i].deadline_ns < place->deadline_ns)
				place = &listener->clients[i];
		turn_away(listener, place, "too many unknown connections");
	}
	hub_set_options(fd);
	place->fd = fd;
	place->got = 0;
	place->deadline_ns = clock_now_system() + CLIENT_TIMEOUT_NS;
}

/* Sends the reason to a rank of this job that cannot be admitted: otherwise it would try again. */
static void client_refuse(struct hub_listener *listener, struct hub_client *client, const char *why)
{
	struct hub_header header = { .magic = HUB_MAGIC, .kind = HUB_FAIL, .length = strlen(why) };

	if (hub_write_whole(client->fd, &header, sizeof(header), clock_now_system()) == 0)
		hub_write_whole(client->fd, why, header.length, clock_now_system());
	turn_away(listener, client, why);
}

static bool is_stranger(const struct hub_listener *listener, const struct hub_client *client)
{
	const struct hub_header *header = &client->said.header;

	return header->magic != HUB_MAGIC || header->kind != HUB_HELLO ||
	       header->length != sizeof(struct hub_hello) ||
	       client->said.hello.token != listener->token;
}

/* It gave up waiting for an answer and reconnects: its hello is still queued here. */
static bool has_left(const struct hub_client *client)
{
	char byte;

	return recv(client->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

static void client_accept(struct hub_listener *listener, struct hub_client *client)
{
	struct hub_greeting answer = greeting_of(listener->hub, HUB_WELCOME, listener->token);
	struct hub_hello *hello = &client->said.hello;
	struct hub_peer *peer = &listener->hub->peers[hello->rank - 1];

	if (has_left(client) ||
	    hub_write_whole(client->fd, &answer, sizeof(answer), clock_now_system()) != 0) {
		turn_away(listener, client, "it disconnected");
		return;
	}
	text_from_field(peer->host, sizeof(peer->host), hello->host, sizeof(hello->host));
	peer->fd = client->fd;
	if (hello->machine != listener->hub->machine)
		listener->hub->is_one_machine = false;
	client->fd = -1;
	listener->missing--;
}

static void client_judge(struct hub_listener *listener, struct hub_client *client)
{
	const struct hub_hello *hello = &client->said.hello;
	char why[128];

	if (is_stranger(listener, client)) {
		turn_away(listener, client, "not part of this job");
	} else if (hello->version != HUB_VERSION) {
		client_refuse(listener, client,
			      "rank 0's host has a different version of ringside");
	} else if (hello->nranks != listener->hub->nranks) {
		text_format(why, sizeof(why), "a rank expects %d ranks, rank 0 expects %d",
			    (int)hello->nranks, listener->hub->nranks);
		client_refuse(listener, client, why);
	} else if (hello->rank < 1 || hello->rank >= listener->hub->nranks) {
		client_refuse(listener, client, "no such rank in this job");
	} else if (listener->hub->peers[hello->rank - 1].fd != -1) {
		text_format(why, sizeof(why), "rank %d has already joined from %s",
			    (int)hello->rank, listener->hub->peers[hello->rank - 1].host);
		client_refuse(listener, client, why);
	} else {
		client_accept(listener, client);
	}
}

static void client_read(struct hub_listener *listener, struct hub_client *client)
{
	ssize_t now = recv(client->fd, (char *)&client->said + client->got,
			   sizeof(client->said) - client->got, MSG_DONTWAIT);

	if (now < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (now <= 0) {
		turn_away(listener, client, "it disconnected");
		return;
	}
	client->got += (size_t)now;
	/* Invalid data is recognized by its first bytes: do not wait for the rest. */
	if (client->got >= sizeof(uint32_t) && client->said.header.magic != HUB_MAGIC)
		turn_away(listener, client, "not part of this job");
	else if (client->got == sizeof(client->said))
		client_judge(listener, client);
}

/* ---- waiting ----------------------------------------------------------------------------------- */

static int tell_missing(struct hub_listener *listener, int patience_s)
{
	char list[96] = "", strangers[192] = "";
	size_t named = 0;

	for (int rank = 1; rank < listener->hub->nranks && named < 8; rank++)
		if (listener->hub->peers[rank - 1].fd == -1)
			text_append(list, sizeof(list), "%s%d", named++ ? ", " : "", rank);
	if (named < listener->missing)
		text_append(list, sizeof(list), " and %zu more", listener->missing - named);
	if (listener->turned_away > 0)
		snprintf(strangers, sizeof(strangers), "; rejected %zu, the last one: %s",
			 listener->turned_away, listener->why);
	return hub_break(listener->hub, NULL, "%s %s did not join within %d s%s",
			 text_which(listener->missing, "rank", "ranks"), list, patience_s,
			 strangers);
}

static int listener_wait(struct hub_listener *listener, uint64_t deadline_ns)
{
	uint64_t now = clock_now_system();
	uint64_t until = deadline_ns;
	uint64_t left;

	listener->polls[CLIENTS_MAX] =
		(struct pollfd){ .fd = listener->listen_fd, .events = POLLIN };
	for (size_t i = 0; i < CLIENTS_MAX; i++) {
		struct hub_client *client = &listener->clients[i];

		if (client->fd != -1 && client->deadline_ns <= now)
			turn_away(listener, client, "it sent nothing");
		if (client->fd != -1 && client->deadline_ns < until)
			until = client->deadline_ns;
		listener->polls[i] = (struct pollfd){ .fd = client->fd, .events = POLLIN };
	}
	left = until > now ? (until - now) / 1000000 + 1 : 0;
	return poll(listener->polls, CLIENTS_MAX + 1, left > 200 ? 200 : (int)left);
}

/* Checks now and then whether a rank that has joined failed: there may be thousands. */
static int hub_poll_ranks(struct hub_listener *listener)
{
	uint64_t now = clock_now_system();

	if (now < listener->next_poll_ns)
		return 0;
	listener->next_poll_ns = now + POLL_NS;
	return hub_peek(listener->hub);
}

/*
 * If rank 0 had no CPU until the deadline, ranks that connected in time are admitted before any is reported
 * missing.
 */
static int wait_for_ranks(struct hub_listener *listener, int patience_s)
{
	uint64_t deadline_ns = clock_now_system() + (uint64_t)patience_s * 1000000000;
	size_t late_polls = listener->hub->peer_count + CLIENTS_MAX;

	while (listener->missing > 0) {
		bool is_late = clock_now_system() >= deadline_ns;
		bool has_come = listener_wait(listener, deadline_ns) > 0;

		if (is_late && (!has_come || late_polls-- == 0))
			return tell_missing(listener, patience_s);
		if (listener->polls[CLIENTS_MAX].revents != 0)
			client_add(listener);
		for (size_t i = 0; i < CLIENTS_MAX; i++)
			if (listener->polls[i].revents != 0 &&
			    listener->clients[i].fd == listener->polls[i].fd)
				client_read(listener, &listener->clients[i]);
		if (hub_poll_ranks(listener) != 0)
			return -1;
	}
	return 0;
}

/* One connection per rank. */
static int allow_files(struct bench_hub *hub)
{
	rlim_t wanted = hub->peer_count + CLIENTS_MAX + FILES_ELSE;
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == -1 || limit.rlim_cur >= wanted)
		return 0;
	if (limit.rlim_max < wanted)
		return hub_break(hub, NULL,
				 "rank 0 can open %llu files but needs %llu for %d ranks: raise "
				 "ulimit -n",
				 (unsigned long long)limit.rlim_max, (unsigned long long)wanted,
				 hub->nranks);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	return 0;
}

/* Rank 0: fills hub->peers. 0 or -1. */
static int hub_accept_ranks(struct bench_hub *hub, const struct bench_place *place, int patience_s)
{
	struct hub_listener listener = {
		.hub = hub, .token = place->token, .listen_fd = -1, .missing = hub->peer_count
	};
	int result;

	for (size_t i = 0; i < CLIENTS_MAX; i++)
		listener.clients[i].fd = -1;
	hub->is_one_machine = true;
	result = allow_files(hub);
	if (result == 0)
		result = listener_open(&listener, place);
	if (result == 0 && place->file[0] != '\0')
		result = write_card(&listener, place);
	if (result == 0)
		result = wait_for_ranks(&listener, patience_s);
	for (size_t i = 0; i < CLIENTS_MAX; i++)
		if (listener.clients[i].fd != -1)
			close(listener.clients[i].fd);
	if (listener.listen_fd != -1)
		close(listener.listen_fd);
	/* All have joined, or nobody will: remove the file now, so that no later failure leaves it behind. */
	if (listener.has_card)
		unlink(place->file);
	return result;
}

/*
 * A rank connects to rank 0 by its address or by the file that rank 0 writes. The other side may not be rank 0 (the
 * port of a job that has ended, taken by another), so it must identify itself, and the search continues until rank
 * 0 of this job answers.
 */

/* One connection and one answer. */
enum { TRY_SECONDS = 2, PAUSE_MS = 20 };

enum found { FOUND = 1, NOT_YET = 0, REFUSED = -1 };

struct search {
	struct bench_hub *hub;
	const struct bench_place *place;
	uint64_t deadline_ns;
	bool is_connection_refused;
	char last[256]; /* why it failed */
};

/* Our own launcher listens before it starts ranks, on a port that no other process has. */
static bool is_certain(const struct bench_place *place)
{
	return strcmp(place->launcher, "self") == 0;
}

/* If nobody else can be there, rank 0 gets all the time: it may have had no CPU yet. */
static uint64_t search_until_ns(const struct search *search)
{
	uint64_t try_ns = clock_now_system() + (uint64_t)TRY_SECONDS * 1000000000;

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
		uint64_t now = clock_now_system();
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

/* Exchanges hellos. */
static enum found search_greet(struct search *search, int fd, uint64_t token)
{
	struct hub_greeting say = greeting_of(search->hub, HUB_HELLO, token);
	struct hub_peer *peer = &search->hub->peers[0];
	struct hub_header header;
	struct hub_hello hello;
	uint64_t until = search_until_ns(search);
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
	text_copy(search->last, sizeof(search->last), "it is not rank 0 of this job");
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
		int fd = connect_to(at, search_until_ns(search));

		search->is_connection_refused = fd == -1 && errno == ECONNREFUSED;
		if (fd == -1) {
			text_format(search->last, sizeof(search->last), "%s", strerror(errno));
			continue;
		}
		hub_set_options(fd);
		found = search_greet(search, fd, token);
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
			    : status == ERR_RANGE ? "it is not a rendezvous file of this user"
						  : "the file contains no address");
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

	/* Rank 0 only listens on the loopback then. */
	if (hub_is_local(place) && strcmp(host, "::1") != 0)
		host = "127.0.0.1";
	for (int i = 0; i < ports && found == NOT_YET; i++)
		found = try_host(search, host, place->port + i, place->token);
	return found;
}

/* If nobody listens anymore, rank 0 is gone, and it or the launcher reports why. */
static bool is_hopeless(const struct search *search, const struct bench_place *place)
{
	return is_certain(place) && search->is_connection_refused;
}

/* Other ranks: connects hub->peers[0]. 0 or -1. */
static int hub_find_ranks(struct bench_hub *hub, const struct bench_place *place, int patience_s)
{
	struct search search = { .hub = hub,
				 .place = place,
				 .deadline_ns =
					 clock_now_system() + (uint64_t)patience_s * 1000000000 };
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
		if (is_hopeless(&search, place) || clock_now_system() >= search.deadline_ns)
			break;
		poll(NULL, 0, PAUSE_MS);
	}
	hub->is_rank_0_lost = !is_certain(place);
	if (is_by_file)
		return hub_break(hub, NULL,
				 "rank %d did not find rank 0 by %s within %d s: %s; is the file "
				 "on a shared file system?",
				 hub->rank, place->file, patience_s, search.last);
	return hub_break(hub, NULL, "rank %d did not find rank 0 at %s port %d within %d s: %s",
			 hub->rank, place->address, place->port, patience_s, search.last);
}

/* Rank 0 has just admitted the last rank; the first ones have to wait for that. */
static int meet_first(struct bench_hub *hub, int patience_s, int waited_s)
{
	int left_s = hub->rank == 0 ? patience_s - waited_s : patience_s + ANSWER_SECONDS;
	int result;

	hub_set_patience(hub, left_s > ANSWER_SECONDS ? left_s : ANSWER_SECONDS);
	result = hub_meet(hub);
	hub_set_patience(hub, 0);
	return result;
}

static int hub_connect(struct bench_hub *hub, const struct bench_place *place, int patience_s)
{
	uint64_t began_ns = clock_now_system();
	int result;

	if (hub->nranks == 1)
		return 0;
	if (hub->rank == 0)
		result = hub_accept_ranks(hub, place, patience_s);
	else
		result = hub_find_ranks(hub, place, patience_s);
	if (result != 0)
		return result;
	return meet_first(hub, patience_s, (int)((clock_now_system() - began_ns) / 1000000000));
}

int hub_open(struct bench_hub **hub, const struct bench_place *place, int patience_s)
{
	*hub = new_hub(place);
	return *hub == NULL ? -1 : hub_connect(*hub, place, patience_s);
}
