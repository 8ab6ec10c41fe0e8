/* Recognizing launchers by their variables. */
#include "bench/bench_launch.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/hash.h"
#include "common/text.h"
#include "tests/tap.h"

static struct bench_place place;
static char problem[512];

/* "NAME=VALUE" strings, terminated by NULL. */
static const char *made_up(void *context, const char *name)
{
	const char *const *words = context;
	size_t length = strlen(name);

	for (; *words != NULL; words++)
		if (strncmp(*words, name, length) == 0 && (*words)[length] == '=')
			return *words + length + 1;
	return NULL;
}

#define FIND(meet, ...)                                                                         \
	bench_place_find(&place, made_up, (const char *[]){ __VA_ARGS__, NULL }, meet, problem, \
			 sizeof(problem))

static int is_problem(const char *first, const char *second)
{
	if (strstr(problem, first) && strstr(problem, second) && strchr(problem, '\n') == NULL)
		return 1;
	printf("#   got \"%s\"\n", problem);
	return 0;
}

static int is_place(const char *launcher, int rank, int nranks, int local_rank, int local_ranks)
{
	if (strcmp(place.launcher, launcher) == 0 && place.rank == rank && place.nranks == nranks &&
	    place.local_rank == local_rank && place.local_ranks == local_ranks)
		return 1;
	printf("#   got %s %d of %d, %d of %d\n", place.launcher, place.rank, place.nranks,
	       place.local_rank, place.local_ranks);
	return 0;
}

#define TORCHRUN                                                               \
	"TORCHELASTIC_RUN_ID=none", "RANK=3", "WORLD_SIZE=16", "LOCAL_RANK=3", \
		"LOCAL_WORLD_SIZE=8", "MASTER_ADDR=node-a", "MASTER_PORT=29400"

static void test_torchrun(void)
{
	uint64_t token;

	EXPECT(FIND(NULL, TORCHRUN) == 1);
	EXPECT(is_place("torchrun", 3, 16, 3, 8));
	EXPECT(strcmp(place.address, "node-a") == 0 && place.port == 29401 && place.ports == 8);
	EXPECT(place.file[0] == '\0' && place.results_fd == -1 && place.listen_fd == -1);
	token = place.token;
	EXPECT_THAT("torchrun in a Slurm step is torchrun",
		    FIND(NULL, TORCHRUN, "SLURM_PROCID=1", "SLURM_STEP_ID=0", "SLURM_NTASKS=2") ==
				    1 &&
			    is_place("torchrun", 3, 16, 3, 8));
	EXPECT_THAT("another job has another token", place.token != token);
	EXPECT(FIND(NULL, "RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=::1", "MASTER_PORT=65530") == 1);
	EXPECT(is_place("env", 0, 2, -1, -1) && place.port == 65522 &&
	       place.port + place.ports <= 65530);
	EXPECT(FIND(NULL, "RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=a") == 1 && place.port == 29501);
	EXPECT(FIND(NULL, "RANK=0", "WORLD_SIZE=2") == -1 &&
	       is_problem("--meet HOST:PORT", "--meet FILE"));
	EXPECT(FIND(NULL, "RANK=0", "WORLD_SIZE=1") == 1);
	EXPECT(FIND(NULL, "RANK=1", "WORLD_SIZE=2", "LOCAL_WORLD_SIZE=2") == 1 &&
	       place.file[0] == '/');
}

