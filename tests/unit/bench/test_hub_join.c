/* How ranks find each other: by a port, by a file, with unknown connections, and if one of them is late. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "bench/bench_launch.h"
#include "common/clock.h"
#include "tests/unit/bench/hub_ranks.h"

static int stranger(int port)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_port = htons((uint16_t)port),
				       .sin_addr = { htonl(INADDR_LOOPBACK) } };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	for (int i = 0; i < 30000; i++) {
		if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
			return fd;
		poll(NULL, 0, 2);
	}
	return -1;
}

struct greeting {
	struct hub_header header;
	struct hub_hello hello;
};

static struct greeting greeting(int rank, int nranks, uint64_t token)
{
	return (struct greeting){
		.header = { .magic = HUB_MAGIC,
			    .kind = HUB_HELLO,
			    .length = sizeof(struct hub_hello) },
		.hello = { .version = HUB_VERSION, .rank = rank, .nranks = nranks, .token = token },
	};
}

/* Rank 0's answer to these bytes: the kind of frame, 0: none. */
static unsigned int answer_to(int port, const void *bytes, size_t length)
{
	struct hub_header header = { 0 };
	int fd = stranger(port);

	if (send(fd, bytes, length, MSG_NOSIGNAL) == -1 ||
	    hub_read_whole(fd, &header, sizeof(header),
			   clock_now_system() + UINT64_C(15000000000)) != 0)
		header.kind = 0;
	close(fd);
	return header.kind;
}

static void test_strangers(void)
{
	static const char garbage[] = "GET / HTTP/1.1\r\nHost: somebody\r\n\r\n";
	struct greeting wrong_token = greeting(1, 3, 4712), no_rank = greeting(3, 3, 4711);
	struct greeting other_size = greeting(1, 4, 4711), half = greeting(1, 3, 4711);
	struct bench_place place = self(0, 3);
	pid_t pids[3];
	int silent[80];

	memset(told, 0, RANKS_MAX * sizeof(*told));
	place.port = free_port();
	pids[0] = start_rank(place, talk, PATIENCE_S);
	/* More than are accepted at once, sending nothing or an incomplete hello. */
	for (int i = 0; i < 80; i++) {
		silent[i] = stranger(place.port);
		if (i % 2 && send(silent[i], &half, sizeof(half) / 2, MSG_NOSIGNAL) == -1)
			printf("# rejected before it sent anything\n");
	}
	EXPECT_THAT("garbage is rejected", answer_to(place.port, garbage, sizeof(garbage)) == 0);
	EXPECT_THAT("a wrong token is rejected",
		    answer_to(place.port, &wrong_token, sizeof(wrong_token)) == 0);
	EXPECT_THAT("an invalid rank gets the reason",
		    answer_to(place.port, &no_rank, sizeof(no_rank)) == HUB_FAIL);
	EXPECT_THAT("a different number of ranks gets the reason",
		    answer_to(place.port, &other_size, sizeof(other_size)) == HUB_FAIL);
	for (int rank = 1; rank < 3; rank++) {
		place.rank = rank;
		pids[rank] = start_rank(place, talk, PATIENCE_S);
	}
	EXPECT_THAT("and the job continues", count_ended(pids, 3, 0) == 3);
	for (int i = 0; i < 80; i++)
		close(silent[i]);
}

static void test_twins(void)
{
	struct greeting hello = greeting(1, 3, 4711);
	struct bench_place place = self(0, 3);
	struct hub_header header = { 0 };
	pid_t pid;
	int fd;

	memset(told, 0, RANKS_MAX * sizeof(*told));
	place.port = free_port();
	pid = start_rank(place, talk, PATIENCE_S);
	fd = stranger(place.port);
	EXPECT(send(fd, &hello, sizeof(hello), MSG_NOSIGNAL) == (ssize_t)sizeof(hello) &&
	       hub_read_whole(fd, &header, sizeof(header), 0) == 0 && header.kind == HUB_WELCOME);
	EXPECT_THAT("a duplicate rank gets the reason",
		    answer_to(place.port, &hello, sizeof(hello)) == HUB_FAIL);
	close(fd);
	EXPECT(count_ended(&pid, 1, 2) == 1 && is_told(0, "rank 1 on "));
}

/* A listening socket for rank 0, as from the launcher, not accepted yet. */
static int open_door(struct bench_place *place)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t length = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	EXPECT(bind(fd, (struct sockaddr *)&address, length) == 0 && listen(fd, 10) == 0 &&
	       getsockname(fd, (struct sockaddr *)&address, &length) == 0);
	place->port = ntohs(address.sin_port);
	return fd;
}

