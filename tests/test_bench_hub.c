/* Ranks as processes of their own, on the loopback. */
#include "programs/bench/bench_hub.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "programs/bench/hub_card.h"
#include "programs/bench/hub_wire.h"
#include "tests/tap.h"

enum { RANKS_MAX = 64, PATIENCE_S = 20 };

/* What a rank tells the test: seen by all. */
struct told {
	int code;
	char problem[HUB_PROBLEM_BYTES];
};
static struct told *told;

static struct bench_place self(int rank, int nranks)
{
	struct bench_place place;

	bench_place_init(&place);
	text_copy(place.launcher, sizeof(place.launcher), "env");
	text_copy(place.address, sizeof(place.address), "127.0.0.1");
	place.rank = place.local_rank = rank;
	place.nranks = place.local_ranks = nranks;
	place.token = 4711;
	return place;
}

/* A port that nobody has. */
static int free_port(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t length = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (bind(fd, (struct sockaddr *)&address, length) == -1 ||
	    getsockname(fd, (struct sockaddr *)&address, &length) == -1)
		return 0;
	close(fd);
	return ntohs(address.sin_port);
}

typedef int (*rank_fn)(struct bench_hub *hub, int rank, int nranks);

static int be_rank(struct bench_place place, rank_fn body, int patience_s)
{
	struct told *mine = &told[place.rank];
	struct bench_hub *hub;

	if (hub_open(&hub, &place, patience_s) == 0)
		mine->code = body(hub, place.rank, place.nranks);
	else
		mine->code = 2;
	if (mine->code != 2 || hub_is_teller(hub))
		text_copy(mine->problem, sizeof(mine->problem), hub_problem(hub));
	hub_close(hub);
	return mine->code;
}

static pid_t start_rank(struct bench_place place, rank_fn body, int patience_s)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(be_rank(place, body, patience_s));
	return pid;
}

/* How many ranks ended with this exit code. */
static int count_ended(const pid_t *pids, int count, int code)
{
	int found = 0;

	for (int i = 0; i < count; i++) {
		int status = 0;

		waitpid(pids[i], &status, 0);
		found += WIFEXITED(status) && WEXITSTATUS(status) == code;
	}
	return found;
}

static int run_ranks(int nranks, rank_fn body, int code)
{
	pid_t pids[RANKS_MAX];
	int port = free_port();

	memset(told, 0, RANKS_MAX * sizeof(*told));
	for (int rank = 0; rank < nranks; rank++) {
		struct bench_place place = self(rank, nranks);

		place.port = port;
		pids[rank] = start_rank(place, body, PATIENCE_S);
	}
	return count_ended(pids, nranks, code);
}

/* ---- what ranks do ------------------------------------------------------------------------------ */

static int talk(struct bench_hub *hub, int rank, int nranks)
{
	uint32_t shared = rank == 0 ? 77 : 0, mine, all[RANKS_MAX] = { 0 };

	for (uint32_t round = 0; round < 20; round++) {
		mine = (uint32_t)rank * 1000 + round;
		if (hub_meet(hub) != 0 || hub_share(hub, &shared, sizeof(shared)) != 0 ||
		    shared != 77 + round ||
		    hub_gather(hub, &mine, sizeof(mine), rank == 0 ? all : NULL) != 0)
			return 1;
		for (int i = 0; rank == 0 && i < nranks; i++)
			if (all[i] != (uint32_t)i * 1000 + round)
				return 1;
		shared += rank == 0;
		if (hub_look(hub) != 0)
			return 1;
	}
	return 0;
}

/* More than fits into sockets, and nothing at all. */
static int talk_much(struct bench_hub *hub, int rank, int nranks)
{
	size_t length = (size_t)9 << 20;
	unsigned char *mine = malloc(length), *all = malloc(length * (size_t)nranks);
	int is_wrong;

	memset(mine, rank + 1, length);
	is_wrong = hub_gather(hub, mine, length, all) != 0 || hub_share(hub, mine, length) != 0 ||
		   mine[0] != 1 || mine[length - 1] != 1 || hub_share(hub, NULL, 0) != 0 ||
		   hub_gather(hub, NULL, 0, NULL) != 0;
	for (int i = 0; rank == 0 && i < nranks; i++)
		is_wrong |= all[length * (size_t)i] != i + 1 ||
			    all[length * (size_t)(i + 1) - 1] != i + 1;
	free(mine);
	free(all);
	return is_wrong;
}