static void test_mpirun(void)
{
	char first[4096];

	EXPECT(FIND(NULL, "OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=4",
		    "OMPI_COMM_WORLD_LOCAL_RANK=1", "OMPI_COMM_WORLD_LOCAL_SIZE=4",
		    "PMIX_NAMESPACE=prterun-a-77@1", "PMIX_RANK=1", "TMPDIR=/scratch") == 1);
	EXPECT(is_place("mpirun", 1, 4, 1, 4) && place.address[0] == '\0');
	EXPECT(strncmp(place.file, "/scratch/ringside-bench-", 24) == 0 && place.is_own_file);
	text_copy(first, sizeof(first), place.file);
	EXPECT(FIND(NULL, "OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=4",
		    "OMPI_COMM_WORLD_LOCAL_SIZE=4", "PMIX_NAMESPACE=prterun-a-78@1",
		    "TMPDIR=/scratch") == 1);
	EXPECT_THAT("another job uses another file", strcmp(first, place.file) != 0);
	EXPECT_THAT("several hosts need --meet",
		    FIND(NULL, "OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=4",
			 "OMPI_COMM_WORLD_LOCAL_SIZE=2") == -1 &&
			    is_problem("mpirun", "--meet"));
	EXPECT(FIND("node-a:5000", "OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=4",
		    "OMPI_COMM_WORLD_LOCAL_SIZE=2") == 1);
	EXPECT(strcmp(place.address, "node-a") == 0 && place.port == 5000 && place.file[0] == '\0');
	EXPECT(FIND("/shared/meet", "OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=4") == 1);
	EXPECT(strcmp(place.file, "/shared/meet") == 0 && !place.is_own_file);
	EXPECT(FIND("[fe80::2]:80", "PMI_RANK=1", "PMI_SIZE=4") == 1 &&
	       strcmp(place.address, "fe80::2") == 0);
	EXPECT(FIND("a:b", "PMI_RANK=1", "PMI_SIZE=4") == -1 &&
	       is_problem("--meet a:b", "HOST:PORT"));
	EXPECT(FIND("", "PMI_RANK=1", "PMI_SIZE=4") == -1 && is_problem("--meet", "empty"));
	EXPECT(FIND(NULL, "PMI_RANK=2", "PMI_SIZE=3", "MPI_LOCALRANKID=2", "MPI_LOCALNRANKS=3") ==
	       1);
	EXPECT(is_place("mpirun", 2, 3, 2, 3) && strncmp(place.file, "/tmp/", 5) == 0);
	EXPECT(FIND(NULL, "PMIX_RANK=0") == -1 && is_problem("PMIX_RANK", "number of ranks is "
									  "unknown"));
}

#define SLURM                                                                        \
	"SLURM_JOB_ID=4711", "SLURM_STEP_ID=2", "SLURM_PROCID=9", "SLURM_NTASKS=12", \
		"SLURM_LOCALID=1", "SLURM_NODEID=1", "SLURM_STEP_NODELIST=gpu[007-008]"

static void test_srun(void)
{
	int port;

	EXPECT(FIND(NULL, SLURM, "SLURM_STEP_TASKS_PER_NODE=8,4") == 1);
	EXPECT(is_place("srun", 9, 12, 1, 4) && strcmp(place.address, "gpu007") == 0);
	EXPECT(place.port >= 20000 && place.port < 30000 && place.ports == 8);
	port = place.port;
	EXPECT(FIND(NULL, SLURM, "PMI_RANK=9", "PMI_SIZE=12", "PMIX_RANK=9") == 1);
	EXPECT(is_place("srun", 9, 12, 1, -1) && place.port == port);
	EXPECT_THAT("mpirun inside a step is mpirun",
		    FIND("a:1", SLURM, "PMI_RANK=3", "PMI_SIZE=12") == 1 &&
			    is_place("mpirun", 3, 12, -1, -1));
	EXPECT_THAT("a batch script is not a rank",
		    FIND(NULL, "SLURM_JOB_ID=4711", "SLURM_PROCID=0", "SLURM_NTASKS=8",
			 "SLURM_NODELIST=a") == 0);
	EXPECT_THAT("a shell of srun --pty is not a rank",
		    FIND(NULL, SLURM, "SLURM_PTY_PORT=12345") == 0);
	EXPECT_THAT("an invalid node list names no host",
		    FIND(NULL, "SLURM_STEP_ID=2", "SLURM_PROCID=1", "SLURM_NTASKS=2",
			 "SLURM_STEP_NODELIST=gpu[007-") == -1 &&
			    is_problem("srun", "--meet"));
	EXPECT(FIND("b:77", SLURM) == 1 && strcmp(place.address, "b") == 0 && place.port == 77 &&
	       place.ports == 0);
	EXPECT(FIND("/f", SLURM) == 1 && place.address[0] == '\0' && strcmp(place.file, "/f") == 0);
	EXPECT(bench_place_tasks("4(x2),3", 0) == 4 && bench_place_tasks("4(x2),3", 1) == 4);
	EXPECT(bench_place_tasks("4(x2),3", 2) == 3 && bench_place_tasks("4(x2),3", 3) == -1);
	EXPECT(bench_place_tasks("", 0) == -1 && bench_place_tasks("x", 0) == -1);
}

