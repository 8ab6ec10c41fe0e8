#include "programs/bench/hub_wire.h"

#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "common/clock.h"
#include "common/text.h"

/* How long a waiting rank keeps its processor before it lets the system wake it. */
enum { SPIN_NS = 1000000, LAST_WORDS_NS = 1000000000 };

uint64_t hub_now(void)
{
	return clock_system_ns(CLOCK_MONOTONIC);
}

/* For poll(): -1 for ever; rounded up, so that a wait does not end just before its deadline. */
static int milliseconds_until(uint64_t deadline_ns)
{
	uint64_t now = hub_now();
	uint64_t left;

	if (deadline_ns == 0)
		return -1;
	left = now < deadline_ns ? (deadline_ns - now + 999999) / 1000000 : 0;
	return left > 3600000 ? 3600000 : (int)left;
}

static bool is_past(uint64_t deadline_ns)
{
	return deadline_ns != 0 && hub_now() >= deadline_ns;
}

static bool is_later(int error)
{
	return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

int hub_read_whole(int fd, void *bytes, size_t length, uint64_t deadline_ns)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
	size_t got = 0;

	while (got < length) {
		ssize_t now = recv(fd, (char *)bytes + got, length - got, MSG_DONTWAIT);

		if (now > 0) {
			got += (size_t)now;
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

int hub_write_whole(int fd, const void *bytes, size_t length, uint64_t deadline_ns)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLOUT };
	size_t sent = 0;

	while (sent < length) {
		ssize_t now = send(fd, (const char *)bytes + sent, length - sent,
				   MSG_DONTWAIT | MSG_NOSIGNAL);

		if (now >= 0) {
			sent += (size_t)now;
			continue;
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

/* ---- failing ----------------------------------------------------------------------------------- */

/* Best effort: who does not take it within a second finds out by the closed connection. */
static void tell_why(struct bench_hub *hub, struct hub_peer *peer)
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
						 hub_now() + LAST_WORDS_NS) != 0)
		shutdown(peer->fd, SHUT_RDWR);
}

int hub_break(struct bench_hub *hub, const struct hub_peer *except, const char *format, ...)
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
			tell_why(hub, &hub->peers[i]);
	pthread_mutex_unlock(&hub->lock);
	return -1;
}

/* The header of a HUB_FAIL was read. */
static int take_reason(struct bench_hub *hub, struct hub_peer *peer)
{
	char reason[HUB_PROBLEM_BYTES] = "";
	char clean[HUB_PROBLEM_BYTES];
	size_t length = peer->header.length < sizeof(reason) ? (size_t)peer->header.length
							     : sizeof(reason) - 1;

	hub_read_whole(peer->fd, reason, length, hub_now() + LAST_WORDS_NS);
	text_from_field(clean, sizeof(clean), reason, length);
	return hub_break(hub, peer, "%s",
			 clean[0] != '\0' ? clean : "another rank failed and did not say why");
}

/* Its connection ended: was there a reason behind what is still to be read? */
static int take_last_words(struct bench_hub *hub, struct hub_peer *peer)
{
	char waste[4096];
	bool is_whole = hub_read_whole(peer->fd, (char *)&peer->header + peer->header_got,
				       sizeof(peer->header) - peer->header_got, hub_now()) == 0;

	while (is_whole && peer->header.magic == HUB_MAGIC) {
		size_t left = (size_t)peer->header.length - peer->payload_got;

		if (peer->header.kind == HUB_FAIL)
			return take_reason(hub, peer);
		for (; left > 0; left -= left < sizeof(waste) ? left : sizeof(waste))
			if (hub_read_whole(peer->fd, waste,
					   left < sizeof(waste) ? left : sizeof(waste),
					   hub_now()) != 0)
				break;
		peer->payload_got = 0;
		is_whole = left == 0 && hub_read_whole(peer->fd, &peer->header,
						       sizeof(peer->header), hub_now()) == 0;
	}
	/* Of what another thread said here rank 0 knows, and tells it: that is why it ends. */
	if (peer->rank == 0 && !hub->is_broken)
		hub->is_rank_0_lost = true;
	return hub_break(hub, peer, "rank %d on %s ended without a word: killed, or crashed",
			 peer->rank, peer->host);
}

/* ---- receiving --------------------------------------------------------------------------------- */

/* 1: all `length` bytes are there; 0: not yet; -1: the connection ended. */
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

/* 1: a header is there; 0: not yet; -1 broken. */
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
		return hub_break(hub, peer, "rank %d on %s sent something that is no message",
				 peer->rank, peer->host);
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
		return hub_break(hub, NULL, "rank %d on %s left before the others", peer->rank,
				 peer->host);
	return hub_break(hub, NULL,
			 "rank %d on %s is at another step than rank %d (%u of %llu bytes at %llu, "
			 "not %u of %zu at %llu): not the same command on all ranks?",
			 peer->rank, peer->host, hub->rank, header->kind,
			 (unsigned long long)header->length, (unsigned long long)header->step,
			 (unsigned int)kind, length, (unsigned long long)hub->step);
}

/* 1: its frame of this step is complete now; 0: not yet, or was before; -1 broken. */
static int advance(struct bench_hub *hub, struct hub_peer *peer, enum hub_kind kind, void *into,
		   size_t length)
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

/* revents say where something happened. One that is a step ahead is only watched for its end. */
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

/* Until something happens. Whoever had no processor when the time was over hears first what came meanwhile. */
static int wait_for_peers(struct bench_hub *hub, uint64_t spin_until_ns, uint64_t deadline_ns)
{
	bool is_spinning = hub->may_spin && hub_now() < spin_until_ns, is_quiet;

	if (poll_peers(hub, is_spinning ? 0 : milliseconds_until(deadline_ns), &is_quiet) != 0)
		return -1;
	return is_quiet && !is_spinning && is_past(deadline_ns) ? name_missing(hub) : 0;
}

int hub_collect(struct bench_hub *hub, enum hub_kind kind, void *into, size_t length,
		uint64_t *value, uint64_t deadline_ns)
{
	uint64_t spin_until_ns = hub_now() + SPIN_NS;
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
			done = advance(hub, peer, kind, length ? (char *)into + at : NULL, length);
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

/* It does not take more: wait, and meanwhile hear what others have to say. */
static int wait_to_send(struct bench_hub *hub, struct hub_peer *peer, uint64_t deadline_ns)
{
	struct pollfd poll_fd = { .fd = peer->fd, .events = POLLOUT };
	uint64_t second_ns = hub_now() + 1000000000;

	if (is_past(deadline_ns)) {
		peer->is_mid_send = true;
		return hub_break(hub, NULL, "rank %d on %s did not take a message in time",
				 peer->rank, peer->host);
	}
	if (deadline_ns != 0 && deadline_ns < second_ns)
		second_ns = deadline_ns;
	if (poll(&poll_fd, 1, milliseconds_until(second_ns)) == 0)
		return hub_peek(hub);
	return 0;
}

int hub_send(struct bench_hub *hub, struct hub_peer *peer, enum hub_kind kind, uint64_t value,
	     const void *payload, size_t length, uint64_t deadline_ns)
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