static int fail_on_two(struct bench_hub *hub, int rank, int nranks)
{
	(void)nranks;
	if (hub_meet(hub) != 0)
		return 1;
	if (rank == 2)
		hub_fail(hub, "the GPU is\ton fire");
	while (hub_meet(hub) == 0)
		;
	return 3;
}

static int fail_after_sending(struct bench_hub *hub, int rank, int nranks)
{
	char all[RANKS_MAX], mine = 1;

	(void)nranks;
	if (rank == 1) {
		/* Rank 0 is far behind: the reason lies behind a message that it has not asked for. */
		hub_gather(hub, &mine, 1, NULL);
		hub_fail(hub, "too far ahead");
		return 3;
	}
	while (hub_look(hub) == 0 && hub_gather(hub, &mine, 1, all) == 0)
		;
	return 3;
}

static int die_on_one(struct bench_hub *hub, int rank, int nranks)
{
	(void)nranks;
	if (hub_meet(hub) != 0)
		return 1;
	if (rank == 1)
		kill(getpid(), SIGKILL);
	while (hub_meet(hub) == 0)
		;
	return 3;
}

static int die_on_zero(struct bench_hub *hub, int rank, int nranks)
{
	(void)nranks;
	if (hub_meet(hub) != 0)
		return 1;
	if (rank == 0)
		kill(getpid(), SIGKILL);
	while (hub_meet(hub) == 0)
		;
	return hub_is_teller(hub) == (rank == 1) ? 3 : 4;
}

static int see_it_die(struct bench_hub *hub, int rank, int nranks)
{
	(void)nranks;
	if (hub_meet(hub) != 0)
		return 1;
	if (rank == 1)
		kill(getpid(), SIGKILL);
	/* As somebody does who waits for a GPU. */
	while (hub_look(hub) == 0)
		poll(NULL, 0, 1);
	return 3;
}

static int differ(struct bench_hub *hub, int rank, int nranks)
{
	char byte = 0, all[RANKS_MAX];

	(void)nranks;
	if (rank == 1)
		hub_gather(hub, &byte, 1, NULL);
	else
		hub_gather(hub, "12", 2, all);
	return hub_meet(hub) == -1 ? 3 : 1;
}

static int wait_in_vain(struct bench_hub *hub, int rank, int nranks)
{
	(void)nranks;
	if (hub_meet(hub) != 0)
		return 1;
	if (rank == 2) {
		while (hub_look(hub) == 0)
			poll(NULL, 0, 5);
		return 3;
	}
	hub_set_patience(hub, 1);
	return hub_meet(hub) == -1 ? 3 : 1;
}

static int leave_early(struct bench_hub *hub, int rank, int nranks)
{
	(void)nranks;
	if (rank == 1)
		return 3;
	return hub_meet(hub) == -1 ? 3 : 1;
}

/* ---- tests -------------------------------------------------------------------------------------- */

static int is_told(int rank, const char *part)
{
	if (strstr(told[rank].problem, part) != NULL)
		return 1;
	printf("#   rank %d says \"%s\"\n", rank, told[rank].problem);
	return 0;
}

static void test_talk(void)
{
	EXPECT_THAT("one rank needs no network", run_ranks(1, talk, 0) == 1);
	EXPECT_THAT("two ranks talk", run_ranks(2, talk, 0) == 2);
	EXPECT_THAT("64 ranks talk", run_ranks(64, talk, 0) == 64);
	EXPECT_THAT("messages longer than a socket's room", run_ranks(3, talk_much, 0) == 3);
}