static int first_is(const char *list, const char *host)
{
	char got[32];

	if (!bench_place_first_host(list, got, sizeof(got)))
		return host == NULL;
	return host != NULL && strcmp(got, host) == 0;
}

static void test_node_lists(void)
{
	EXPECT(first_is("a", "a") && first_is("a,b", "a") && first_is("n[1-4]", "n1"));
	EXPECT(first_is("gpu[007-010,12],login1", "gpu007") && first_is("n[3,5-6]", "n3"));
	EXPECT(first_is("rack[1-2]n[01-04]", "rack1n01") && first_is("n[01-02]-ib,x", "n01-ib"));
	EXPECT(first_is("", NULL) && first_is(",a", NULL) && first_is("n[1", NULL));
	EXPECT(first_is("a b", NULL));
	EXPECT(first_is("a-name-that-is-longer-than-the-room-for-it", NULL));
	EXPECT(first_is("n[1111111111111111111111111111111111111111]", NULL));
}

static void test_contradictions(void)
{
	EXPECT(FIND(NULL, "PATH=/bin") == 0);
	EXPECT(FIND(NULL, "RANK=", "WORLD_SIZE=4") == 0);
	EXPECT(FIND(NULL, "RANK=4", "WORLD_SIZE=4") == -1 && is_problem("RANK=4", "WORLD_SIZE=4"));
	EXPECT(FIND(NULL, "RANK=0") == -1 && is_problem("RANK", "WORLD_SIZE"));
	EXPECT(FIND(NULL, "RANK=-1", "WORLD_SIZE=4") == -1 && is_problem("RANK=-1", "number"));
	EXPECT(FIND(NULL, "RANK=x", "WORLD_SIZE=4") == -1 && is_problem("RANK=x", "number"));
	EXPECT(FIND(NULL, "RANK=0", "WORLD_SIZE=0") == -1 && is_problem("WORLD_SIZE=0", "number"));
	EXPECT(FIND(NULL, "RANK=0", "WORLD_SIZE=2", "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=1") == -1 &&
	       is_problem("LOCAL_RANK=1", "LOCAL_WORLD_SIZE=1"));
	EXPECT(FIND(NULL, "RANK=0", "WORLD_SIZE=2", "LOCAL_WORLD_SIZE=3") == -1);
	EXPECT(FIND(NULL, "RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=a", "MASTER_PORT=x") == -1 &&
	       is_problem("MASTER_PORT=x", "65535"));
}