/* Rank 0 has no CPU: one rank gives up waiting for the answer and reconnects. */
static void test_late_zero(void)
{
	struct greeting hello = greeting(1, 3, 4711);
	struct bench_place place = self(0, 3);
	int door = open_door(&place), fd = stranger(place.port);
	pid_t pids[3];

	memset(told, 0, RANKS_MAX * sizeof(*told));
	EXPECT(send(fd, &hello, sizeof(hello), MSG_NOSIGNAL) == (ssize_t)sizeof(hello));
	close(fd);
	for (int rank = 0; rank < 3; rank++) {
		place.rank = rank;
		place.listen_fd = rank == 0 ? door : -1;
		pids[rank] = start_rank(place, talk, PATIENCE_S);
	}
	close(door);
	EXPECT_THAT("a rank that reconnects is admitted", count_ended(pids, 3, 0) == 3);
}

static void test_missing(void)
{
	struct bench_place place = self(0, 4);
	int door = open_door(&place), on = PATIENCE_S;
	struct pollfd poll_fd = { .fd = door, .events = POLLIN };
	pid_t pids[2];

	memset(told, 0, RANKS_MAX * sizeof(*told));
	/* Rank 2 has connected and sent its hello when rank 0's time is over. */
	setsockopt(door, IPPROTO_TCP, TCP_DEFER_ACCEPT, &on, sizeof(on));
	place.rank = 2;
	text_copy(place.launcher, sizeof(place.launcher), "self");
	pids[1] = start_rank(place, talk, PATIENCE_S);
	EXPECT(poll(&poll_fd, 1, -1) == 1);
	place.rank = 0;
	place.listen_fd = door;
	pids[0] = start_rank(place, talk, 0);
	close(door);
	EXPECT_THAT("missing ranks end the job", count_ended(pids, 2, 2) == 2);
	EXPECT(is_told(0, "ranks 1, 3 did not join within 0 s"));
	EXPECT_THAT("the rank that joined leaves the report to rank 0", told[2].problem[0] == '\0');
	place = self(0, 4);
	place.port = free_port();
	place.rank = 1;
	pids[0] = start_rank(place, talk, 1);
	EXPECT(count_ended(pids, 1, 2) == 1);
	EXPECT(is_told(1, "did not find rank 0 at 127.0.0.1 port"));
}

static void test_files(void)
{
	struct rlimit few = { 80, 80 };
	struct bench_place place = self(0, 64);
	struct bench_hub *hub;
	pid_t pid = fork();
	int status = 0;

	if (pid == 0)
		_exit(setrlimit(RLIMIT_NOFILE, &few) == 0 && hub_open(&hub, &place, 1) == -1 &&
		      text_copy(told[0].problem, sizeof(told[0].problem), hub_problem(hub)));
	waitpid(pid, &status, 0);
	EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 1 && is_told(0, "ulimit -n"));
}

static void test_ports(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t length = sizeof(address);
	struct bench_place place = self(0, 2);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	pid_t pids[2];

	/* The port is in use, by a program that even answers. */
	if (bind(fd, (struct sockaddr *)&address, length) == -1 || listen(fd, 10) == -1 ||
	    getsockname(fd, (struct sockaddr *)&address, &length) == -1)
		printf("# cannot take a port\n");
	place.port = ntohs(address.sin_port);
	pids[0] = start_rank(place, talk, PATIENCE_S);
	EXPECT(count_ended(pids, 1, 2) == 1);
	EXPECT(is_told(0, "cannot listen on port"));
	place.ports = 8;
	pids[0] = start_rank(place, talk, PATIENCE_S);
	place.rank = 1;
	pids[1] = start_rank(place, talk, PATIENCE_S);
	EXPECT_THAT("both sides skip a port that is in use", count_ended(pids, 2, 0) == 2);
	close(fd);
	place = self(0, 2);
	text_copy(place.address, sizeof(place.address), "::1");
	place.port = free_port();
	fd = socket(AF_INET6, SOCK_STREAM, 0);
	if (fd == -1 || access("/proc/net/if_inet6", F_OK) != 0) {
		printf("# no IPv6 here\n");
		return;
	}
	close(fd);
	pids[0] = start_rank(place, talk, PATIENCE_S);
	place.rank = 1;
	pids[1] = start_rank(place, talk, PATIENCE_S);
	EXPECT_THAT("IPv6", count_ended(pids, 2, 0) == 2);
}

static char meeting_file[64];

/* It is removed once all have joined: no later failure can leave it behind. */
static int look_at_file(struct bench_hub *hub, int rank, int nranks)
{
	if (access(meeting_file, F_OK) == 0)
		return 1;
	return talk(hub, rank, nranks);
}

