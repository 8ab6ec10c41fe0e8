/* Summaries become jobs, and jobs in trouble are judged by the doctor. */
#include "hub/hub.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "common/attributes.h"
#include "common/clock.h"
#include "common/owned_name.h"
#include "common/text.h"
#include "doctor/live.h"
#include "import/json_scan.h"
#include "serve/serve.h"

#define JUDGE_TIME_NS UINT64_C(60000000000)
#define ALERT_NS UINT64_C(60000000000)	     /* an alert counts for this long */
#define ALERT_PAUSE_NS UINT64_C(30000000000) /* and causes at most one judgement in this long */
#define UPDATE_NS UINT64_C(200000000)
#define SNAPSHOT_TIME_NS UINT64_C(5000000000)
/* A check asks all agents of a job: about as many are asked per second, however many there are. */
#define CHECK_PER_AGENT_NS UINT64_C(60000000)
#define CHECK_MOST_NS UINT64_C(600000000000)

enum {
	DOCTOR_WORDS = 40, /* of its command line */
	CROWD = 8, /* jobs of an agent with more than this many get at most half of the table */
	JUDGE_PARALLEL = 256,
	JUDGE_SHARE = 10, /* judging a job takes at most a tenth of the time */
	JUDGE_EAGER = 4,  /* judgements without a verdict before the pause grows */
	DOCTOR_BYTES = 16 << 20,
	SLOW_WINDOWS = 3, /* windows before a rate is compared */
};

const char *hub_trouble_name(enum hub_trouble trouble)
{
	static const char *const names[] = { "none", "alert", "slow", "stuck" };

	return names[trouble];
}

const char *hub_judgement_name(enum hub_judgement judgement)
{
	static const char *const names[HUB_JUDGEMENTS] = { "not_judged", "healthy", "found",
							   "could_not_tell", "failed" };

	return names[judgement];
}

void hub_jobs_init(struct hub_jobs *jobs, const struct hub_options *options, const char *doctor)
{
	*jobs = (struct hub_jobs){ .options = options, .doctor = doctor };
}

static void job_free(struct hub_job *job)
{
	verdicts_release(&job->found);
	free(job);
}

void hub_jobs_release(struct hub_jobs *jobs)
{
	for (size_t i = 0; i < HUB_JUDGES; i++)
		child_release(&jobs->judges[i].child);
	for (size_t i = 0; i < jobs->count; i++)
		job_free(jobs->list[i]);
	free(jobs->list);
}

/* ---- the table ------------------------------------------------------------------------------- */