static void test_directory(void)
{
	char base[] = "/tmp/ringside-test-XXXXXX", set[64], directory[4096];

	EXPECT(mkdtemp(base) != NULL);
	text_format(set, sizeof(set), "TMPDIR=%s", base);
	EXPECT(FIND(NULL, "RANK=0", "WORLD_SIZE=2", "LOCAL_WORLD_SIZE=2", set) == 1);
	text_copy(directory, sizeof(directory), place.file);
	*strrchr(directory, '/') = '\0';
	EXPECT(bench_place_prepare(&place, problem, sizeof(problem)) == 0);
	EXPECT_THAT("it can exist already",
		    bench_place_prepare(&place, problem, sizeof(problem)) == 0);
	EXPECT(chmod(directory, 0777) == 0);
	EXPECT_THAT("a directory open to all is rejected",
		    bench_place_prepare(&place, problem, sizeof(problem)) == -1 &&
			    is_problem(directory, "--meet"));
	EXPECT(rmdir(directory) == 0 && symlink("/tmp", directory) == 0);
	EXPECT_THAT("so is a symbolic link",
		    bench_place_prepare(&place, problem, sizeof(problem)) == -1);
	place.rank = 1;
	EXPECT_THAT("only rank 0 creates it",
		    bench_place_prepare(&place, problem, sizeof(problem)) == 0);
	EXPECT(unlink(directory) == 0 && rmdir(base) == 0);
}

/* ---- limits ------------------------------------------------------------------------------------- */

static int says(const char *wanted)
{
	if (strcmp(problem, wanted) == 0)
		return 1;
	printf("#   got \"%s\"\n", problem);
	return 0;
}

#define MASTER "MASTER_ADDR=a"

static void test_number_limits(void)
{
	EXPECT(FIND(NULL, "RANK=65535", "WORLD_SIZE=65536", MASTER) == 1 && place.rank == 65535);
	EXPECT(FIND(NULL, "RANK=65536", "WORLD_SIZE=65536", MASTER) == -1 &&
	       says("RANK=65536: expected a number from 0 to 65535"));
	EXPECT(FIND(NULL, "RANK=0", "WORLD_SIZE=65537", MASTER) == -1 &&
	       says("WORLD_SIZE=65537: expected a number from 1 to 65536"));
	EXPECT(FIND(NULL, "RANK=2", "WORLD_SIZE=2", MASTER) == -1 &&
	       says("RANK=2 but WORLD_SIZE=2: ranks are 0 to 1"));
	EXPECT(FIND(NULL, "RANK=0") == -1 &&
	       says("RANK is set but WORLD_SIZE is not: the number of ranks is unknown"));
	EXPECT(FIND(NULL, "RANK=0", "WORLD_SIZE=2", "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=2") == 1);
	EXPECT(FIND(NULL, "RANK=0", "WORLD_SIZE=2", "LOCAL_RANK=1", MASTER) == 1);
	EXPECT(FIND(NULL, "RANK=0", "WORLD_SIZE=2", "LOCAL_RANK=2", MASTER) == -1 &&
	       says("LOCAL_RANK=2 and local ranks=-1 are inconsistent with 2 ranks"));
	EXPECT(FIND(NULL, "RANK=0", "WORLD_SIZE=3", "LOCAL_RANK=2", "LOCAL_WORLD_SIZE=2") == -1 &&
	       says("LOCAL_RANK=2 and LOCAL_WORLD_SIZE=2 are inconsistent with 3 ranks"));
	EXPECT(FIND(NULL, "RANK=0", "WORLD_SIZE=2", "LOCAL_WORLD_SIZE=3") == -1 &&
	       says("local rank=-1 and LOCAL_WORLD_SIZE=3 are inconsistent with 2 ranks"));
	EXPECT(FIND(NULL, "RANK=0", "WORLD_SIZE=2", "LOCAL_WORLD_SIZE=0") == -1 &&
	       says("LOCAL_WORLD_SIZE=0: expected a number from 1 to 65536"));
	EXPECT(FIND(NULL, "RANK=0", "WORLD_SIZE=2", MASTER, "MASTER_PORT=65527") == 1 &&
	       place.port == 65528);
	EXPECT(FIND(NULL, "RANK=0", "WORLD_SIZE=2", MASTER, "MASTER_PORT=65528") == 1 &&
	       place.port == 65520);
	EXPECT(FIND(NULL, "RANK=0", "WORLD_SIZE=2", MASTER, "MASTER_PORT=0") == -1 &&
	       says("MASTER_PORT=0: expected a number from 1 to 65535"));
	EXPECT(FIND(NULL, "PMIX_RANK=1", "WORLD_SIZE=2", "LOCAL_WORLD_SIZE=2") == 1 &&
	       is_place("mpirun", 1, 2, -1, 2) && place.is_own_file);
}