static void test_failures(void)
{
	EXPECT_THAT("a rank that fails ends all", run_ranks(4, fail_on_two, 3) == 4);
	EXPECT(is_told(0, "rank 2 on ") && is_told(0, "the GPU is?on fire"));
	EXPECT(is_told(3, "rank 2 on ") && is_told(2, "rank 2 on "));
	EXPECT_THAT("a reason behind a message is found", run_ranks(2, fail_after_sending, 3) == 2);
	EXPECT(is_told(0, "too far ahead"));
	EXPECT_THAT("a killed rank ends the others", run_ranks(4, die_on_one, 3) == 3);
	EXPECT(is_told(0, "rank 1 on ") && is_told(0, "without a word") &&
	       is_told(3, "rank 1 on "));
	EXPECT_THAT("rank 0 killed: rank 1 tells it", run_ranks(4, die_on_zero, 3) == 3);
	EXPECT(is_told(3, "rank 0 on "));
	EXPECT_THAT("hub_look sees a death", run_ranks(4, see_it_die, 3) == 3);
	EXPECT(is_told(2, "rank 1 on "));
	EXPECT_THAT("other messages than expected", run_ranks(3, differ, 3) == 3);
	EXPECT(is_told(0, "another step"));
	EXPECT_THAT("patience ends, and names who is missing", run_ranks(3, wait_in_vain, 3) == 3);
	EXPECT(is_told(0, "rank 2 on ") && is_told(0, "did not answer"));
	EXPECT_THAT("one leaves before the others", run_ranks(2, leave_early, 3) == 2);
	EXPECT(is_told(0, "left before"));
}

