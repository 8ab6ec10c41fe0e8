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
#include "capture/environment.h"
#include "capture/identity.h"
#include "capture/inspector_thread.h"
#include "capture/mask.h"
#include "capture/quiet.h"
#include "capture/recorder.h"
#include "capture/settings.h"
#include "op/op_names.h"

struct recorder recorder;

static struct {
	pthread_mutex_t lock;
	bool is_done; /* tried once, whatever came of it */
	bool is_logged;
	bool is_guarded; /* forks are noticed */
	bool is_forked;
	struct clock_sample early;
	struct settings settings;
	struct identity identity;
	struct environment environment;
	struct mask_choice choice;
	char trace[1000];
} setup = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* A child has the parent's memory and none of its threads: it must not write into the region. When
 * nothing was set up yet, nothing is shared. */
static void after_fork_in_child(void)
{
	/* Another thread may have held it. */
	pthread_mutex_init(&setup.lock, NULL);
	if (!setup.is_done)
		return;
	store_relaxed(&recorder.is_on, 0);
	setup.is_forked = true;
}

/* As early as possible: the longer ago, the better the counter's rate is known. */
__attribute__((constructor)) static void begin_process(void)
{
	setup.early = clock_sample_take();
	setup.is_guarded = pthread_atfork(NULL, NULL, after_fork_in_child) == 0;
}

static void say(const char *lines)
{
	size_t length = strlen(lines);

	/* One write, so that ranks do not mix; when stderr is gone there is nobody to tell. */
	if (length > 0 && write(STDERR_FILENO, lines, length) == -1)
		errno = 0;
}

/* Readers may stand elsewhere. */
static void make_absolute(char *path, size_t size)
{
	char here[512], whole[1024];

	if (path[0] == '\0' || path[0] == '/' || getcwd(here, sizeof(here)) == NULL)
		return;
	if (text_format(whole, sizeof(whole), "%s/%s", here, path) && strlen(whole) < size)
		text_copy(path, size, whole);
}

/* What channels and transfers did: for the trace file, and for Inspector's verbose lines. */
static bool wants_details(void)
{
	const struct inspector_settings *inspector = &setup.settings.inspector;

	return setup.settings.mode == REGION_MODE_FULL ||
	       (inspector->is_on && inspector->is_verbose && !inspector->is_prom);
}

static bool make_region(void)
{
	const struct settings *settings = &setup.settings;
	const struct identity *identity = &setup.identity;
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
	make_absolute(dir, sizeof(dir));
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

/* Whole lines only, with room left for the last one: how many are missing. */
static void add_info_environment(void)
{
	uint64_t *used = &recorder.region.header->info_bytes;
	const char *at = setup.environment.text, *end = at + setup.environment.bytes, *stop;
	unsigned int left_out = setup.environment.left_out;

	while (at < end && (stop = memchr(at, '\n', (size_t)(end - at))) != NULL) {
		size_t length = (size_t)(stop + 1 - at);

		if (*used + length + sizeof("env_left_out=4294967295") > REGION_INFO_BYTES)
			left_out++;
		else {
			memcpy(recorder.region.info + *used, at, length);
			*used += length;
		}
		at += length;
	}
	if (left_out > 0)
		add_info_number("env_left_out", left_out);
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

	recorder.region.header->info_bytes = 0;
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
	if (setup.settings.inspector.is_on)
		add_info("inspector", setup.settings.inspector.dir);
	add_info_number("buffer", setup.settings.buffer);
	add_info_number("quota", setup.settings.quota);
	add_info("kernel_events", setup.choice.has_kernel ? "on" : "off");
	add_info("kernel_events_reason", setup.choice.kernel_reason);
	add_info_number("events", (uint64_t)setup.choice.mask);
	add_info_number("started_wall_ns", recorder.region.header->first_anchor.wall_ns);
	add_info_labels();
	add_info_environment();
}

/* What exists is left as it is. */
static void make_directory(const char *path, gid_t group)
{
	int fd;

	if (mkdir(path, 0700) == -1 || group == (gid_t)-1)
		return;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd == -1)
		return;
	if (fchown(fd, (uid_t)-1, group) == 0)
		fchmod(fd, 0750);
	close(fd);
}

/* mkdir -p. Whether it went well shows when the file is made. */
static void make_directories(char *path, gid_t group)
{
	for (char *at = path + 1; *at != '\0'; at++) {
		if (*at != '/')
			continue;
		*at = '\0';
		make_directory(path, group);
		*at = '/';
	}
	make_directory(path, group);
}