static void test_long_texts(void)
{
	char set[5000], text[5000];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	EXPECT(FIND(text, "RANK=0", "WORLD_SIZE=2") == -1 && says("--meet: file name is too long"));
	EXPECT(FIND("", "RANK=0", "WORLD_SIZE=2") == -1 && says("--meet: file name is empty"));
	text_format(set, sizeof(set), "TMPDIR=%.4990s", text);
	EXPECT(FIND(NULL, "RANK=0", "WORLD_SIZE=2", "LOCAL_WORLD_SIZE=2", set) == -1 &&
	       says("TMPDIR=xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx... is too long"));
	text_format(set, sizeof(set), "MASTER_ADDR=%.4980s", text);
	EXPECT(FIND(NULL, "RANK=0", "WORLD_SIZE=2", set) == -1 &&
	       says("MASTER_ADDR=xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx... is too long"));
	EXPECT_THAT("a name with a colon is a file if it has a slash",
		    FIND("/a:b", "RANK=0", "WORLD_SIZE=2") == 1 && strcmp(place.file, "/a:b") == 0);
	EXPECT(first_is("0123456789012345678901234567890", "0123456789012345678901234567890") &&
	       first_is("01234567890123456789012345678901", NULL));
	EXPECT(first_is("a[012345678901234567890123456789]", "a012345678901234567890123456789") &&
	       first_is("a[0123456789012345678901234567890]", NULL));
	EXPECT(first_is("a!", "a!") && first_is("a\037", NULL) && first_is("[x]", NULL));
}

