/* Start and end of the recorder and of each communicator. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "common/file.h"
#include "common/hash.h"
#include "common/text.h"
#include "plugin/abi_common.h"
#include "plugin/process_info.h"
#include "plugin/threads.h"

/*
 * Writing can raise a signal that would kill the job: SIGPIPE if stderr is a pipe without a reader,
 * SIGXFSZ if a file would exceed the process's limit. Between these two functions the calling
 * thread blocks such signals, and those raised by our own writes are discarded. Only in init and at
 * exit.
 */

struct quiet {
	sigset_t before;  /* the thread's mask */
	sigset_t pending; /* signals pending before are not ours to discard */
};

static void fill_quiet_set(sigset_t *ours)
{
	sigemptyset(ours);
	sigaddset(ours, SIGPIPE);
	sigaddset(ours, SIGXFSZ);
}

static void quiet_begin(struct quiet *quiet)
{
	sigset_t ours;

	fill_quiet_set(&ours);
	sigemptyset(&quiet->pending);
	sigpending(&quiet->pending);
	pthread_sigmask(SIG_BLOCK, &ours, &quiet->before);
}

static void quiet_end(const struct quiet *quiet)
{
	const struct timespec at_once = { 0, 0 };
	sigset_t ours, found;

	fill_quiet_set(&ours);
	if (sigismember(&quiet->pending, SIGPIPE))
		sigdelset(&ours, SIGPIPE);
	if (sigismember(&quiet->pending, SIGXFSZ))
		sigdelset(&ours, SIGXFSZ);
	/* Each signal is pending at most once. */
	sigemptyset(&found);
	sigpending(&found);
	if (sigismember(&found, SIGPIPE) || sigismember(&found, SIGXFSZ))
		while (sigtimedwait(&ours, NULL, &at_once) > 0)
			continue;
	pthread_sigmask(SIG_SETMASK, &quiet->before, NULL);
}

/*
 * Slots of the table of communicators are reused, starting with the communicator that ended first.
 * What the last owner left in shared tables is cleared, but its totals stay. Only in init, by one
 * thread at a time.
 */

static void forget_peers(uint32_t id)
{
	for (uint32_t i = 0; i < recorder.region.peer_count; i++)
		if (load_relaxed(&recorder.region.peers[i].key) >> 34 == id) {
			store_relaxed(&recorder.region.peers[i].count, 0);
			store_release(&recorder.region.peers[i].key, SLOT_FORGOTTEN);
		}
}

/* Add words [0, count) of one slot to another; late children may still add to the first. */
static void move_sums(uint64_t *to, uint64_t *from, size_t count)
{
	for (size_t i = 0; i < count; i++)
		add_relaxed(&to[i], swap_relaxed(&from[i], 0));
}

static void forget_links(uint32_t id)
{
	struct region_link *links = recorder.region.links;

	for (uint32_t i = 1; i < recorder.region.link_count; i++) {
		if (load_relaxed(&links[i].key) >> 34 != id)
			continue;
		move_sums(&links[0].proxies, &links[i].proxies,
			  offsetof(struct region_link, wire_ns) / 8 - 1);
		/* Of several links it would say nothing. */
		store_relaxed(&links[i].wire_ns, 0);
		store_relaxed(&recorder.wires[i].transfers, 0);
		store_release(&links[i].key, SLOT_FORGOTTEN);
	}
}

static void forget_totals(uint32_t id)
{
	for (uint32_t i = 1; i < recorder.region.total_count; i++) {
		struct region_total *from = &recorder.region.totals[i], *to;
		uint64_t key = load_relaxed(&from->key);

		if (key >> 40 != (id & 0xffffff) || key <= SLOT_FORGOTTEN)
			continue;
		to = record_total_find(key & UINT64_C(0xffffffffff));
		to = to != NULL ? to : &recorder.region.totals[0];
		if (load_relaxed(&from->max_ns) > load_relaxed(&to->max_ns))
			store_relaxed(&to->max_ns, from->max_ns);
		store_relaxed(&from->max_ns, 0);
		move_sums(&to->count, &from->count, sizeof(*from) / 8 - 1);
		store_release(&from->key, SLOT_FORGOTTEN);
	}
}

