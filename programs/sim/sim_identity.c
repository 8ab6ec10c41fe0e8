#include "programs/sim/sim_identity.h"

#include "common/text.h"
#include "plugin/abi_common.h"
#include "programs/sim/sim_random.h"

#define DAY_NS (UINT64_C(86400) * 1000000000)
/* 2026-01-01: a job's wall clock starts there, so that the same seed gives the same bytes. */
#define EPOCH_NS (UINT64_C(1767225600) * 1000000000)

enum { GPU_AHEAD_NS = 220000, GPU_DRIFT_PPM = 8, INIT_NS = 150000000 };

enum identity_random {
	RANDOM_UPTIME = 0x100,
	RANDOM_WALL,
	RANDOM_GPU,
	RANDOM_DRIFT,
	RANDOM_PID,
	RANDOM_BOOT,
	RANDOM_UUID,
};

/* In [-range, range]. */
static int64_t either_way(uint64_t range, uint64_t seed, uint64_t what, uint64_t which)
{
	return (int64_t)sim_random_below(2 * range + 1, seed, what, which) - (int64_t)range;
}

static void set_clocks(struct sim_clocks *clocks, const struct sim_job *job, int node, int rank)
{
	uint64_t seed = job->options.seed, shift_ns = job->options.clock_shift_ns;

	clocks->clock_ns =
		DAY_NS + sim_random_below(30 * DAY_NS, seed, RANDOM_UPTIME, (uint64_t)node);
	clocks->wall_ns =
		EPOCH_NS + (uint64_t)either_way(shift_ns / 2, seed, RANDOM_WALL, (uint64_t)node);
	clocks->gpu_ns = clocks->wall_ns + GPU_AHEAD_NS +
			 (uint64_t)either_way(shift_ns / 2, seed, RANDOM_GPU, (uint64_t)rank);
	clocks->gpu_drift_ppm = either_way(GPU_DRIFT_PPM, seed, RANDOM_DRIFT, (uint64_t)rank);
}

void sim_identity_make(struct sim_identity *identity, const struct sim_job *job, int rank)
{
	uint64_t seed = job->options.seed;
	int node = sim_job_node(job, rank);
	uint64_t high = sim_random(seed, RANDOM_BOOT, (uint64_t)node * 2);
	uint64_t low = sim_random(seed, RANDOM_BOOT, (uint64_t)node * 2 + 1);

	*identity = (struct sim_identity){ .rank = rank, .local_rank = rank % job->options.gpus };
	set_clocks(&identity->clocks, job, node, rank);
	identity->pid = 2000 + (int64_t)sim_random_below(20000, seed, RANDOM_PID, (uint64_t)node) +
			3 * identity->local_rank;
	/* Ticks of 10 ms since the host started. */
	identity->start_ticks =
		identity->clocks.clock_ns / 10000000 + (uint64_t)identity->local_rank;
	text_format(identity->host, sizeof(identity->host), "node%04d", node);
	text_format(identity->boot_id, sizeof(identity->boot_id), "%08x-%04x-4%03x-8%03x-%012llx",
		    (unsigned int)(high >> 32), (unsigned int)(high >> 16 & 0xffff),
		    (unsigned int)(high & 0xfff), (unsigned int)(low >> 48 & 0xfff),
		    (unsigned long long)(low & UINT64_C(0xffffffffffff)));
}

static uint32_t mask_of(const struct sim_job *job)
{
	uint32_t mask = ABI_GROUP | ABI_COLL | ABI_P2P | ABI_PROXY_OP | ABI_PROXY_STEP;

	if (job->options.kernel == KERNEL_EVENTS_ON && job->interface >= 3)
		mask |= ABI_KERNEL_CH;
	if (job->interface >= 5)
		mask |= ABI_GROUP_API | ABI_COLL_API | ABI_P2P_API | ABI_KERNEL_LAUNCH;
	if (job->interface >= 6)
		mask |= ABI_CE_COLL;
	return mask;
}

/* That a process is stopped is seen from outside alone: such a job's files are as snapshots are, taken
 * when it was watched long enough. */
