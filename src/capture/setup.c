/*
 * Beginning and end: the first communicator sets the process up, each gets a slot, the exit flushes.
 * Here, and only here, the plugin may allocate, lock and talk to the system.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "abi/abi_common.h"
#include "base/hash.h"
#include "base/text.h"
#include "capture/drain.h"
#include "capture/identity.h"
#include "capture/mask.h"
#include "capture/recorder.h"
#include "capture/settings.h"
#include "op/op_names.h"

struct recorder recorder;

static struct {
	pthread_mutex_t lock;
	bool is_done; /* tried once, whatever came of it */
	bool is_logged;
	bool is_forked;
	struct clock_sample early;
	struct settings settings;
	struct identity identity;
	struct mask_choice choice;
	char trace[768];
} setup = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* As early as possible: the longer ago, the better the counter's rate is known. */
__attribute__((constructor)) static void take_early_sample(void)
{
	setup.early = clock_sample_take();
}

/* A child has the parent's memory and none of its threads: it must not write into the region. */
static void after_fork_in_child(void)
{
	store_relaxed(&recorder.is_on, 0);
	setup.is_forked = true;
}

static void say(const char *lines)
{
	size_t length = strlen(lines);

	/* One write, so that ranks do not mix; when stderr is gone there is nobody to tell. */
	if (length > 0 && write(STDERR_FILENO, lines, length) == -1)
		errno = 0;
}

static bool make_region(void)
{
	const struct settings *settings = &setup.settings;
	const struct identity *identity = &setup.identity;
	bool has_ring = settings->mode != REGION_MODE_PROFILE;
	bool is_full = settings->mode == REGION_MODE_FULL;
	char dir[320];
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
	return region_create(&recorder.region, &request) == OK;
}