/* Make room in shared tables after a communicator that is gone; its totals stay. */
static void forget_comm(uint32_t id)
{
	forget_peers(id);
	forget_totals(id);
	forget_links(id);
}

/* A free slot, else that of the communicator that ended first. comm_count: none. */
static uint32_t choose_comm_slot(bool must_be_saved)
{
	uint32_t best = recorder.region.comm_count;

	for (uint32_t i = 0; i < recorder.region.comm_count; i++) {
		const struct region_comm *comm = &recorder.region.comms[i];

		if (!region_slot_is_used(comm->word))
			return i;
		if (!(comm->word & COMM_ENDED) ||
		    (must_be_saved && !(trace_thread_has_comm(i, comm->info.id) &&
					inspector_has_comm(i, comm->info.id))))
			continue;
		if (best == recorder.region.comm_count ||
		    comm->info.finalize_ns < recorder.region.comms[best].info.finalize_ns)
			best = i;
	}
	return best;
}

/*
 * Files should have everything about a communicator before its slot is reused. If the disk prevents
 * that, recording the new one's operations matters more than the description of the old one. If
 * all are open, there is nothing to wait for.
 */
static uint32_t take_comm_slot(void)
{
	uint32_t slot = choose_comm_slot(true), unsaved;

	if (slot != recorder.region.comm_count)
		return slot;
	unsaved = choose_comm_slot(false);
	if (unsaved == recorder.region.comm_count)
		return unsaved;
	trace_thread_save_comms();
	inspector_save_comms();
	slot = choose_comm_slot(true);
	return slot != recorder.region.comm_count ? slot : unsaved;
}

/* Start with what other communicators learned about the clock of the same GPU. */
static void inherit_gpu_offset(struct comm_info *info)
{
	for (uint32_t i = 0; i < recorder.region.comm_count && info->gpu_uuid[0] != '\0'; i++) {
		const struct comm_info *other = &recorder.region.comms[i].info;
		uint64_t at = load_relaxed(&other->gpu_offset_at_ns);

		if (at > info->gpu_offset_at_ns && strcmp(other->gpu_uuid, info->gpu_uuid) == 0) {
			info->gpu_offset_ns = load_relaxed(&other->gpu_offset_ns);
			info->gpu_offset_at_ns = at;
		}
	}
}

static void fill_comm(struct region_comm *comm, const struct comm_start *start, int mask)
{
	struct region_comm made = { .word = comm->word };
	uint32_t generation = REGION_GENERATION(made.word);

	/*
	 * R3: no reader may take the old owner's half-overwritten description for a whole one.
	 * Pairs with the acquire fence in every copy of the slot.
	 */
	if (region_slot_is_used(made.word))
		store_relaxed(&comm->word, (uint64_t)(generation + 1) << 32);
	fence_release();
	made.info.id = (uint32_t)++recorder.region.header->comms_made;
	made.info.interface = start->interface;
	made.info.hash = start->hash;
	made.info.rank = start->rank;
	made.info.nranks = start->nranks > 0 ? start->nranks : 0;
	made.info.nnodes = start->nnodes > 0 ? start->nnodes : 0;
	made.info.init_ns = recorder_now();
	made.info.mask = (uint32_t)mask;
	identity_comm_name(&made.info, start->name);
	identity_gpu(&made.info);
	inherit_gpu_offset(&made.info);
	words_copy(&comm->reserved, &made.reserved, sizeof(made) / sizeof(uint64_t) - 1);
	/* Pairs with the acquire in the trace thread. */
	store_release(&comm->word, (uint64_t)((generation + 1) | 1) << 32);
}

/* Children of the slot's last owner may still arrive: they follow `shared`, which never changes. */
static void begin_comm_state(struct comm_state *state, uint32_t slot, int mask, int nnodes)
{
	struct comm_state fresh = {
		.expects_kernels = mask & ABI_KERNEL_CH,
		.expects_proxies = mask & ABI_PROXY_OP && nnodes != 1,
		.live_hint = slot * 16,
	};

	words_copy((uint64_t *)(void *)state + 1, (uint64_t *)(void *)&fresh + 1,
		   sizeof(fresh) / sizeof(uint64_t) - 1);
}