static void describe_state(const struct sim_identity *identity, const struct sim_job *job,
			   char *text, size_t size)
{
	const struct sim_options *options = &job->options;

	text[0] = '\0';
	if (sim_job_is_snapshot(job))
		text_format(text, size,
			    "snapshot_wall_ns=%llu\nsnapshot_operations=1000000000\n"
			    "snapshot_life=alive\nsnapshot_state=%c\n",
			    (unsigned long long)sim_wall(&identity->clocks, options->seconds_ns),
			    sim_job_fault(job, SIM_STOP, identity->rank, UINT64_MAX - 1) ? 'T'
											 : 'S');
}

bool sim_identity_text(const struct sim_identity *identity, const struct sim_job *job, char *text,
		       size_t size)
{
	const struct sim_options *options = &job->options;
	char file[96], snapshot[128];

	sim_identity_file(identity, file, sizeof(file));
	describe_state(identity, job, snapshot, sizeof(snapshot));
	return text_format(
		text, size,
		"host=%s\nboot_id=%s\npid=%lld\npid_namespace=4026531836\nstart_ticks=%llu\nuid="
		"1000\n"
		"exe=/usr/bin/python3\njob=sim-%llu\nrank=%d\nlocal_rank=%d\nworld_size=%d\n"
		"version=%s\nmode=%s\ninterface=%d\nregion=\nregion_kind=offline\n"
		"region_reason=written by a simulation\ntrace=%s\nbuffer=0\nquota=0\n"
		"kernel_events=%s\nkernel_events_reason=%s\nevents=%u\nstarted_wall_ns=%llu\n"
		"label.simulated=%s\n%s",
		identity->host, identity->boot_id, (long long)identity->pid,
		(unsigned long long)identity->start_ticks, (unsigned long long)options->seed,
		identity->rank, identity->local_rank, job->world, RINGSIDE_VERSION,
		options->is_full ? "full" : "trace", job->interface, file,
		kernel_events_name(options->kernel),
		options->is_kernel_said ? "asked for" : "default of this release", mask_of(job),
		(unsigned long long)sim_wall(&identity->clocks, INIT_NS),
		sim_workload_page(options->workload)->name, snapshot);
}

void sim_identity_comm(const struct sim_identity *identity, const struct sim_job *job, int role,
		       uint32_t id, struct comm_info *info)
{
	const struct sim_member *member = &job->members[identity->rank][role];
	const struct sim_comm *comm = &job->comms[member->comm];
	uint64_t seed = job->options.seed, rank = (uint64_t)identity->rank;
	uint64_t high = sim_random(seed, RANDOM_UUID, rank * 2);
	uint64_t low = sim_random(seed, RANDOM_UUID, rank * 2 + 1);

	*info = (struct comm_info){ .id = id,
				    .interface = (uint32_t)job->interface,
				    .hash = comm->hash,
				    .rank = member->rank,
				    .gpu = identity->local_rank,
				    .mask = mask_of(job),
				    .init_ns = sim_clock(&identity->clocks,
							 INIT_NS + id * UINT64_C(3000000)) };
	/* Before 2.27 NCCL tells neither sizes nor names. */
	if (job->interface >= 4) {
		info->nranks = comm->nranks;
		info->nnodes = comm->nnodes;
		text_copy(info->name, sizeof(info->name), comm->name);
	}
	text_format(info->gpu_uuid, sizeof(info->gpu_uuid), "GPU-%08x-%04x-4%03x-8%03x-%012llx",
		    (unsigned int)(high >> 32), (unsigned int)(high >> 16 & 0xffff),
		    (unsigned int)(high & 0xfff), (unsigned int)(low >> 48 & 0xfff),
		    (unsigned long long)(low & UINT64_C(0xffffffffffff)));
	text_format(info->gpu_bus, sizeof(info->gpu_bus), "0000:%02x:00.0",
		    0x1b + 0x10 * (unsigned int)identity->local_rank % 0xe0);
}

void sim_identity_file(const struct sim_identity *identity, char *name, size_t size)
{
	text_format(name, size, "r%d-%s-%lld-%llu.ringside", identity->rank, identity->host,
		    (long long)identity->pid, (unsigned long long)identity->start_ticks);
}