static void write_text(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	EXPECT(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
}

static void test_precious_file(void)
{
	char path[] = "/tmp/ringside-test-XXXXXX", other[80];
	struct bench_place place = self(0, 2);
	struct stat st;
	pid_t pid;
	int fd = mkstemp(path);

	EXPECT(fd != -1 && close(fd) == 0);
	place.address[0] = '\0';
	text_format(place.file, sizeof(place.file), "%s", path);
	write_text(path, "precious\n");
	pid = start_rank(place, talk, 1);
	EXPECT(count_ended(&pid, 1, 2) == 1);
	EXPECT(is_told(0, "exists and is not a rendezvous file"));
	EXPECT_THAT("a file of the user is kept", stat(path, &st) == 0 && st.st_size == 9);
	text_format(other, sizeof(other), "%s.link", path);
	EXPECT(symlink(path, other) == 0);
	text_format(place.file, sizeof(place.file), "%s", other);
	pid = start_rank(place, talk, 1);
	EXPECT(count_ended(&pid, 1, 2) == 1 && is_told(0, "exists and is not a rendezvous file"));
	EXPECT_THAT("so is a symbolic link",
		    unlink(other) == 0 && stat(path, &st) == 0 && st.st_size == 9);
	write_text(path, "");
	text_format(place.file, sizeof(place.file), "%s", path);
	pid = start_rank(place, talk, 1);
	EXPECT(count_ended(&pid, 1, 2) == 1);
	EXPECT_THAT("an empty file from mktemp is replaced",
		    is_told(0, "rank 1 did not join") && unlink(path) == -1);
}

static void test_file(void)
{
	char directory[] = "/tmp/ringside-test-XXXXXX";
	struct hub_card stale = {
		.count = 1, .hosts = { "127.0.0.1" }, .port = free_port(), .token = 1
	};
	struct bench_place place = self(0, 3);
	struct stat st;
	pid_t pids[3];

	EXPECT(mkdtemp(directory) != NULL);
	text_format(place.file, sizeof(place.file), "%s/meet", directory);
	text_copy(meeting_file, sizeof(meeting_file), place.file);
	place.address[0] = '\0';
	/* From an earlier job; a rank reads it before rank 0 starts. */
	EXPECT(hub_card_write(&stale, place.file) == OK);
	EXPECT(stat(place.file, &st) == 0 && (st.st_mode & 0777) == 0600);
	for (int rank = 1; rank < 3; rank++) {
		place.rank = rank;
		pids[rank] = start_rank(place, look_at_file, PATIENCE_S);
	}
	for (int i = 0; i < 50; i++)
		poll(NULL, 0, 2);
	place.rank = 0;
	pids[0] = start_rank(place, look_at_file, PATIENCE_S);
	EXPECT_THAT("ranks find each other by a file, despite an old one",
		    count_ended(pids, 3, 0) == 3);
	EXPECT_THAT("which is removed", access(place.file, F_OK) == -1 && errno == ENOENT);
	place.local_ranks = -1;
	for (int rank = 0; rank < 3; rank++) {
		place.rank = rank;
		pids[rank] = start_rank(place, look_at_file, PATIENCE_S);
	}
	EXPECT_THAT("also on all interfaces", count_ended(pids, 3, 0) == 3);
	place.rank = 1;
	pids[0] = start_rank(place, talk, 1);
	EXPECT(count_ended(pids, 1, 2) == 1);
	EXPECT(is_told(1, "did not find rank 0 by") && is_told(1, "No such file"));
	EXPECT_THAT("nothing is left behind", rmdir(directory) == 0);
}

static int is_card(const char *text)
{
	struct hub_card card;

	return hub_card_parse(&card, text, strlen(text)) == OK;
}

static void test_card(void)
{
	struct hub_card card;
	static const char two[] =
		"node-1:40123 00000000deadbeef\n[fe80::1]:40123 00000000deadbeef\n";

	EXPECT(hub_card_parse(&card, two, strlen(two)) == OK && card.count == 2);
	EXPECT(card.port == 40123 && card.token == 0xdeadbeef &&
	       strcmp(card.hosts[1], "fe80::1") == 0);
	EXPECT(!is_card("") && !is_card("\n") && !is_card("a:1 00000000deadbeef"));
	EXPECT(!is_card("a:0 00000000deadbeef\n") && !is_card("a:65536 00000000deadbeef\n"));
	EXPECT(!is_card("a:1 00000000deadbee\n") && !is_card("a:1 00000000deadbeeg\n"));
	EXPECT(!is_card(":1 00000000deadbeef\n") && !is_card("a:b:1 00000000deadbeef\n"));
	EXPECT(!is_card("[]:1 00000000deadbeef\n") && !is_card("a\tb:1 00000000deadbeef\n"));
	EXPECT_THAT("lines of only one job",
		    !is_card("a:1 00000000deadbeef\nb:1 00000000deadbeee\n"));
}

int main(void)
{
	if (!hub_ranks_begin())
		return 1;
	test_card();
	test_strangers();
	test_twins();
	test_late_zero();
	test_missing();
	test_files();
	test_ports();
	test_file();
	test_precious_file();
	return tap_done();
}