/*
 * The context for NCCL. If all slots are in use, it is one that no callback takes for a
 * communicator.
 */
static void *comm_begin(const struct comm_start *start, const struct mask_choice *choice)
{
	uint32_t slot = take_comm_slot();
	struct region_comm *comm;

	if (slot == recorder.region.comm_count)
		return handle_make(HANDLE_CONTEXT, 0, slot, 0);
	comm = &recorder.region.comms[slot];
	if (comm->info.id != 0) {
		forget_comm(comm->info.id);
		/* A stop that arrived while the last owner ended may have kept a slot. */
		hot_proxy_forget(&recorder.comms[slot]);
	}
	begin_comm_state(&recorder.comms[slot], slot, choice->mask, start->nnodes);
	fill_comm(comm, start, choice->mask);
	if (choice->times == TIMES_AUTO || choice->times == TIMES_ALL)
		times_comm_begin(&recorder.comms[slot], choice->times == TIMES_ALL, choice->graphs);
	return handle_make(HANDLE_CONTEXT, REGION_GENERATION(comm->word), slot, 0);
}

/*
 * The first communicator sets up the process, each communicator gets a slot, and the exit flushes.
 * Here, and in everything called from here, the plugin may allocate, lock and make system calls.
 */

enum { REGION_MS = 60, REGION_MS_WITH_GROUP = 30, SAY_MS = 10 };

struct recorder recorder;

static struct {
	pthread_mutex_t lock;
	bool is_done; /* tried once, whatever the result */
	bool is_logged;
	bool is_guarded; /* fork handlers are installed */
	bool is_forked;
	struct clock_sample early;
	struct trace_place place;
} setup = { .lock = PTHREAD_MUTEX_INITIALIZER };

static struct process_info process;

/*
 * A forked child has the parent's memory but not its threads, so it must not write to the region.
 * If nothing was set up yet, nothing is shared.
 */
static void after_fork_in_child(void)
{
	/* Another thread may have held it. */
	pthread_mutex_init(&setup.lock, NULL);
	if (!setup.is_done)
		return;
	store_relaxed(&recorder.is_on, 0);
	setup.is_forked = true;
	region_leave_to_parent(&recorder.region);
}

/* As early as possible: the longer the time since then, the better the counter's rate is known. */
__attribute__((constructor)) static void begin_process(void)
{
	setup.early = clock_sample_take();
	setup.is_guarded = pthread_atfork(NULL, NULL, after_fork_in_child) == 0;
}

/*
 * Lines for the user: in the region (ringside verify shows them), and on stderr at the end of init.
 */
static void note_messages(const char *lines)
{
	text_append(process.messages, sizeof(process.messages), "%s", lines);
}

/* One write, so that lines of different ranks do not mix. The job does not wait for a full pipe. */
static void say_notes(void)
{
	if (process.messages[0] != '\0')
		own_thread_say_for(process.messages, SAY_MS);
}

/* What channels and transfers did: for the trace file and for Inspector's verbose lines. */
static bool wants_details(void)
{
	const struct inspector_settings *inspector = &process.settings.inspector;

	return process.settings.mode == REGION_MODE_FULL ||
	       (inspector->is_on && inspector->is_verbose && !inspector->is_prom);
}

struct region_task {
	char dir[448];
	struct region_request request;
	struct region_writer writer;
	enum status status;
};

static void create_region(void *data)
{
	struct region_task *task = data;

	task->status = region_create(&task->writer, &task->request);
}

static void drop_region(void *data)
{
	struct region_task *task = data;

	region_discard(&task->writer);
	free(task);
}