static size_t place_of(const struct hub_jobs *jobs, const char *key, bool *is_there)
{
	size_t low = 0, high = jobs->count;

	*is_there = false;
	while (low < high && !*is_there) {
		size_t middle = (low + high) / 2;
		int order = strcmp(jobs->list[middle]->key, key);

		*is_there = order == 0;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return high;
}

struct hub_job *hub_jobs_find(const struct hub_jobs *jobs, const char *key)
{
	bool is_there;
	size_t place = place_of(jobs, key, &is_there);

	return is_there ? jobs->list[place] : NULL;
}

static void make_key(char key[static HUB_JOB_KEY], const char *name, const struct hub_agent *agent)
{
	if (name[0] != '\0')
		text_copy(key, HUB_JOB_KEY, name);
	else
		text_format(key, HUB_JOB_KEY, " %.200s", agent->target.name);
}

static bool is_of_others(const struct hub_job *job, const struct hub_row *row)
{
	return job->owner >= 0 && row->owner >= 0 && job->owner != row->owner;
}

bool hub_job_is_row(const struct hub_job *job, const struct hub_agent *agent,
		    const struct hub_row *row)
{
	char key[HUB_JOB_KEY], own[HUB_JOB_KEY];

	if (is_of_others(job, row))
		return false;
	make_key(key, row->job, agent);
	owned_name_make(own, sizeof(own), key, row->owner);
	return strcmp(key, job->key) == 0 || strcmp(own, job->key) == 0;
}

/* No user has more than half of the table either, on however many nodes; but root, as which whole clusters run their jobs. */
static bool has_too_many(const struct hub_jobs *jobs, int64_t owner)
{
	size_t count = 0;

	if (owner <= 0 || jobs->options->is_any_owner || jobs->count < HUB_JOBS_MAX / 2)
		return false;
	for (size_t i = 0; i < jobs->count; i++)
		count += jobs->list[i]->owner == owner;
	return count >= HUB_JOBS_MAX / 2;
}

/* NULL: there are too many, or out of memory. */
static struct hub_job *job_of(struct hub_jobs *jobs, const struct hub_agent *agent,
			      const struct hub_row *row)
{
	size_t most = agent->summary.count > CROWD ? HUB_JOBS_MAX / 2 : HUB_JOBS_MAX, place;
	char key[HUB_JOB_KEY], own[HUB_JOB_KEY];
	bool is_there, is_second = false;
	struct hub_job *job;

	make_key(key, row->job, agent);
	place = place_of(jobs, key, &is_there);
	if (owned_name_is_taken(key, row->owner) ||
	    (is_there && is_of_others(jobs->list[place], row))) {
		is_second = true;
		owned_name_make(own, sizeof(own), key, row->owner);
		text_copy(key, sizeof(key), own);
		place = place_of(jobs, key, &is_there);
	}
	if (is_there) {
		if (jobs->list[place]->owner < 0 && !jobs->options->is_any_owner)
			jobs->list[place]->owner = row->owner;
		return jobs->list[place];
	}
	if (jobs->count >= most || has_too_many(jobs, row->owner) ||
	    !list_grow(&jobs->list, jobs->count, sizeof(struct hub_job *)) ||
	    (job = calloc(1, sizeof(*job))) == NULL)
		return NULL;
	memmove(jobs->list + place + 1, jobs->list + place,
		(jobs->count - place) * sizeof(struct hub_job *));
	jobs->list[place] = job;
	jobs->count++;
	text_copy(job->key, sizeof(job->key), key);
	text_copy(job->name, sizeof(job->name), is_second ? key : row->job);
	text_copy(job->base, sizeof(job->base), row->job);
	/* A job of nobody in particular has rows of anybody. */
	job->owner = jobs->options->is_any_owner ? -1 : row->owner;
	job->judge_ns = UINT64_MAX;
	job->is_crowded = true; /* until an agent with few jobs has it */
	verdicts_init(&job->found);
	return job;
}

/* ---- adding up ------------------------------------------------------------------------------- */

static void job_clear(struct hub_job *job)
{
	job->nodes = job->silent = job->ranks = job->processes = job->alive = 0;
	job->operations = job->stuck_ns = job->wait_ns = job->hang_after_ns = 0;
	job->verdicts = job->notices = 0;
	job->wait_share = 0;
	job->wait_known = 0;
	job->is_seen = false;
	job->shows_owner = false;
	job->is_crowded = true;
}

/* What a silent agent said last counts for the place of the job only, not for its state. */
static void job_add(struct hub_job *job, const struct hub_agent *agent, const struct hub_row *row,
		    uint64_t now_ns)
{
	job->nodes++;
	job->shows_owner |= row->shows_owner;
	job->ranks += row->ranks;
	job->processes += row->processes;
	job->is_seen = true;
	job->is_crowded &= agent->summary.count > CROWD;
	job->seen_ns = now_ns;
	if (row->world_size > job->world_size)
		job->world_size = row->world_size;
	if (row->hang_after_ns > job->hang_after_ns)
		job->hang_after_ns = row->hang_after_ns;
	job->operations += row->operations;
	job->wait_ns += row->wait_ns;
	if (agent->is_silent) {
		job->silent++;
		return;
	}
	job->alive += row->alive;
	if (row->stuck_ns > job->stuck_ns)
		job->stuck_ns = row->stuck_ns;
	if (isfinite(row->wait_share)) {
		job->wait_share += row->wait_share * row->processes;
		job->wait_known += row->processes;
	}
	job->verdicts |= row->verdicts;
	job->notices |= row->notices;
}

static void add_agent(struct hub_jobs *jobs, const struct hub_agent *agent, uint64_t now_ns)
{
	for (size_t i = 0; i < agent->summary.count; i++) {
		struct hub_job *job = job_of(jobs, agent, &agent->summary.rows[i]);

		if (job)
			job_add(job, agent, &agent->summary.rows[i], now_ns);
		else
			jobs->left_out++;
	}
	jobs->left_out += agent->summary.left_out;
}

/* ---- trouble --------------------------------------------------------------------------------- */

/* Compared with the slowest earlier window: a phase of the job that was slow before is no news. */
static void rate_take(struct hub_rate *rate, uint64_t operations, uint64_t now_ns)
{
	double per_s;

	if (rate->since_ns == 0 || operations < rate->operations) {
		*rate = (struct hub_rate){ .operations = operations, .since_ns = now_ns };
		return;
	}
	if (now_ns - rate->since_ns < HUB_RATE_NS)
		return;
	per_s = (double)(operations - rate->operations) * 1e9 / (double)(now_ns - rate->since_ns);
	rate->is_low = rate->windows >= SLOW_WINDOWS && per_s < rate->lowest * 2 / 3;
	/* The window before this one may have been the one in which it slowed down: it counts only now. */
	if (!rate->is_low && rate->windows > 0 && (rate->windows == 1 || rate->last < rate->lowest))
		rate->lowest = rate->last;
	rate->last = per_s;
	rate->windows++;
	rate->operations = operations;
	rate->since_ns = now_ns;
}

static uint64_t bits(unsigned int first, unsigned int last)
{
	return (UINT64_C(2) << last) - (UINT64_C(1) << first);
}

static enum hub_trouble trouble_of(const struct hub_job *job, uint64_t hang_ns, uint64_t now_ns)
{
	uint64_t hangs = bits(VERDICT_NEVER_ISSUED, VERDICT_STUCK);
	uint64_t slows = bits(VERDICT_SLOW_RANK, VERDICT_BELOW_EXPECTED);
	uint64_t at_once = bits(LIVE_HANG, LIVE_DEAD);

	if (job->alive == 0)
		return HUB_TROUBLE_NONE;
	if (job->stuck_ns >= hang_ns || job->verdicts & hangs || job->notices & at_once)
		return HUB_TROUBLE_STUCK;
	if (job->verdicts & slows || job->notices & bits(LIVE_STRAGGLER, LIVE_STRAGGLER) ||
	    job->rate.is_low)
		return HUB_TROUBLE_SLOW;
	return now_ns < job->alert_ns ? HUB_TROUBLE_ALERT : HUB_TROUBLE_NONE;
}

static bool has_hang(const struct hub_job *job)
{
	return job->found.count > 0 && verdict_is_hang(job->found.list[0].class);
}

/* Between two judgements of a job without trouble; UINT64_MAX: there is only one. */
static uint64_t check_pause(const struct hub_jobs *jobs)
{
	uint64_t least_ns = jobs->agents * CHECK_PER_AGENT_NS, check_ns = jobs->options->check_ns;

	if (check_ns == 0)
		return UINT64_MAX;
	if (least_ns > CHECK_MOST_NS)
		least_ns = CHECK_MOST_NS;
	return jobs->options->is_check_fixed || check_ns > least_ns ? check_ns : least_ns;
}

/* A job without trouble: a hang is over once all agents were asked again; slowness once the doctor says so. */
static void job_calm(const struct hub_jobs *jobs, struct hub_job *job, uint64_t now_ns)
{
	const struct hub_options *options = jobs->options;
	uint64_t check_ns = check_pause(jobs);

	if (job->alive == 0 && job->silent < job->nodes) {
		verdicts_release(&job->found);
		job->judgement = HUB_NOT_JUDGED;
		job->judge_ns = UINT64_MAX;
		return;
	}
	if (has_hang(job) && now_ns - job->trouble_last_ns > 2 * options->interval_ns) {
		verdicts_release(&job->found);
		job->judgement = HUB_NOT_JUDGED;
		job->judge_ns = now_ns + HUB_JUDGE_FIRST_NS;
	}
	if (job->found.count == 0 && job->judge_ns == UINT64_MAX && check_ns != UINT64_MAX)
		job->judge_ns = now_ns + (job->judged > 0 ? check_ns : 2 * HUB_RATE_NS);
}

static uint64_t job_hang_ns(const struct hub_job *job, const struct hub_options *options)
{
	return job->hang_after_ns > options->hang_ns && !options->is_hang_fixed ? job->hang_after_ns
										: options->hang_ns;
}

static void job_decide(const struct hub_jobs *jobs, struct hub_job *job, uint64_t now_ns)
{
	const struct hub_options *options = jobs->options;
	enum hub_trouble before = job->trouble;

	if (job->silent == 0)
		rate_take(&job->rate, job->operations, now_ns);
	job->wait_share = job->wait_known > 0 ? job->wait_share / job->wait_known : NAN;
	job->trouble = trouble_of(job, job_hang_ns(job, options), now_ns);
	if (job->trouble == HUB_TROUBLE_NONE) {
		job_calm(jobs, job, now_ns);
		return;
	}
	job->trouble_last_ns = now_ns;
	if (before == HUB_TROUBLE_NONE)
		job->trouble_ns = now_ns;
	if (job->trouble > before) {
		job->pause_ns = HUB_JUDGE_FIRST_NS;
		job->judge_ns = now_ns;
		job->judged = 0;
	} else if (job->silent < job->judged_without && !job->is_judging) {
		/* A node that was missing answers again: the cause may be there. */
		job->judged_without = job->silent;
		job->judge_ns = now_ns;
	} else if (job->judge_ns == UINT64_MAX) {
		job->judge_ns = now_ns + job->pause_ns;
	}
}

void hub_jobs_update(struct hub_jobs *jobs, const struct hub_agents *agents, uint64_t now_ns)
{
	size_t kept = 0;

	jobs->changes = agents->changes;
	jobs->updated_ns = now_ns;
	jobs->left_out = 0;
	jobs->agents = agents->count;
	for (size_t i = 0; i < jobs->count; i++)
		job_clear(jobs->list[i]);
	/* Agents with few jobs first: one that claims many must not displace them. */
	for (int is_crowd = 0; is_crowd < 2; is_crowd++)
		for (size_t i = 0; i < agents->count; i++)
			if ((agents->list[i]->summary.count > CROWD) == is_crowd)
				add_agent(jobs, agents->list[i], now_ns);
	for (size_t i = 0; i < jobs->count; i++) {
		struct hub_job *job = jobs->list[i];

		if (!job->is_seen && !job->is_judging && now_ns - job->seen_ns > HUB_JOB_KEEP_NS) {
			job_free(job);
			continue;
		}
		job_decide(jobs, job, now_ns);
		jobs->list[kept++] = job;
	}
	jobs->count = kept;
}

bool hub_jobs_alert(struct hub_jobs *jobs, const char *name, uint64_t now_ns)
{
	struct hub_job *job = hub_jobs_find(jobs, name);

	/* As one of its agents calls it. */
	for (size_t i = 0; job == NULL && i < jobs->count; i++)
		if (owned_name_is(jobs->list[i]->base, jobs->list[i]->owner, name))
			job = jobs->list[i];

	if (job == NULL)
		return false;
	job->alert_ns = now_ns + ALERT_NS;
	if (job->judged_ns == 0 || now_ns - job->judged_ns > ALERT_PAUSE_NS)
		job->judge_ns = now_ns;
	if (job->trouble == HUB_TROUBLE_NONE) {
		job->trouble = HUB_TROUBLE_ALERT;
		job->trouble_ns = job->trouble_last_ns = now_ns;
		job->pause_ns = HUB_JUDGE_FIRST_NS;
	}
	return true;
}

const char *hub_job_state(const struct hub_job *job)
{
	if (job->nodes > 0 && job->silent == job->nodes)
		return "silent";
	if (job->alive == 0)
		return "ended";
	if (job->trouble == HUB_TROUBLE_STUCK || has_hang(job))
		return "stuck";
	if (job->trouble == HUB_TROUBLE_SLOW || job->found.count > 0)
		return "slow";
	return "running";
}

/* A rank has a GPU; a process can be several ranks. */
static double living_ranks(const struct hub_job *job)
{
	uint32_t ranks = job->ranks > job->processes ? job->ranks : job->processes;

	return job->processes > 0 ? (double)ranks * job->alive / job->processes : 0;
}

/*
 * What a slowdown that was found costs at least: all ranks lose that share of their time while it lasts. Ranks that wait for a link
 * wait in transfers, which agents do not count as waiting.
 */
static double slow_ns(const struct hub_job *job)
{
	const struct verdict *verdict = job->found.count > 0 ? &job->found.list[0] : NULL;
	double percent;

	if (verdict == NULL || !verdict_is_slow(verdict->class))
		return 0;
	percent = verdict->is_cost_bound && !verdict->is_cost_least ? verdict->cost_least_percent
								    : verdict->cost_percent;
	return percent > 0 ? percent / 100 * (double)verdict->for_ns * living_ranks(job) : 0;
}

double hub_job_gpu_hours(const struct hub_job *job, const struct hub_options *options)
{
	double stuck_ns = job->stuck_ns >= job_hang_ns(job, options)
				  ? (double)job->stuck_ns * living_ranks(job)
				  : 0;

	return (fmax((double)job->wait_ns, slow_ns(job)) + stuck_ns) / 3.6e12;
}

/* ---- reading the doctor's answer ------------------------------------------------------------- */

/* A number that is null or missing stays unknown. */
static int64_t read_natural(struct json_scan *scan)
{
	uint64_t value = UINT64_MAX;

	json_scan_read_unsigned(scan, &value);
	return value > INT64_MAX ? -1 : (int64_t)value;
}

static double read_double(struct json_scan *scan)
{
	double value = 0;

	json_scan_read_double(scan, &value);
	return value;
}

/* "most", "least", or null: it was measured. */
static void read_bound(struct json_scan *scan, struct verdict *verdict)
{
	char bound[8] = "";

	json_scan_read_text(scan, bound, sizeof(bound));
	verdict->is_cost_least = strcmp(bound, "least") == 0;
	verdict->is_cost_bound = verdict->is_cost_least || strcmp(bound, "most") == 0;
}

static double read_percent(struct json_scan *scan)
{
	double percent = read_double(scan);

	return percent > 0 && percent <= 100 ? percent : 0;
}

static void read_lines(struct json_scan *scan, struct verdict *verdict,
		       void (*add)(struct verdict *, const char *, ...))
{
	char line[1200];

	if (!json_scan_enter(scan, JSON_SCAN_ARRAY))
		return;
	while (json_scan_next_string(scan)) {
		json_scan_text(scan, line, sizeof(line));
		add(verdict, "%s", line);
	}
}

static void read_operation(struct json_scan *scan, struct verdict *verdict)
{
	if (!json_scan_enter(scan, JSON_SCAN_OBJECT))
		return;
	while (json_scan_next(scan) == JSON_SCAN_KEY) {
		if (json_scan_is(scan, "function"))
			json_scan_read_text(scan, verdict->function, sizeof(verdict->function));
		else if (json_scan_is(scan, "number"))
			json_scan_read_unsigned(scan, &verdict->number);
		else
			json_scan_skip(scan);
	}
}

/* Texts that are copied as they are. */
static const struct {
	const char *key;
	size_t offset, size;
} texts[] = {
#define TEXT(name, field)                                                                      \
	{                                                                                      \
		name, offsetof(struct verdict, field), sizeof(((struct verdict *)NULL)->field) \
	}
	TEXT("title", title),
	TEXT("job", job),
	TEXT("rank_label", rank_label),
	TEXT("host", host),
	TEXT("peer_label", peer_label),
	TEXT("peer_host", peer_host),
	TEXT("channels", channels),
	TEXT("communicator", comm),
	TEXT("rule", rule),
	TEXT("page", page),
#undef TEXT
};

struct verdict_read {
	struct verdict *verdict;
	char class[32], severity[16];
};

/* One value; the scan is after its key. */
static void read_member(struct json_scan *scan, struct verdict_read *read)
{
	struct verdict *verdict = read->verdict;
	char hash[24] = "";

	for (size_t i = 0; i < ARRAY_LENGTH(texts); i++)
		if (json_scan_is(scan, texts[i].key)) {
			json_scan_read_text(scan, (char *)verdict + texts[i].offset, texts[i].size);
			return;
		}
	if (json_scan_is(scan, "class"))
		json_scan_read_text(scan, read->class, sizeof(read->class));
	else if (json_scan_is(scan, "severity"))
		json_scan_read_text(scan, read->severity, sizeof(read->severity));
	else if (json_scan_is(scan, "confidence"))
		verdict->confidence = fmax(0, fmin(1, read_double(scan)));
	else if (json_scan_is(scan, "rank"))
		verdict->rank = read_natural(scan);
	else if (json_scan_is(scan, "pid"))
		verdict->pid = read_natural(scan);
	else if (json_scan_is(scan, "gpu"))
		verdict->gpu = (int32_t)read_natural(scan);
	else if (json_scan_is(scan, "peer"))
		verdict->peer = read_natural(scan);
	else if (json_scan_is(scan, "channel"))
		verdict->channel = (int32_t)read_natural(scan);
	else if (json_scan_is(scan, "communicator_rank"))
		verdict->comm_rank = (int32_t)read_natural(scan);
	else if (json_scan_is(scan, "communicator_hash")) {
		json_scan_read_text(scan, hash, sizeof(hash));
		verdict->comm_hash = strtoull(hash, NULL, 16);
	} else if (json_scan_is(scan, "operation"))
		read_operation(scan, verdict);
	else if (json_scan_is(scan, "since_ns"))
		json_scan_read_unsigned(scan, &verdict->since_wall_ns);
	else if (json_scan_is(scan, "seconds"))
		verdict->for_ns = (uint64_t)fmax(0, fmin(1e9, read_double(scan)) * 1e9);
	else if (json_scan_is(scan, "victims"))
		verdict->victims = (uint32_t)fmax(0, fmin(1e9, (double)read_natural(scan)));
	else if (json_scan_is(scan, "gpu_hours"))
		verdict->gpu_hours = read_double(scan);
	else if (json_scan_is(scan, "money"))
		verdict->money = read_double(scan);
	else if (json_scan_is(scan, "percent"))
		verdict->percent = read_double(scan);
	else if (json_scan_is(scan, "cost_percent"))
		verdict->cost_percent = read_percent(scan);
	else if (json_scan_is(scan, "cost_bound"))
		read_bound(scan, verdict);
	else if (json_scan_is(scan, "cost_least_percent"))
		verdict->cost_least_percent = read_percent(scan);
	else if (json_scan_is(scan, "evidence"))
		read_lines(scan, verdict, verdict_evidence);
	else if (json_scan_is(scan, "missing"))
		read_lines(scan, verdict, verdict_missing);
	else if (json_scan_is(scan, "advice"))
		read_lines(scan, verdict, verdict_advice);
	else
		json_scan_skip(scan);
}

/* Class and severity by name; false: this hub does not know them. */
static bool name_verdict(struct verdict_read *read)
{
	unsigned int class = 0, severity = 0;

	while (class < VERDICT_CLASSES &&
	       strcmp(verdict_class_name((enum verdict_class) class), read->class) != 0)
		class ++;
	while (severity <= VERDICT_ERROR &&
	       strcmp(verdict_severity_name((enum verdict_severity)severity), read->severity) != 0)
		severity++;
	read->verdict->class = (enum verdict_class)(class % VERDICT_CLASSES);
	read->verdict->severity = (enum verdict_severity)(severity % (VERDICT_ERROR + 1));
	return class < VERDICT_CLASSES && severity <= VERDICT_ERROR;
}

static void read_verdicts(struct json_scan *scan, struct verdicts *verdicts)
{
	if (!json_scan_enter(scan, JSON_SCAN_ARRAY))
		return;
	while (json_scan_next_object(scan)) {
		struct verdict_read read = { verdicts_add(verdicts, VERDICT_STUCK, VERDICT_NOTE),
					     "", "" };

		while (json_scan_next(scan) == JSON_SCAN_KEY)
			read_member(scan, &read);
		if (!name_verdict(&read))
			read.verdict->severity = VERDICT_NOTE;
	}
}

enum status hub_verdicts_read(struct verdicts *verdicts, const char *bytes, size_t length)
{
	char format[32] = "";
	struct json_scan scan;

	verdicts_init(verdicts);
	json_scan_init(&scan, bytes, length);
	if (!json_scan_enter(&scan, JSON_SCAN_OBJECT))
		return ERR_FORMAT;
	while (json_scan_next(&scan) == JSON_SCAN_KEY) {
		if (json_scan_is(&scan, "format"))
			json_scan_read_text(&scan, format, sizeof(format));
		else if (json_scan_is(&scan, "verdicts"))
			read_verdicts(&scan, verdicts);
		else
			json_scan_skip(&scan);
	}
	if (json_scan_next(&scan) == JSON_SCAN_END && strcmp(format, "ringside-doctor") == 0)
		return OK;
	verdicts_release(verdicts);
	return ERR_FORMAT;
}

/* ---- judging --------------------------------------------------------------------------------- */

static void append_verdict(struct verdicts *to, struct verdict *verdict)
{
	struct verdict *added;

	if (to->count >= HUB_VERDICTS_KEPT) {
		to->left_out++;
		return;
	}
	added = verdicts_add(to, verdict->class, verdict->severity);
	if (added != &to->list[to->count - 1])
		return;
	/* Its lines move. */
	*added = *verdict;
	verdict->evidence = verdict->missing = verdict->advice =
		(struct verdict_lines){ .list = NULL };
}

/* Hangs and slowness first, in the doctor's order; then misconfiguration. Notes are left out. */
static bool keep_verdicts(struct hub_job *job, struct verdicts *read)
{
	bool is_trouble = false;

	for (int is_rest = 0; is_rest < 2; is_rest++)
		for (size_t i = 0; i < read->count; i++) {
			struct verdict *verdict = &read->list[i];
			bool is_cause =
				verdict_is_hang(verdict->class) || verdict_is_slow(verdict->class);

			if (verdict->severity == VERDICT_NOTE || is_cause == is_rest ||
			    (is_rest && !is_trouble))
				continue;
			is_trouble |= is_cause;
			/* The doctor was asked for this job alone: log and hook call it as the page does. */
			text_copy(verdict->job, sizeof(verdict->job), job->name);
			append_verdict(&job->found, verdict);
		}
	return is_trouble;
}

static void judge_again(const struct hub_jobs *jobs, struct hub_job *job, uint64_t now_ns)
{
	uint64_t least_ns = job->took_ns * JUDGE_SHARE, check_ns = check_pause(jobs);

	if (job->trouble == HUB_TROUBLE_NONE && job->found.count == 0) {
		job->judge_ns = check_ns == UINT64_MAX
					? UINT64_MAX
					: now_ns + (check_ns > least_ns ? check_ns : least_ns);
		return;
	}
	if (job->pause_ns < HUB_JUDGE_FIRST_NS)
		job->pause_ns = HUB_JUDGE_FIRST_NS;
	if (job->found.count > 0 || job->judged > JUDGE_EAGER)
		job->pause_ns = job->pause_ns * 2 < HUB_JUDGE_MOST_NS ? job->pause_ns * 2
								      : HUB_JUDGE_MOST_NS;
	job->judge_ns = now_ns + (job->pause_ns > least_ns ? job->pause_ns : least_ns);
}

void hub_jobs_judged(struct hub_jobs *jobs, struct hub_job *job, const struct child *child,
		     uint64_t now_ns, uint64_t wall_ns)
{
	struct verdicts read;

	job->is_judging = false;
	job->judged++;
	job->judged_ns = now_ns;
	job->judged_wall_ns = wall_ns;
	job->took_ns = now_ns - child->begun_ns;
	if (job->judged_without < job->silent)
		job->judged_without = job->silent;
	jobs->judge_ns += job->took_ns;
	text_copy(job->why, sizeof(job->why), child->why);
	if (child->code >= 0 && child->bytes &&
	    hub_verdicts_read(&read, child->bytes, child->used) == OK) {
		verdicts_release(&job->found);
		if (keep_verdicts(job, &read))
			job->judgement = HUB_FOUND;
		else
			job->judgement = child->code == 3 ? HUB_COULD_NOT : HUB_HEALTHY;
		for (size_t i = 0; i < read.count && job->judgement == HUB_COULD_NOT; i++)
			if (read.list[i].class == VERDICT_BLIND && job->why[0] == '\0')
				text_copy(job->why, sizeof(job->why), read.list[i].title);
		verdicts_release(&read);
	} else {
		/* A verdict that was found before stays: the trouble does. */
		job->judgement = child->code == 3 ? HUB_COULD_NOT : HUB_JUDGE_FAIL;
		if (job->judgement == HUB_JUDGE_FAIL)
			serve_log(SERVE_WARNING, "job %s could not be judged: %s", job->name,
				  job->why[0] ? job->why : "the doctor failed");
	}
	jobs->judgements[job->judgement]++;
	judge_again(jobs, job, now_ns);
}

/* Is the first more urgent? */
static bool is_before(const struct hub_job *one, const struct hub_job *other)
{
	if (one->is_crowded != other->is_crowded)
		return other->is_crowded;
	if (one->trouble != other->trouble)
		return one->trouble > other->trouble;
	if (one->nodes != other->nodes)
		return one->nodes > other->nodes;
	return one->judge_ns < other->judge_ns;
}

struct hub_job *hub_jobs_due(const struct hub_jobs *jobs, uint64_t now_ns, bool has_crowded)
{
	struct hub_job *due = NULL;

	for (size_t i = 0; i < jobs->count; i++) {
		struct hub_job *job = jobs->list[i];

		if (job->is_judging || job->judge_ns > now_ns || job->nodes == 0 ||
		    (job->is_crowded && !has_crowded))
			continue;
		if (due == NULL || is_before(job, due))
			due = job;
	}
	return due;
}

/* The agents of a job, one per line; silent ones, too: the doctor reports them. The caller frees it. */
static char *hosts_of(const struct hub_agents *agents, const struct hub_job *job)
{
	char *text = NULL;
	size_t used = 0;

	for (size_t i = 0; i < agents->count; i++) {
		const struct hub_agent *agent = agents->list[i];
		size_t length = strlen(agent->target.name), row = 0;
		char *grown;

		while (row < agent->summary.count &&
		       !hub_job_is_row(job, agent, &agent->summary.rows[row]))
			row++;
		if (row == agent->summary.count)
			continue;
		grown = realloc(text, used + length + 2);
		if (grown == NULL)
			break;
		text = grown;
		memcpy(text + used, agent->target.name, length);
		text[used + length] = '\n';
		text[used + length + 1] = '\0';
		used += length + 1;
	}
	return text;
}

static void judge_start(struct hub_jobs *jobs, struct hub_judge *judge, struct hub_job *job,
			const struct hub_agents *agents, uint64_t now_ns)
{
	const struct hub_options *options = jobs->options;
	uint64_t timeout_ns =
		options->timeout_ns > SNAPSHOT_TIME_NS ? options->timeout_ns : SNAPSHOT_TIME_NS;
	char hang[32], timeout[32], parallel[16], price[32], own[HUB_JOB_NAME + 32];
	char name[HUB_JOB_NAME + 40];
	char *hosts = hosts_of(agents, job), *words[DOCTOR_WORDS];
	struct child_task task = {
		.words = words,
		.input = hosts,
		.timeout_ns = JUDGE_TIME_NS + job->nodes / JUDGE_PARALLEL * timeout_ns,
		.limit_bytes = DOCTOR_BYTES,
		.memory_bytes = HUB_JUDGE_MEMORY,
	};
	size_t count = 0;

	text_format(hang, sizeof(hang), "%" PRIu64 "ms", options->hang_ns / 1000000);
	text_format(timeout, sizeof(timeout), "%" PRIu64 "ms", timeout_ns / 1000000);
	text_format(parallel, sizeof(parallel), "%d", JUDGE_PARALLEL);
	/* Where nobody else has the name it is enough, and agents that know no more understand it. */
	if (job->owner >= 0 && (job->shows_owner || strcmp(job->name, job->base) != 0))
		owned_name_make(own, sizeof(own), job->base, job->owner);
	else
		text_copy(own, sizeof(own), job->name);
	text_format(name, sizeof(name), "--job=%s", own);
	words[count++] = (char *)jobs->doctor;
	words[count++] = "doctor";
	words[count++] = "--json";
	words[count++] = "--quiet";
	words[count++] = "--agents";
	words[count++] = "@/dev/stdin";
	words[count++] = name;
	if (options->is_hang_fixed) {
		words[count++] = "--hang";
		words[count++] = hang;
	}
	words[count++] = "--timeout";
	words[count++] = timeout;
	words[count++] = "--parallel";
	words[count++] = parallel;
	if (options->gpu_hour_price > 0) {
		text_format(price, sizeof(price), "%.9g", options->gpu_hour_price);
		words[count++] = "--gpu-hour-price";
		words[count++] = price;
	}
	if (options->auth) {
		words[count++] = "--auth";
		words[count++] = (char *)options->auth;
	}
	if (options->ca_file) {
		words[count++] = "--cacert";
		words[count++] = (char *)options->ca_file;
	}
	if (options->is_insecure)
		words[count++] = "--insecure";
	if (options->is_any_owner)
		words[count++] = "--any-owner";
	words[count] = NULL;
	text_copy(judge->key, sizeof(judge->key), job->key);
	job->is_judging = true;
	job->judged_for = job->trouble;
	job->judged_without = job->silent;
	job->judge_ns = UINT64_MAX;
	child_start(&judge->child, &task, agents->epoll, now_ns);
	free(hosts);
}

static uint64_t judge_run(struct hub_jobs *jobs, struct hub_judge *judge,
			  const struct hub_agents *agents, uint64_t now_ns)
{
	struct hub_job *job;

	if (judge->child.begun_ns > 0) {
		if (!child_has_ended(&judge->child, now_ns))
			return judge->child.until_ns;
		job = hub_jobs_find(jobs, judge->key);
		if (job)
			hub_jobs_judged(jobs, job, &judge->child, now_ns,
					clock_system_ns(CLOCK_REALTIME));
		child_release(&judge->child);
	}
	/* One judge is kept for jobs that are not made up. */
	job = hub_jobs_due(jobs, now_ns, judge != &jobs->judges[0]);
	if (job == NULL)
		return UINT64_MAX;
	judge_start(jobs, judge, job, agents, now_ns);
	return now_ns + 1;
}

uint64_t hub_jobs_run(struct hub_jobs *jobs, struct hub_agents *agents, uint64_t now_ns)
{
	uint64_t next_ns = UINT64_MAX;

	/* Answers arrive one by one; adding all up costs as much as there are agents. */
	if (jobs->changes != agents->changes) {
		if (now_ns - jobs->updated_ns >= UPDATE_NS)
			hub_jobs_update(jobs, agents, now_ns);
		else
			next_ns = jobs->updated_ns + UPDATE_NS;
	}
	for (size_t i = 0; i < HUB_JUDGES; i++) {
		uint64_t at_ns = judge_run(jobs, &jobs->judges[i], agents, now_ns);

		next_ns = at_ns < next_ns ? at_ns : next_ns;
	}
	for (size_t i = 0; i < jobs->count; i++)
		if (!jobs->list[i]->is_judging && jobs->list[i]->judge_ns < next_ns)
			next_ns = jobs->list[i]->judge_ns;
	/* Due ones wait for an idle judge: its end wakes us. */
	return next_ns > now_ns ? next_ns : now_ns + UINT64_C(100000000);
}