static void test_task_lists(void)
{
	static const struct {
		const char *list;
		int node, tasks;
	} cases[] = { { "4,3", 0, 4 },		{ "4,3", 1, 3 },	 { "4,3", 2, -1 },
		      { "4(x2", 1, 4 },		{ "4(x2", 2, -1 },	 { "4(y2),3", 0, 4 },
		      { "4(y2),3", 1, -1 },	{ "4(x2)5", 2, -1 },	 { "4(x2),", 2, -1 },
		      { "9(x3),5(x2)", 2, 9 },	{ "9(x3),5(x2)", 3, 5 }, { "9(x3),5(x2)", 4, 5 },
		      { "9(x3),5(x2)", 5, -1 }, { "/", 0, -1 },		 { ":", 0, -1 } };
	static const struct {
		const char *list;
		int local_ranks;
	} slurm[] = { { "8,12", 12 }, { "8,13", -1 }, { "8,2", 2 },
		      { "8,1", -1 },  { "8,0", -1 },  { "8", -1 } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		EXPECT_EQUAL(bench_place_tasks(cases[i].list, cases[i].node), cases[i].tasks);
	for (size_t i = 0; i < sizeof(slurm) / sizeof(slurm[0]); i++) {
		char set[64];

		text_format(set, sizeof(set), "SLURM_TASKS_PER_NODE=%s", slurm[i].list);
		EXPECT(FIND(NULL, SLURM, set) == 1);
		EXPECT_EQUAL(place.local_ranks, slurm[i].local_ranks);
	}
	EXPECT(FIND(NULL, "SLURM_STEPID=2", "SLURM_PROCID=1", "SLURM_NTASKS=2", "SLURM_NODEID=x") ==
		       -1 &&
	       says("SLURM_NODEID=x: expected a number from 0 to 65536"));
	EXPECT(FIND(NULL, "SLURM_STEPID=2", "SLURM_PROCID=1", "SLURM_NTASKS=2", "SLURM_LOCALID=1",
		    "SLURM_NODEID=0", "SLURM_TASKS_PER_NODE=2", "SLURM_NODELIST=a") == 1 &&
	       is_place("srun", 1, 2, 1, 2) && strcmp(place.address, "a") == 0);
}

/* All ranks of a job have one token and one file, other jobs others. */
static void test_tokens(void)
{
	static const char *const others[] = { "MASTER_ADDR=b", "SLURM_JOB_ID=a", "PBS_JOBID=a",
					      "LSB_JOBID=a" };
	char wanted[200];
	uint64_t token;

	EXPECT(FIND("h:1", "RANK=0", "WORLD_SIZE=2", MASTER) == 1);
	token = place.token;
	EXPECT(FIND("h:1", "RANK=1", "WORLD_SIZE=2", MASTER) == 1 && place.token == token);
	EXPECT(FIND("h:2", "RANK=1", "WORLD_SIZE=2", MASTER) == 1 && place.token != token);
	EXPECT(FIND("h:1", "RANK=1", "WORLD_SIZE=3", MASTER) == 1 && place.token != token);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		EXPECT(FIND("h:1", "RANK=1", "WORLD_SIZE=2", others[i]) == 1);
		EXPECT_THAT(others[i], place.token != token);
	}
	EXPECT(FIND("h:1", "RANK=1", "WORLD_SIZE=2", "PBS_JOBID=a") == 1);
	token = place.token;
	EXPECT_THAT("the name of a variable counts, too",
		    FIND("h:1", "RANK=1", "WORLD_SIZE=2", "LSB_JOBID=a") == 1 &&
			    place.token != token);
	EXPECT(FIND(NULL, "PMI_RANK=1", "PMI_SIZE=2", "PMI_LOCAL_SIZE=2", "PMI_JOBID=77",
		    "TMPDIR=/x") == 1);
	text_format(wanted, sizeof(wanted), "/x/ringside-bench-%ld/%016llx", (long)geteuid(),
		    (unsigned long long)hash_word(hash_bytes("77", 2), 1));
	EXPECT(strcmp(place.file, wanted) == 0);
	EXPECT(FIND(NULL, "PMI_RANK=1", "PMI_SIZE=2", "PMI_LOCAL_SIZE=2", "TMPDIR=/x") == 1);
	text_format(wanted, sizeof(wanted), "/x/ringside-bench-%ld/%016llx", (long)geteuid(),
		    (unsigned long long)hash_word(hash_bytes("", 0), (uint64_t)getppid()));
	EXPECT_THAT("without a name of the job, that of the launcher's process",
		    strcmp(place.file, wanted) == 0);
}

static void test_cleaning(void)
{
	char base[] = "/tmp/ringside-test-XXXXXX", problem_of[200];

	EXPECT(mkdtemp(base) != NULL);
	bench_place_init(&place);
	place.is_own_file = true;
	text_format(place.file, sizeof(place.file), "%s/private/meet", base);
	EXPECT(bench_place_prepare(&place, problem, sizeof(problem)) == 0);
	place.rank = 1;
	bench_place_clean(&place);
	EXPECT_THAT("another rank leaves it", rmdir(base) == -1);
	place.rank = 0;
	place.is_own_file = false;
	bench_place_clean(&place);
	EXPECT_THAT("a directory of the user stays", rmdir(base) == -1);
	place.is_own_file = true;
	bench_place_clean(&place);
	text_format(place.file, sizeof(place.file), "%s/none/private/meet", base);
	EXPECT(bench_place_prepare(&place, problem, sizeof(problem)) == -1);
	text_format(problem_of, sizeof(problem_of),
		    "cannot create %s/none/private for the rendezvous: No such file or directory",
		    base);
	EXPECT(says(problem_of));
	EXPECT_THAT("nothing is left", rmdir(base) == 0);
}

int main(void)
{
	test_number_limits();
	test_long_texts();
	test_task_lists();
	test_tokens();
	test_cleaning();
	test_torchrun();
	test_mpirun();
	test_srun();
	test_node_lists();
	test_contradictions();
	test_directory();
	return tap_done();
}