/* A name that is not taken: a program that replaced itself (exec) has still the same pid and start. */
static void choose_trace_name(const char *dir)
{
	const struct identity *identity = &setup.identity;
	struct stat st;
	char again[16] = "";

	for (int i = 1; i < 100; i++) {
		text_format(setup.trace, sizeof(setup.trace), "%s/r%s-%.200s-%llu-%llu%s.ringside",
			    dir, identity->rank, identity->host, (unsigned long long)identity->pid,
			    (unsigned long long)identity->start_ticks, again);
		if (lstat(setup.trace, &st) == -1)
			return;
		text_format(again, sizeof(again), "-%d", i);
	}
}

/* Where the trace goes, or "" with a line that says why not. */
static void choose_trace_path(void)
{
	const struct identity *identity = &setup.identity;
	struct text_names names = { identity->host, identity->job, identity->rank,
				    (int64_t)identity->pid };
	char dir[700], line[1024];

	setup.trace[0] = '\0';
	if (setup.settings.mode < REGION_MODE_TRACE)
		return;
	if (text_expand(dir, 512, setup.settings.dir, &names) != OK) {
		text_format(line, sizeof(line),
			    "ringside: RINGSIDE_DIR=%.200s is no usable path (%%h host, %%p pid, "
			    "%%r rank, %%j job); recording without trace file\n",
			    setup.settings.dir);
		say(line);
		setup.settings.mode = REGION_MODE_FLIGHT;
		return;
	}
	make_absolute(dir, sizeof(dir));
	make_directories(dir, setup.settings.group);
	choose_trace_name(dir);
}

/* Every record still passes the region; none reaches a file. */
static void go_without_trace(unsigned int interface)
{
	setup.settings.mode = REGION_MODE_FLIGHT;
	setup.trace[0] = '\0';
	recorder.is_full = wants_details();
	recorder.region.header->mode = REGION_MODE_FLIGHT;
	write_info(interface);
}

static void start_trace(unsigned int interface)
{
	char line[1024];
	enum status status;

	if (setup.trace[0] == '\0')
		return;
	status = drain_start(setup.trace, setup.settings.group, setup.settings.quota);
	if (status == OK)
		return;
	text_format(line, sizeof(line),
		    "ringside: %.700s cannot be written (%s); recording without trace file\n",
		    setup.trace, status == ERR_SYSTEM ? strerror(errno) : status_text(status));
	say(line);
	go_without_trace(interface);
}

/* In NCCL Inspector's place, when its variables say so. */
static void start_inspector(unsigned int interface)
{
	char line[1024];
	enum status status;

	if (!setup.settings.inspector.is_on)
		return;
	status = inspector_start(&setup.settings, &setup.identity);
	if (status == OK)
		return;
	text_format(line, sizeof(line),
		    "ringside: NCCL_INSPECTOR_ENABLE: nothing can be written to %.600s (%s); "
		    "recording without\n",
		    setup.settings.inspector.dir,
		    status == ERR_SYSTEM ? strerror(errno) : status_text(status));
	say(line);
	setup.settings.inspector.is_on = false;
	recorder.is_full = wants_details();
	write_info(interface);
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
	if (!setup.settings.is_environment_off)
		environment_read(&setup.environment);
	setup.choice = mask_choose(interface, &setup.settings, mask_free_shm_bytes());
	recorder.salt = make_salt();
	recorder.pid = (int32_t)getpid();
	if (!make_region() || !make_private_tables()) {
		say("ringside: no memory to record into; not recording\n");
		return;
	}
	choose_trace_path();
	clock_source_init(&recorder.clock, setup.early);
	fill_header(interface);
	write_info(interface);
	recorder.is_full = wants_details();
	if (!setup.is_guarded)
		return;
	start_trace(interface);
	start_inspector(interface);
	region_publish(&recorder.region);
	store_release(&recorder.is_on, 1);
}

static void log_settings(const struct comm_start *start)
{
	if (start->log == NULL || setup.is_logged)
		return;
	setup.is_logged = true;
	start->log(
		ABI_LOG_INFO, ABI_LOG_SUBSYSTEM_INIT | ABI_LOG_SUBSYSTEM_PROFILE, "ringside", 0,
		"Ringside %s: mode %s, region %s (%s%s%s), trace %s, buffer %llu KiB, quota %llu "
		"MiB, kernel events %s (%s), events 0x%x, job %s, Inspector's files in %s",
		RINGSIDE_VERSION, op_mode_name(recorder.region.header->mode),
		recorder.region.path[0] != '\0' ? recorder.region.path : "none",
		region_kind_name(recorder.region.kind),
		recorder.region.reason[0] != '\0' ? ": " : "", recorder.region.reason,
		setup.trace[0] != '\0' ? setup.trace : "none",
		(unsigned long long)setup.settings.buffer >> 10,
		(unsigned long long)setup.settings.quota >> 20,
		setup.choice.has_kernel ? "on" : "off", setup.choice.kernel_reason,
		(unsigned int)setup.choice.mask, setup.identity.job,
		setup.settings.inspector.is_on ? setup.settings.inspector.dir : "none");
}