static bool make_private_tables(void)
{
	size_t comms = recorder.region.comm_count * sizeof(*recorder.comms);
	size_t groups = GROUPS * sizeof(*recorder.groups);
	char *memory = mmap(NULL, comms + groups, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return false;
	recorder.comms = (void *)memory;
	recorder.groups = (void *)(memory + comms);
	for (uint32_t i = 0; i < recorder.region.comm_count; i++)
		recorder.comms[i].shared = &recorder.region.comms[i];
	return true;
}

/* One "key=value" line; line breaks in a value become blanks. */
static void add_info(const char *key, const char *value)
{
	uint64_t *used = &recorder.region.header->info_bytes;
	char line[1024];
	size_t length;

	text_format(line, sizeof(line) - 1, "%s=%s", key, value);
	for (char *at = line; *at != '\0'; at++)
		if (*at == '\n' || *at == '\r')
			*at = ' ';
	length = strlen(line);
	line[length++] = '\n';
	if (*used + length > REGION_INFO_BYTES)
		return;
	memcpy(recorder.region.info + *used, line, length);
	*used += length;
}

static void add_info_number(const char *key, uint64_t value)
{
	char text[24];

	text_format(text, sizeof(text), "%llu", (unsigned long long)value);
	add_info(key, text);
}

static void add_info_labels(void)
{
	char list[sizeof(setup.settings.labels)], key[128], *at = list, *pair;

	text_copy(list, sizeof(list), setup.settings.labels);
	while ((pair = strsep(&at, ",")) != NULL) {
		char *equals = strchr(pair, '=');

		if (equals == NULL)
			continue;
		*equals = '\0';
		text_format(key, sizeof(key), "label.%s", pair);
		add_info(key, equals + 1);
	}
}

static const char *region_kind_name(enum region_kind kind)
{
	switch (kind) {
	case REGION_KIND_SHM:
		return "shm";
	case REGION_KIND_SHM_SMALL:
		return "shm-small";
	case REGION_KIND_MEMFD:
		return "memfd";
	default:
		return "private";
	}
}

static void write_info(unsigned int interface)
{
	const struct identity *identity = &setup.identity;

	add_info("host", identity->host);
	add_info("boot_id", identity->boot_id);
	add_info_number("pid", identity->pid);
	add_info_number("pid_namespace", identity->pid_namespace);
	add_info_number("start_ticks", identity->start_ticks);
	add_info_number("uid", geteuid());
	add_info("exe", identity->exe);
	add_info("job", identity->job);
	add_info("rank", identity->rank);
	add_info("local_rank", identity->local_rank);
	add_info("world_size", identity->world_size);
	add_info("version", RINGSIDE_VERSION);
	add_info("mode", op_mode_name(setup.settings.mode));
	add_info_number("interface", interface);
	add_info("region", recorder.region.path);
	add_info("region_kind", region_kind_name(recorder.region.kind));
	add_info("region_reason", recorder.region.reason);
	add_info("trace", setup.trace);
	add_info_number("buffer", setup.settings.buffer);
	add_info_number("quota", setup.settings.quota);
	add_info("kernel_events", setup.choice.has_kernel ? "on" : "off");
	add_info("kernel_events_reason", setup.choice.kernel_reason);
	add_info_number("events", (uint64_t)setup.choice.mask);
	add_info_number("started_wall_ns", recorder.region.header->first_anchor.wall_ns);
	add_info_labels();
}

/* mkdir -p; what exists is left as it is. */
static bool make_directories(char *path)
{
	for (char *at = path + 1; *at != '\0'; at++) {
		if (*at != '/')
			continue;
		*at = '\0';
		mkdir(path, 0700);
		*at = '/';
	}
	return mkdir(path, setup.settings.group == (gid_t)-1 ? 0700 : 0750) == 0 || errno == EEXIST;
}

/* Where the trace goes, or "" with a line that says why not. */
static void choose_trace_path(void)
{
	const struct identity *identity = &setup.identity;
	struct text_names names = { identity->host, identity->job, identity->rank,
				    (int64_t)identity->pid };
	char dir[512], line[1024];

	setup.trace[0] = '\0';
	if (setup.settings.mode < REGION_MODE_TRACE)
		return;
	if (text_expand(dir, sizeof(dir), setup.settings.dir, &names) != OK) {
		text_format(line, sizeof(line),
			    "ringside: RINGSIDE_DIR=%.200s is no usable path (%%h host, %%p pid, "
			    "%%r rank, "
			    "%%j job); recording without trace file\n",
			    setup.settings.dir);
		say(line);
		setup.settings.mode = REGION_MODE_FLIGHT;
		return;
	}
	make_directories(dir);
	text_format(setup.trace, sizeof(setup.trace), "%s/r%s-%.200s-%llu-%llu.ringside", dir,
		    identity->rank, identity->host, (unsigned long long)identity->pid,
		    (unsigned long long)identity->start_ticks);
}

/* An absolute path: readers may stand elsewhere. */
static void make_trace_path_absolute(void)
{
	char here[512], path[768];

	if (setup.trace[0] == '\0' || setup.trace[0] == '/' || getcwd(here, sizeof(here)) == NULL)
		return;
	if (text_format(path, sizeof(path), "%s/%s", here, setup.trace))
		text_copy(setup.trace, sizeof(setup.trace), path);
}

static void start_trace(void)
{
	unsigned int mode = setup.settings.group == (gid_t)-1 ? 0600 : 0640;
	char line[1024];
	enum status status;

	if (setup.trace[0] == '\0')
		return;
	status = drain_start(setup.trace, mode, setup.settings.quota);
	if (status == OK)
		return;
	text_format(line, sizeof(line),
		    "ringside: %.700s cannot be written (%s); recording without trace file\n",
		    setup.trace, status == ERR_SYSTEM ? strerror(errno) : status_text(status));
	say(line);
	/* Every record still passes the region; none reaches a file. */
	recorder.region.header->mode = REGION_MODE_FLIGHT;
}

static uint64_t make_salt(void)
{
	uint64_t salt = 0;

	if (getrandom(&salt, sizeof(salt), GRND_NONBLOCK) != (ssize_t)sizeof(salt))
		salt = hash_word(setup.early.ticks,
				 setup.identity.pid ^ setup.identity.start_ticks);
	return salt | 1;
}

static void fill_header(unsigned int interface)
{
	struct region_header *header = recorder.region.header;

	text_copy(header->boot_id, sizeof(header->boot_id), setup.identity.boot_id);
	header->mode = setup.settings.mode;
	header->interface = interface;
	header->mask = (uint32_t)setup.choice.mask;
	header->clock = recorder.clock;
	header->first_anchor = clock_anchor_take(&recorder.clock);
	header->last_anchor = header->first_anchor;
}

/* Once in a process. Whatever fails here leaves the recorder off and the job alone. */
static void set_up_process(unsigned int interface)
{
	setup.is_done = true;
	settings_read(&setup.settings);
	say(setup.settings.complaints);
	if (setup.settings.is_disabled)
		return;
	identity_read(&setup.identity, setup.settings.job);
	setup.choice = mask_choose(interface, &setup.settings);
	recorder.salt = make_salt();
	recorder.pid = (int32_t)getpid();
	if (!make_region() || !make_private_tables()) {
		say("ringside: no memory to record into; not recording\n");
		return;
	}
	choose_trace_path();
	make_trace_path_absolute();
	clock_source_init(&recorder.clock, setup.early);
	fill_header(interface);
	write_info(interface);
	recorder.is_full = setup.settings.mode == REGION_MODE_FULL;
	if (pthread_atfork(NULL, NULL, after_fork_in_child) != 0)
		return;
	start_trace();
	region_publish(&recorder.region);
	store_release(&recorder.is_on, 1);
}

static void log_settings(const struct comm_start *start)
{
	if (start->log == NULL || setup.is_logged)
		return;
	setup.is_logged = true;
	start->log(ABI_LOG_INFO, ABI_LOG_SUBSYSTEM_INIT | ABI_LOG_SUBSYSTEM_PROFILE, "ringside", 0,
		   "Ringside %s: mode %s, region %s (%s%s%s), trace %s, kernel events %s (%s), "
		   "events 0x%x, job %s",
		   RINGSIDE_VERSION, op_mode_name(recorder.region.header->mode),
		   recorder.region.path[0] != '\0' ? recorder.region.path : "none",
		   region_kind_name(recorder.region.kind),
		   recorder.region.reason[0] != '\0' ? ": " : "", recorder.region.reason,
		   setup.trace[0] != '\0' ? setup.trace : "none",
		   setup.choice.has_kernel ? "on" : "off", setup.choice.kernel_reason,
		   (unsigned int)setup.choice.mask, setup.identity.job);
}

/* What a communicator that is gone left in shared tables makes room, but its sums stay. */
static void forget_comm(uint32_t id)
{
	for (uint32_t i = 0; i < recorder.region.peer_count; i++)
		if (load_relaxed(&recorder.region.peers[i].key) >> 34 == id) {
			store_relaxed(&recorder.region.peers[i].count, 0);
			store_release(&recorder.region.peers[i].key, SLOT_FORGOTTEN);
		}
	for (uint32_t i = 1; i < recorder.region.total_count; i++) {
		struct region_total *from = &recorder.region.totals[i], *to;
		uint64_t key = load_relaxed(&from->key);
		uint64_t *source = &from->count, *target;

		if (key >> 40 != (id & 0xffffff) || key <= SLOT_FORGOTTEN)
			continue;
		to = record_total_find(key & UINT64_C(0xffffffffff));
		target = to != NULL ? &to->count : &recorder.region.totals[0].count;
		for (size_t word = 0; word < sizeof(*from) / 8 - 1; word++) {
			add_relaxed(&target[word], load_relaxed(&source[word]));
			store_relaxed(&source[word], 0);
		}
		store_release(&from->key, SLOT_FORGOTTEN);
	}
}

/* A free slot, else that of the communicator that ended first. comm_count: none. */
static uint32_t choose_comm_slot(void)
{
	uint32_t best = recorder.region.comm_count;

	for (uint32_t i = 0; i < recorder.region.comm_count; i++) {
		const struct region_comm *comm = &recorder.region.comms[i];

		if (!region_slot_is_used(comm->word))
			return i;
		if (!(comm->word & COMM_ENDED) || !drain_has_comm(i, comm->info.id))
			continue;
		if (best == recorder.region.comm_count ||
		    comm->info.finalize_ns < recorder.region.comms[best].info.finalize_ns)
			best = i;
	}
	return best;
}

static void fill_comm(struct region_comm *comm, const struct comm_start *start, int mask)
{
	uint64_t word = comm->word;

	memset((char *)comm + sizeof(comm->word), 0, sizeof(*comm) - sizeof(comm->word));
	comm->info.id = (uint32_t)++recorder.region.header->comms_made;
	comm->info.interface = start->interface;
	comm->info.hash = start->hash;
	comm->info.rank = start->rank;
	comm->info.nranks = start->nranks;
	comm->info.nnodes = start->nnodes;
	comm->info.init_ns = recorder_now();
	comm->info.mask = (uint32_t)mask;
	identity_comm_name(&comm->info, start->name);
	identity_gpu(&comm->info);
	/* Pairs with the acquire in the trace thread. */
	store_release(&comm->word, (uint64_t)((REGION_GENERATION(word) + 1) | 1) << 32);
}

static void *begin_comm(const struct comm_start *start, int mask)
{
	uint32_t slot = choose_comm_slot();
	struct region_comm *comm;
	struct comm_state *state;

	if (slot == recorder.region.comm_count)
		return handle_make(HANDLE_CONTEXT, 0, slot, 0);
	comm = &recorder.region.comms[slot];
	if (comm->info.id != 0)
		forget_comm(comm->info.id);
	state = &recorder.comms[slot];
	*state = (struct comm_state){ .shared = comm };
	state->live_hint = slot * 16;
	state->proxy_hint = slot * 64;
	state->expects_children = mask & ABI_KERNEL_CH || start->nnodes != 1;
	fill_comm(comm, start, mask);
	return handle_make(HANDLE_CONTEXT, REGION_GENERATION(comm->word), slot, 0);
}

void setup_comm(void **context, int *mask, const struct comm_start *start)
{
	int saved_errno = errno;
	void *made = handle_ignored();
	int wanted = 0;

	pthread_mutex_lock(&setup.lock);
	if (!setup.is_done)
		set_up_process(start->interface);
	if (load_relaxed(&recorder.is_on)) {
		/* Another copy of NCCL in this process may speak another version. */
		wanted =
			start->interface == recorder.region.header->interface ? setup.choice.mask
									      : mask_choose(
											start->interface,
											&setup.settings)
											.mask;
		made = begin_comm(start, wanted);
		log_settings(start);
	}
	pthread_mutex_unlock(&setup.lock);
	if (context != NULL)
		*context = made;
	if (mask != NULL)
		store_relaxed(mask, wanted);
	errno = saved_errno;
}

/* Nothing more comes of these: what is open is abandoned. 0: of all communicators. */
static void retire_all(uint32_t comm_id)
{
	for (uint32_t i = 0; i < recorder.region.live_count; i++) {
		struct region_live *live = &recorder.region.live[i];
		uint64_t word = load_acquire(&live->word);

		if (region_slot_is_used(word) && !(word & LIVE_RETIRING) &&
		    (comm_id == 0 || live->op.comm == comm_id))
			live_retire(live, REGION_GENERATION(word) & HANDLE_GENERATION_MASK, true);
	}
}

void setup_comm_end(void *context)
{
	int saved_errno = errno;
	struct comm_state *comm;

	if (!load_relaxed(&recorder.is_on))
		return;
	pthread_mutex_lock(&setup.lock);
	comm = hot_comm(context);
	if (comm != NULL) {
		retire_all(comm->shared->info.id);
		store_relaxed(&comm->shared->info.finalize_ns, recorder_now());
		or_relaxed(&comm->shared->info.flags, COMM_FLAG_FINALIZED);
		/* Its context is unknown from now on. */
		store_release(&comm->shared->word, comm->shared->word | COMM_ENDED);
	}
	pthread_mutex_unlock(&setup.lock);
	errno = saved_errno;
}

/* At exit NCCL's threads may still call: recording goes off, nothing is freed. */
__attribute__((destructor)) static void end_process(void)
{
	struct clock_anchor anchor;

	if (setup.is_forked || !load_relaxed(&recorder.is_on))
		return;
	store_relaxed(&recorder.is_over, 1);
	store_relaxed(&recorder.is_on, 0);
	retire_all(0);
	anchor = clock_anchor_take(&recorder.clock);
	store_relaxed(&recorder.region.header->last_anchor.clock_ns, anchor.clock_ns);
	store_relaxed(&recorder.region.header->last_anchor.wall_ns, anchor.wall_ns);
	drain_finish();
	store_release(&recorder.region.header->ended_ns, recorder_now());
}