/* RINGSIDE_SHM can be a disk, or a server that is gone. */
static bool make_region_elsewhere(const struct region_request *request)
{
	static const struct own_work work = { "ringside-region", create_region, drop_region };
	struct region_task *task = calloc(1, sizeof(*task));
	struct region_request without = *request;
	bool is_made;

	if (task == NULL)
		return false;
	task->request = *request;
	task->request.dir = task->dir;
	text_copy(task->dir, sizeof(task->dir), request->dir);
	/* Looking up the group has used a part of the time that init may wait. */
	if (!own_thread_try(&work, task,
			    settings_variable("RINGSIDE_GROUP") != NULL ? REGION_MS_WITH_GROUP
									: REGION_MS)) {
		without.why_not = "the file system does not answer";
		return region_create(&recorder.region, &without) == OK;
	}
	is_made = task->status == OK;
	recorder.region = task->writer;
	free(task);
	return is_made;
}

static bool make_region(void)
{
	const struct settings *settings = &process.settings;
	const struct identity *identity = &process.identity;
	bool has_ring = settings->mode != REGION_MODE_PROFILE || settings->inspector.is_on;
	bool is_full = wants_details();
	char dir[448];
	struct region_request request = {
		.dir = dir,
		.pid = identity->pid,
		.start_ticks = identity->start_ticks,
		.pid_namespace = identity->pid_namespace,
		.ring_bytes = has_ring ? settings->buffer >> is_full : 0,
		.detail_bytes = is_full ? settings->buffer >> 1 : 0,
		.group = settings->group,
	};

	text_format(dir, sizeof(dir), "%s/ringside-%u", settings->shm, (unsigned int)geteuid());
	file_make_absolute(dir, sizeof(dir));
	/* /dev/shm is memory and never blocks. */
	if (strcmp(settings->shm, SETTINGS_SHM) == 0 || settings_is_memory(dir))
		return region_create(&recorder.region, &request) == OK;
	return make_region_elsewhere(&request);
}

/* Without a trace file, nothing of it can ever be read. */
static void note_private_region(void)
{
	char line[512];

	if (recorder.region.kind != REGION_KIND_PRIVATE)
		return;
	text_format(line, sizeof(line),
		    "ringside: no memory can be shared (%s); other processes cannot read this "
		    "recording, only a trace file\n",
		    recorder.region.reason);
	note_messages(line);
}