static void forget_peers(uint32_t id)
{
	for (uint32_t i = 0; i < recorder.region.peer_count; i++)
		if (load_relaxed(&recorder.region.peers[i].key) >> 34 == id) {
			store_relaxed(&recorder.region.peers[i].count, 0);
			store_release(&recorder.region.peers[i].key, SLOT_FORGOTTEN);
		}
}

/* Words [0, count) of one slot are added to those of another; late ones may still come. */
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
		move_sums(&links[0].proxies, &links[i].proxies, sizeof(*links) / 8 - 1);
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

/* What a communicator that is gone left in shared tables makes room, but its sums stay. */
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
		    (must_be_saved &&
		     !(drain_has_comm(i, comm->info.id) && inspector_has_comm(i, comm->info.id))))
			continue;
		if (best == recorder.region.comm_count ||
		    comm->info.finalize_ns < recorder.region.comms[best].info.finalize_ns)
			best = i;
	}
	return best;
}

/* Files should know all of a communicator before its slot goes to another one. When the disk does not
 * let them, operations are worth more than a description. */
static uint32_t take_comm_slot(void)
{
	uint32_t slot = choose_comm_slot(true);

	if (slot == recorder.region.comm_count) {
		drain_save_comms();
		inspector_save_comms();
		slot = choose_comm_slot(true);
	}
	return slot != recorder.region.comm_count ? slot : choose_comm_slot(false);
}

/* What other communicators learned about the same GPU's clock is a start. */
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

	/* R3: nobody takes the old owner's description, half overwritten, for whole. Pairs with the
	 * acquire fence of whoever copies the slot. */
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

/* Children of the slot's last owner may still come by: they follow `shared`, which never changes. */
static void begin_comm_state(struct comm_state *state, uint32_t slot, bool expects_children)
{
	struct comm_state fresh = { .expects_children = expects_children, .live_hint = slot * 16 };

	words_copy((uint64_t *)(void *)state + 1, (uint64_t *)(void *)&fresh + 1,
		   sizeof(fresh) / sizeof(uint64_t) - 1);
}

static void *begin_comm(const struct comm_start *start, int mask)
{
	uint32_t slot = take_comm_slot();
	struct region_comm *comm;

	if (slot == recorder.region.comm_count)
		return handle_make(HANDLE_CONTEXT, 0, slot, 0);
	comm = &recorder.region.comms[slot];
	if (comm->info.id != 0) {
		forget_comm(comm->info.id);
		/* A stop that came while it ended may have kept a slot. */
		hot_proxy_forget(&recorder.comms[slot]);
	}
	begin_comm_state(&recorder.comms[slot], slot,
			 mask & ABI_KERNEL_CH || (mask & ABI_PROXY_OP && start->nnodes != 1));
	fill_comm(comm, start, mask);
	return handle_make(HANDLE_CONTEXT, REGION_GENERATION(comm->word), slot, 0);
}

/* Another copy of NCCL in this process may speak another version. */
static int mask_for(unsigned int interface)
{
	if (interface == recorder.region.header->interface)
		return setup.choice.mask;
	return mask_choose(interface, &setup.settings, mask_free_shm_bytes()).mask;
}

void setup_comm(void **context, int *mask, const struct comm_start *start)
{
	int saved_errno = errno;
	void *made = handle_ignored();
	struct quiet quiet;
	int wanted = 0;

	pthread_mutex_lock(&setup.lock);
	if (!setup.is_done) {
		quiet_begin(&quiet);
		set_up_process(start->interface);
		quiet_end(&quiet);
	}
	if (load_relaxed(&recorder.is_on)) {
		wanted = mask_for(start->interface);
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
		    (comm_id == 0 || load_relaxed(&live->op.comm) == comm_id))
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
		hot_proxy_forget(comm);
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
	struct quiet quiet;

	/* The pid: there are ways to fork that tell nobody. */
	if (setup.is_forked || !load_relaxed(&recorder.is_on) || getpid() != recorder.pid)
		return;
	quiet_begin(&quiet);
	store_relaxed(&recorder.is_over, 1);
	store_relaxed(&recorder.is_on, 0);
	retire_all(0);
	anchor = clock_anchor_take(&recorder.clock);
	store_relaxed(&recorder.region.header->last_anchor.clock_ns, anchor.clock_ns);
	store_relaxed(&recorder.region.header->last_anchor.wall_ns, anchor.wall_ns);
	drain_finish();
	inspector_finish();
	store_release(&recorder.region.header->ended_ns, recorder_now());
	quiet_end(&quiet);
}
