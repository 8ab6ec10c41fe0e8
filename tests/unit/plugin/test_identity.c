#include "plugin/process_info.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/attributes.h"
#include "common/order.h"
#include "tests/tap.h"
#include "tests/unit/plugin/gpu_play.h"

static const char *const launchers[] = {
	"RANK",
	"SLURM_PROCID",
	"OMPI_COMM_WORLD_RANK",
	"PMI_RANK",
	"PMIX_RANK",
	"LOCAL_RANK",
	"SLURM_LOCALID",
	"OMPI_COMM_WORLD_LOCAL_RANK",
	"WORLD_SIZE",
	"SLURM_NTASKS",
	"OMPI_COMM_WORLD_SIZE",
	"PMI_SIZE",
	"MPI_LOCALRANKID",
	"SLURM_JOB_ID",
	"SLURM_JOBID",
	"TORCHELASTIC_RUN_ID",
	"PBS_JOBID",
	"LSB_JOBID",
	"JOB_ID",
	"POD_NAME",
	"POD_NAMESPACE",
	"KUBERNETES_SERVICE_HOST",
};

static struct identity identity_with(const char *name, const char *value, const char *job)
{
	struct identity identity;

	if (name != NULL)
		setenv(name, value, 1);
	identity_read(&identity, job);
	for (size_t i = 0; i < ARRAY_LENGTH(launchers); i++)
		unsetenv(launchers[i]);
	return identity;
}

static void the_process_is_known(void)
{
	struct identity identity = identity_with(NULL, NULL, "");
	char path[64], host[256] = "", exe[256] = "";
	unsigned long long start = 0;
	struct stat st;
	FILE *stat_file;

	gethostname(host, sizeof(host) - 1);
	EXPECT_EQUAL(identity.pid, getpid());
	EXPECT(strcmp(identity.host, host) == 0);
	EXPECT_EQUAL(strlen(identity.boot_id), 36);
	snprintf(path, sizeof(path), "/proc/%d/ns/pid", getpid());
	if (stat(path, &st) == 0)
		EXPECT_EQUAL(identity.pid_namespace, st.st_ino);
	/* The name of this test has no blanks, so sscanf can count the fields. */
	stat_file = fopen("/proc/self/stat", "re");
	EXPECT(stat_file != NULL &&
	       fscanf(stat_file,
		      "%*d %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
		      "%*s %*s %llu",
		      &start) == 1);
	EXPECT_EQUAL(identity.start_ticks, start);
	if (stat_file != NULL)
		fclose(stat_file);
	EXPECT(readlink("/proc/self/exe", exe, sizeof(exe) - 1) > 0 &&
	       strcmp(identity.exe, exe) == 0);
}

static void launchers_tell_job_and_rank(void)
{
	EXPECT(strcmp(identity_with(NULL, NULL, "").job, "local") == 0);
	EXPECT(strcmp(identity_with(NULL, NULL, "").rank, "x") == 0);
	EXPECT(strcmp(identity_with("SLURM_JOB_ID", "42", "").job, "42") == 0);
	EXPECT(strcmp(identity_with("SLURM_JOB_ID", "42", "mine").job, "mine") == 0);
	EXPECT_THAT("torchrun's \"none\" means no id",
		    strcmp(identity_with("TORCHELASTIC_RUN_ID", "none", "").job, "local") == 0);
	EXPECT(strcmp(identity_with("RANK", "7", "").rank, "7") == 0);
	EXPECT(strcmp(identity_with("PMI_RANK", "8", "").rank, "8") == 0);
	setenv("SLURM_PROCID", "1", 1);
	EXPECT_THAT("torchrun's rank takes precedence over Slurm's",
		    strcmp(identity_with("RANK", "9", "").rank, "9") == 0);
	EXPECT(strcmp(identity_with("SLURM_LOCALID", "3", "").local_rank, "3") == 0);
	EXPECT(strcmp(identity_with("WORLD_SIZE", "64", "").world_size, "64") == 0);
	EXPECT_THAT("no line breaks", strcmp(identity_with("JOB_ID", "a\nb", "").job, "a?b") == 0);
}

static bool is_job_of_pod(const char *pod, const char *job)
{
	setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1", 1);
	setenv("POD_NAMESPACE", "team-a", 1);
	return strcmp(identity_with("POD_NAME", pod, "").job, job) == 0;
}