static bool make_private_tables(void)
{
	size_t comms = recorder.region.comm_count * sizeof(*recorder.comms);
	size_t groups = GROUPS * sizeof(*recorder.groups);
	/* These pages are never touched if each communicator has one proxy thread. */
	size_t others = recorder.region.live_count * sizeof(*recorder.others);
	size_t nexts = recorder.region.live_count * sizeof(*recorder.timed_next);
	size_t wires = recorder.region.link_count * sizeof(*recorder.wires);
	char *memory = mmap(NULL, comms + groups + others + nexts + wires, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return false;
	recorder.comms = (void *)memory;
	recorder.groups = (void *)(memory + comms);
	recorder.others = (void *)(memory + comms + groups);
	recorder.timed_next = (void *)(memory + comms + groups + others);
	recorder.wires = (void *)(memory + comms + groups + others + nexts);
	for (uint32_t i = 0; i < recorder.region.comm_count; i++)
		recorder.comms[i].shared = &recorder.region.comms[i];
	return true;
}

/* Leaves "" if no trace is wanted or possible; in the latter case a message says why. */
static void choose_trace(void)
{
	char line[1024];

	if (process.settings.mode < REGION_MODE_TRACE)
		return;
	if (trace_place_choose(&setup.place, &process.settings, &process.identity) == OK) {
		trace_place_path(process.trace, sizeof(process.trace), &setup.place, 0);
		return;
	}
	text_format(
		line, sizeof(line),
		"ringside: RINGSIDE_DIR=%.200s is not a usable path (%%h host, %%p pid, %%r rank, "
		"%%j job); recording without a trace file\n",
		process.settings.dir);
	note_messages(line);
	process.settings.mode = REGION_MODE_FLIGHT;
}

/* Records still go through the region but not to a file. */
static void go_without_trace(void)
{
	process.settings.mode = REGION_MODE_FLIGHT;
	process.trace[0] = '\0';
	recorder.is_full = wants_details();
	recorder.region.header->mode = REGION_MODE_FLIGHT;
	process_info_write(&process);
}

static void rename_trace(const char *path)
{
	text_copy(process.trace, sizeof(process.trace), path);
	process_info_write(&process);
}

/* Must come last: from now on the thread reads what the region says about the process. */
static void start_trace(void)
{
	char line[1024];
	enum status status;

	if (process.trace[0] == '\0')
		return;
	status = trace_thread_start(&setup.place, process.settings.quota, rename_trace);
	if (status == OK)
		return;
	trace_thread_explain(line, sizeof(line), process.trace, status, errno);
	note_messages(line);
	go_without_trace();
}

/* Replaces NCCL Inspector if its variables ask for that. */
static void start_inspector(void)
{
	char line[1024];
	enum status status;

	if (!process.settings.inspector.is_on)
		return;
	status = inspector_start(&process.settings, &process.identity);
	if (status == OK)
		return;
	text_format(line, sizeof(line),
		    "ringside: NCCL_INSPECTOR_ENABLE: cannot write to %.600s (%s); "
		    "no Inspector files will be written\n",
		    process.settings.inspector.dir,
		    status == ERR_SYSTEM ? strerror(errno) : status_text(status));
	note_messages(line);
	process.settings.inspector.is_on = false;
	recorder.is_full = wants_details();
	process_info_write(&process);
}

static uint64_t make_salt(void)
{
	uint64_t salt = 0;

	if (getrandom(&salt, sizeof(salt), GRND_NONBLOCK) != (ssize_t)sizeof(salt))
		salt = hash_word(setup.early.ticks,
				 process.identity.pid ^ process.identity.start_ticks);
	return salt | 1;
}

static void fill_header(void)
{
	struct region_header *header = recorder.region.header;

	text_copy(header->boot_id, sizeof(header->boot_id), process.identity.boot_id);
	header->mode = process.settings.mode;
	header->interface = process.interface;
	header->mask = (uint32_t)process.choice.mask;
	header->clock = recorder.clock;
	header->first_anchor = clock_anchor_take(&recorder.clock);
	header->last_anchor = header->first_anchor;
}

/* Only a region that outlives its process needs it. */
static void start_heartbeat(void)
{
	uint64_t *period_ns = &process.settings.heartbeat_ns;

	if (recorder.region.kind != REGION_KIND_SHM &&
	    recorder.region.kind != REGION_KIND_SHM_SMALL)
		*period_ns = 0;
	if (*period_ns != 0 && own_thread_heartbeat(*period_ns) != OK)
		*period_ns = 0;
}

/* Any failure here leaves the recorder off and does not affect the job. */
static void begin_recording(unsigned int interface)
{
	process.interface = interface;
	settings_read(&process.settings);
	note_messages(process.settings.complaints);
	if (process.settings.is_disabled)
		return;
	identity_read(&process.identity, process.settings.job);
	if (!process.settings.is_environment_off)
		environment_read(&process.environment);
	process.choice = mask_choose(interface, &process.settings, mask_free_shm_bytes());
	recorder.salt = make_salt();
	recorder.pid = (int32_t)getpid();
	if (!make_region() || !make_private_tables()) {
		note_messages("ringside: out of memory; not recording\n");
		return;
	}
	note_private_region();
	choose_trace();
	clock_source_init(&recorder.clock, setup.early);
	fill_header();
	if (setup.is_guarded)
		start_heartbeat();
	process_info_write(&process);
	recorder.is_full = wants_details();
	if (!setup.is_guarded)
		return;
	start_inspector();
	start_trace();
	region_publish(&recorder.region);
	store_release(&recorder.is_on, 1);
}

/*
 * Once per process. It blocks for at most 100 ms in total:
 *
 *	the name of a group (RINGSIDE_GROUP)  40 ms  system libraries may ask a server
 *	a region not in /dev/shm              60 ms  RINGSIDE_SHM may be a disk; falls back to memory
 *	the trace file                        20 ms  then it comes later or not at all (trace_thread.c)
 *	lines for the user                    10 ms  then the reader of stderr gets them later
 *
 * Each of these runs in a thread of our own (threads.h). All other file access is to memory and
 * answers at once: /proc/self (status, environment, links), /proc/sys, /dev/shm, and getcwd.
 * Inspector's files are created by its thread.
 */
static void set_up_process(unsigned int interface)
{
	setup.is_done = true;
	begin_recording(interface);
	say_notes();
}

/* Another copy of NCCL in this process may use a different version. */
static struct mask_choice choice_for(unsigned int interface)
{
	if (interface == recorder.region.header->interface)
		return process.choice;
	return mask_choose(interface, &process.settings, mask_free_shm_bytes());
}

/* A thread that is cancelled meanwhile would keep the lock: that waits. */
static int lock_setup(void)
{
	int before;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	pthread_mutex_lock(&setup.lock);
	return before;
}

static void unlock_setup(int before)
{
	pthread_mutex_unlock(&setup.lock);
	pthread_setcancelstate(before, NULL);
}

void setup_comm(void **context, int *mask, const struct comm_start *start)
{
	int saved_errno = errno;
	void *made = handle_ignored();
	struct mask_choice choice;
	struct quiet quiet;
	int wanted = 0, cancelled;

	cancelled = lock_setup();
	if (!setup.is_done) {
		quiet_begin(&quiet);
		set_up_process(start->interface);
		quiet_end(&quiet);
	}
	if (load_relaxed(&recorder.is_on)) {
		choice = choice_for(start->interface);
		wanted = choice.mask;
		made = comm_begin(start, &choice);
		if (start->log != NULL && !setup.is_logged) {
			setup.is_logged = true;
			process_info_log(&process, start);
		}
	}
	unlock_setup(cancelled);
	if (context != NULL)
		*context = made;
	if (mask != NULL)
		store_relaxed(mask, wanted);
	errno = saved_errno;
}

/* Retire everything that is open: no more events will come. 0: of all communicators. */
static void retire_all(uint32_t comm_id)
{
	for (uint32_t i = 0; i < recorder.region.live_count; i++) {
		struct region_live *live = &recorder.region.live[i];
		uint64_t word = load_acquire(&live->word);

		if (region_slot_is_used(word) && !(word & LIVE_RETIRING) &&
		    (comm_id == 0 || load_relaxed(&live->op.comm) == comm_id))
			live_retire(live, REGION_GENERATION(word) & HANDLE_GENERATION_MASK, true);
	}
}

void setup_comm_end(void *context)
{
	int saved_errno = errno, cancelled;
	struct comm_state *comm;

	if (!load_relaxed(&recorder.is_on))
		return;
	cancelled = lock_setup();
	comm = hot_comm(context);
	if (comm != NULL) {
		times_comm_end(comm);
		retire_all(comm->shared->info.id);
		hot_proxy_forget(comm);
		store_relaxed(&comm->shared->info.finalize_ns, recorder_now());
		or_relaxed(&comm->shared->info.flags, COMM_FLAG_FINALIZED);
		/* From now on its context is unknown. */
		store_release(&comm->shared->word, comm->shared->word | COMM_ENDED);
	}
	unlock_setup(cancelled);
	errno = saved_errno;
}

/* NCCL's threads may still call at exit: recording stops, nothing is freed. */
__attribute__((destructor)) static void end_process(void)
{
	struct clock_anchor anchor;
	struct quiet quiet;

	/* The pid, because some ways to fork run no handlers. */
	if (setup.is_forked || !load_relaxed(&recorder.is_on) || getpid() != recorder.pid)
		return;
	quiet_begin(&quiet);
	store_relaxed(&recorder.is_over, 1);
	store_relaxed(&recorder.is_on, 0);
	retire_all(0);
	anchor = clock_anchor_take(&recorder.clock);
	store_relaxed(&recorder.region.header->last_anchor.clock_ns, anchor.clock_ns);
	store_relaxed(&recorder.region.header->last_anchor.wall_ns, anchor.wall_ns);
	trace_thread_finish();
	inspector_finish();
	store_release(&recorder.region.header->ended_ns, recorder_now());
	quiet_end(&quiet);
}