static int stranger(int port)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_port = htons((uint16_t)port),
				       .sin_addr = { htonl(INADDR_LOOPBACK) } };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	for (int i = 0; i < 2000; i++) {
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

/* What rank 0 answers to these bytes: the kind of frame, 0 nothing. */
static unsigned int answer_to(int port, const void *bytes, size_t length)
{
	struct hub_header header = { 0 };
	int fd = stranger(port);

	if (send(fd, bytes, length, MSG_NOSIGNAL) == -1 ||
	    hub_read_whole(fd, &header, sizeof(header), hub_now() + UINT64_C(15000000000)) != 0)
		header.kind = 0;
	close(fd);
	return header.kind;
}

static void test_strangers(void)
{
	static const char garbage[] = "GET / HTTP/1.1\r\nHost: somebody\r\n\r\n";
	struct greeting wrong_token = greeting(1, 3, 4712), no_rank = greeting(3, 3, 4711);
	struct greeting other_size = greeting(1, 4, 4711), second = greeting(1, 3, 4711);
	struct bench_place place = self(0, 3);
	pid_t pids[3];
	int silent[80];

	memset(told, 0, RANKS_MAX * sizeof(*told));
	place.port = free_port();
	pids[0] = start_rank(place, talk, PATIENCE_S);
	/* More than are let in at once, and they say nothing, or half of something. */
	for (int i = 0; i < 80; i++) {
		silent[i] = stranger(place.port);
		if (i % 2 && send(silent[i], &second, sizeof(second) / 2, MSG_NOSIGNAL) == -1)
			printf("# turned away before it spoke\n");
	}
	EXPECT_THAT("garbage is turned away", answer_to(place.port, garbage, sizeof(garbage)) == 0);
	EXPECT_THAT("a wrong token is turned away",
		    answer_to(place.port, &wrong_token, sizeof(wrong_token)) == 0);
	EXPECT_THAT("a rank that cannot be hears why",
		    answer_to(place.port, &no_rank, sizeof(no_rank)) == HUB_FAIL);
	EXPECT_THAT("another number of ranks hears why",
		    answer_to(place.port, &other_size, sizeof(other_size)) == HUB_FAIL);
	place.rank = 1;
	pids[1] = start_rank(place, talk, PATIENCE_S);
	/* Until rank 1 is there it would be taken for it. */
	for (int i = 0; i < 100; i++)
		poll(NULL, 0, 2);
	EXPECT_THAT("the same rank twice hears why",
		    answer_to(place.port, &second, sizeof(second)) == HUB_FAIL);
	place.rank = 2;
	pids[2] = start_rank(place, talk, PATIENCE_S);
	EXPECT_THAT("and the job goes on", count_ended(pids, 3, 0) == 3);
	for (int i = 0; i < 80; i++)
		close(silent[i]);
}

static void test_missing(void)
{
	struct bench_place place = self(0, 4);
	pid_t pids[2];

	memset(told, 0, RANKS_MAX * sizeof(*told));
	place.port = free_port();
	pids[0] = start_rank(place, talk, 1);
	place.rank = 2;
	pids[1] = start_rank(place, talk, PATIENCE_S);
	EXPECT_THAT("who does not come ends the job", count_ended(pids, 2, 2) == 2);
	EXPECT(is_told(0, "ranks 1, 3 did not come within 1 s"));
	EXPECT_THAT("the one that came leaves the telling to rank 0", told[2].problem[0] == '\0');
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

	/* Somebody has the port, and even answers there. */
	if (bind(fd, (struct sockaddr *)&address, length) == -1 || listen(fd, 10) == -1 ||
	    getsockname(fd, (struct sockaddr *)&address, &length) == -1)
		printf("# no port to take\n");
	place.port = ntohs(address.sin_port);
	pids[0] = start_rank(place, talk, PATIENCE_S);
	EXPECT(count_ended(pids, 1, 2) == 1);
	EXPECT(is_told(0, "cannot listen on port"));
	place.ports = 8;
	pids[0] = start_rank(place, talk, PATIENCE_S);
	place.rank = 1;
	pids[1] = start_rank(place, talk, PATIENCE_S);
	EXPECT_THAT("a taken port is passed over by both sides", count_ended(pids, 2, 0) == 2);
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

/* When all are here it is gone: no end of the job can leave it behind. */
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
	EXPECT(is_told(0, "is there and was not written for ranks to meet"));
	EXPECT_THAT("a file of the user's stays", stat(path, &st) == 0 && st.st_size == 9);
	text_format(other, sizeof(other), "%s.link", path);
	EXPECT(symlink(path, other) == 0);
	text_format(place.file, sizeof(place.file), "%s", other);
	pid = start_rank(place, talk, 1);
	EXPECT(count_ended(&pid, 1, 2) == 1 && is_told(0, "is there and was not written"));
	EXPECT_THAT("a link, too", unlink(other) == 0 && stat(path, &st) == 0 && st.st_size == 9);
	write_text(path, "");
	text_format(place.file, sizeof(place.file), "%s", path);
	pid = start_rank(place, talk, 1);
	EXPECT(count_ended(&pid, 1, 2) == 1);
	EXPECT_THAT("the empty file of mktemp is taken",
		    is_told(0, "rank 1 did not come") && unlink(path) == -1);
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
	/* Of a job that is gone; a rank sees it before rank 0 is there. */
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
	EXPECT_THAT("ranks meet by a file, whatever an older one says",
		    count_ended(pids, 3, 0) == 3);
	EXPECT_THAT("which is removed", access(place.file, F_OK) == -1 && errno == ENOENT);
	place.local_ranks = -1;
	for (int rank = 0; rank < 3; rank++) {
		place.rank = rank;
		pids[rank] = start_rank(place, look_at_file, PATIENCE_S);
	}
	EXPECT_THAT("on all interfaces, too", count_ended(pids, 3, 0) == 3);
	place.rank = 1;
	pids[0] = start_rank(place, talk, 1);
	EXPECT(count_ended(pids, 1, 2) == 1);
	EXPECT(is_told(1, "did not find rank 0 by") && is_told(1, "No such file"));
	EXPECT_THAT("nothing is left", rmdir(directory) == 0);
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
	EXPECT_THAT("one job's lines only",
		    !is_card("a:1 00000000deadbeef\nb:1 00000000deadbeee\n"));
}

int main(void)
{
	told = mmap(NULL, RANKS_MAX * sizeof(*told), PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (told == MAP_FAILED)
		return 1;
	alarm(170);
	test_card();
	test_talk();
	test_failures();
	test_strangers();
	test_missing();
	test_files();
	test_ports();
	test_file();
	test_precious_file();
	return tap_done();
}