static void pods_tell_job_and_namespace(void)
{
	EXPECT_THAT("a PyTorchJob", is_job_of_pod("llama-7b-worker-12", "team-a/llama-7b"));
	EXPECT(is_job_of_pod("llama-master-0", "team-a/llama"));
	EXPECT_THAT("a job that is named like a role",
		    is_job_of_pod("a-worker-1-worker-0", "team-a/a-worker-1"));
	EXPECT_THAT("a TrainJob", is_job_of_pod("llama-node-0-3", "team-a/llama"));
	EXPECT_THAT("other pods give no name", is_job_of_pod("llama-5d9c7-x2x9z", "local") &&
						       is_job_of_pod("llama-worker-", "local") &&
						       is_job_of_pod("-worker-3", "local") &&
						       is_job_of_pod("llama-worker-3x", "local"));
	setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1", 1);
	setenv("POD_NAME", "llama-worker-0", 1);
	EXPECT_THAT("what a launcher sets counts more",
		    strcmp(identity_with("TORCHELASTIC_RUN_ID", "77", "").job, "77") == 0);
	EXPECT_THAT("outside Kubernetes a pod's name means nothing",
		    strcmp(identity_with("POD_NAME", "llama-worker-0", "").job, "local") == 0);
	EXPECT(strcmp(identity_with("POD_NAMESPACE", "team-a", "").pod_namespace, "team-a") == 0);
	EXPECT(strcmp(identity_with(NULL, NULL, "").pod_namespace, "") == 0);
}

static void names_are_copied_with_care(void)
{
	long page = sysconf(_SC_PAGESIZE);
	char *memory = mmap(NULL, (size_t)page * 2, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct comm_info info = { 0 };
	char longest[300];

	identity_comm_name(&info, "tensor-parallel");
	EXPECT(strcmp(info.name, "tensor-parallel") == 0 && info.flags == 0);
	info = (struct comm_info){ 0 };
	identity_comm_name(&info, NULL);
	EXPECT(info.name[0] == '\0' && info.flags == 0);
	memset(longest, 'n', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	identity_comm_name(&info, longest);
	EXPECT(strlen(info.name) == sizeof(info.name) - 1 && info.flags == COMM_FLAG_NAME_CUT);
	info = (struct comm_info){ 0 };
	identity_comm_name(&info, (const char *)16);
	EXPECT_THAT("an invalid pointer",
		    info.name[0] == '\0' && info.flags == COMM_FLAG_NAME_LOST);
	/* A name across the boundary of two pages, wherever that is in it. */
	for (long before = 1; before < 14; before++) {
		memcpy(memory + page - before, "data-parallel", 14);
		info = (struct comm_info){ 0 };
		identity_comm_name(&info, memory + page - before);
		EXPECT(strcmp(info.name, "data-parallel") == 0 && info.flags == 0);
	}
	/* A name at the very end of readable memory, with and without its terminator. */
	mprotect(memory + page, (size_t)page, PROT_NONE);
	memcpy(memory + page - 4, "end", 4);
	info = (struct comm_info){ 0 };
	identity_comm_name(&info, memory + page - 4);
	EXPECT(strcmp(info.name, "end") == 0 && info.flags == 0);
	memory[page - 1] = '!';
	info = (struct comm_info){ 0 };
	identity_comm_name(&info, memory + page - 4);
	EXPECT(info.name[0] == '\0' && info.flags == COMM_FLAG_NAME_LOST);
	munmap(memory, (size_t)page * 2);
}

/* ---- a process that closed its standard streams, and prints all the same ---------------------- */

static uint32_t is_noisy;

static void *make_noise(void *unused)
{
	(void)unused;
	while (load_relaxed(&is_noisy))
		for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
			if (write(fd, "noise", 5) == -1)
				errno = 0;
	return NULL;
}

/* Like a sandbox: this one call returns EPERM. */
static bool forbid_vm_reads(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_process_vm_readv, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { ARRAY_LENGTH(filter), filter };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

enum { CANNOT_FORBID = 9 };

/* A child that hangs is killed and fails; so does one that dies of SIGPIPE. */
static int read_names_amid_noise(bool without_vm)
{
	pthread_t thread;
	bool is_fine = true;

	alarm(60);
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		close(fd);
	if (without_vm && !forbid_vm_reads())
		return CANNOT_FORBID;
	is_noisy = 1;
	if (pthread_create(&thread, NULL, make_noise, NULL) != 0)
		return 3;
	for (int i = 0; i < (TAP_IS_SLOW ? 2000 : 20000); i++) {
		struct comm_info info = { 0 };

		identity_comm_name(&info, "tensor-parallel");
		is_fine &= strcmp(info.name, "tensor-parallel") == 0 && info.flags == 0;
	}
	store_relaxed(&is_noisy, 0);
	pthread_join(thread, NULL);
	return is_fine ? 0 : 1;
}

static void names_are_read_while_others_print(bool without_vm, const char *sentence)
{
	int status = 0;
	pid_t child;

#ifdef __SANITIZE_THREAD__
	/*
	 * The thread sanitizer reports writing to a descriptor that another thread opens, which is
	 * the point here.
	 */
	EXPECT_THAT("amid noise # SKIP under the thread sanitizer", true);
	return;
#endif
	fflush(stdout);
	child = fork();
	if (child == 0)
		_exit(read_names_amid_noise(without_vm));
	waitpid(child, &status, 0);
	if (WIFEXITED(status) && WEXITSTATUS(status) == CANNOT_FORBID)
		EXPECT_THAT("in a sandbox # SKIP no seccomp filters here", true);
	else if (!EXPECT_THAT(sentence, status == 0))
		printf("# status 0x%x\n", (unsigned int)status);
}

/*
 * All of the above once more, in a child that may not read its own memory; only its result counts.
 */
static void names_are_copied_in_a_sandbox(void)
{
	int status = 0;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (child == 0) {
		if (freopen("/dev/null", "w", stdout) == NULL || !forbid_vm_reads())
			_exit(CANNOT_FORBID);
		names_are_copied_with_care();
		_exit(tap_failed != 0);
	}
	waitpid(child, &status, 0);
	if (WIFEXITED(status) && WEXITSTATUS(status) == CANNOT_FORBID)
		EXPECT_THAT("in a sandbox # SKIP no seccomp filters here", true);
	else
		EXPECT_THAT("names are copied safely in a sandbox", status == 0);
}

static void without_cuda_there_is_no_gpu(void)
{
	struct comm_info info = { .gpu = 5 };

	identity_gpu(&info);
	EXPECT(info.gpu == -1 && info.gpu_uuid[0] == '\0' && info.gpu_bus[0] == '\0');
}

static void a_gpu_is_known_by_number_bus_and_uuid(void)
{
	static const struct {
		const char *failing, *bus, *uuid;
		int device, gpu;
	} cases[] = {
		{ "", "0000:01:00.0", "GPU-fafafafa-fafa-fafa-fafa-fafafafafa00", 0, 0 },
		{ "", "0000:0C:00.0", "GPU-fafafafa-fafa-fafa-fafa-fafafafafa0b", 11, 11 },
		{ "cuDeviceGetPCIBusId:0", "", "GPU-fafafafa-fafa-fafa-fafa-fafafafafa00", 0, 0 },
		{ "cuDeviceGetUuid:0", "0000:01:00.0", "", 0, 0 },
		{ "cuCtxGetDevice:0", "", "", 0, -1 },
	};
	void *library;
	struct comm_info info;

	setenv("FAKE_GPUS", "12", 1);
	library = gpu_play_library();
	info = (struct comm_info){ .gpu = 5 };
	identity_gpu(&info);
	EXPECT_THAT("without a context there is none", info.gpu == -1);
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		unsetenv("FAKE_CUDA_FAIL");
		EXPECT(gpu_play_use(library, cases[i].device));
		setenv("FAKE_CUDA_FAIL", cases[i].failing, 1);
		info = (struct comm_info){ .gpu = 5 };
		identity_gpu(&info);
		EXPECT_EQUAL(info.gpu, cases[i].gpu);
		EXPECT_THAT(info.gpu_bus, strcmp(info.gpu_bus, cases[i].bus) == 0);
		EXPECT_THAT(info.gpu_uuid, strcmp(info.gpu_uuid, cases[i].uuid) == 0);
	}
	unsetenv("FAKE_CUDA_FAIL");
}

int main(void)
{
	identity_with(NULL, NULL, "");
	the_process_is_known();
	launchers_tell_job_and_rank();
	pods_tell_job_and_namespace();
	names_are_copied_with_care();
	names_are_copied_in_a_sandbox();
	names_are_read_while_others_print(false, "closed streams, and another thread prints");
	names_are_read_while_others_print(true, "the same in a sandbox");
	without_cuda_there_is_no_gpu();
	a_gpu_is_known_by_number_bus_and_uuid();
	return tap_done();
}
