/* What was found and what was told: network devices, GPUDirect RDMA, plugins, variables. */
#include <string.h>

#include "common/attributes.h"
#include "common/hash.h"
#include "nccllog/nccl_log_parts.h"

static uint64_t hash_text(uint64_t before, struct log_text text)
{
	return hash_word(before, hash_bytes(text.at, log_left(&text)));
}

static struct log_text text_of(const char *text)
{
	return (struct log_text){ text, text + strlen(text) };
}

/* ---- network devices ------------------------------------------------------------------------- */

static struct nccl_log_net *find_net(struct log_line *line, struct log_text network, int32_t index,
				     struct log_text name)
{
	uint64_t key = hash_word(hash_word(7, line->process), (uint64_t)index);
	struct nccl_log_net *net;
	bool is_new;

	key = hash_text(hash_text(key, network), name);
	net = log_entry(line->log, LOG_NETS, key, &is_new);
	if (net != NULL && is_new)
		*net = (struct nccl_log_net){ .process = line->process,
					      .network = log_keep(line->log, network),
					      .index = index,
					      .name = log_keep(line->log, name),
					      .port = -1,
					      .link = "",
					      .address = "",
					      .speed = -1,
					      .gdr = -1,
					      .place = line->place };
	return net;
}

/* "mlx5_0:1/RoCE" */
static void keep_ib_device(struct log_line *line, int32_t index, struct log_text word)
{
	struct log_text name = log_until(&word, ':');
	struct nccl_log_net *net;
	int32_t port = -1;

	log_int(&word, &port);
	log_until(&word, '/'); /* rail and plane from 2.30 on: ":0:1" */
	net = find_net(line, text_of("IB"), index, name);
	if (net == NULL)
		return;
	net->port = port;
	net->link = log_keep(line->log, log_until(&word, '/'));
}

/* "[2]={[0] mlx5_0:1/IB, [1] mlx5_1:1/IB}": several as one. */
static void keep_merged_devices(struct log_line *line, int32_t index, struct log_text inside)
{
	while (log_left(&inside) > 0) {
		struct log_text word = log_trim(log_until(&inside, ','));

		if (LOG_SKIP(&word, "["))
			log_until(&word, ']');
		if (log_left(&word) > 0)
			keep_ib_device(line, index, log_trim(word));
	}
}

static bool take_ib_devices(struct log_line *line, struct log_text text)
{
	struct log_text word;
	int32_t index;

	while (LOG_SKIP(&text, " ["),
	       text.at < text.end && log_int(&text, &index) && LOG_SKIP(&text, "]")) {
		if (LOG_SKIP(&text, "={")) {
			keep_merged_devices(line, index, log_until(&text, '}'));
			continue;
		}
		for (word = text; text.at < text.end && *text.at != ' ' && *text.at != ';';
		     text.at++)
			;
		word.end = text.at;
		keep_ib_device(line, index, word);
	}
	return true;
}

static bool take_socket_devices(struct log_line *line, struct log_text text)
{
	int32_t index;

	while (LOG_SKIP(&text, " [") && log_int(&text, &index) && LOG_SKIP(&text, "]")) {
		struct log_text word = log_until(&text, ' ');
		struct log_text name = log_until(&word, ':');
		struct nccl_log_net *net = find_net(line, text_of("Socket"), index, name);

		if (net != NULL)
			net->address = log_keep(line->log, log_until(&word, '<'));
		text.at -= text.at < text.end; /* the blank belongs to the next one */
	}
	return true;
}

/* "NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.0.0.1<0>", "NET/Socket : Using [0]eth0:10.0.0.1<0>" */
bool log_take_net_using(struct log_line *line)
{
	struct log_text text = line->message;
	const bool is_ib = LOG_SKIP(&text, "NET/IB : Using");

	if (!is_ib && !LOG_SKIP(&text, "NET/Socket : Using"))
		return false;
	line->log->kinds[NCCL_LOG_KIND_NET_DEVICE]++;
	log_note(line, NCCL_LOG_KIND_NET_DEVICE);
	return is_ib ? take_ib_devices(line, text) : take_socket_devices(line, text);
}

/* "NET/IB : Made virtual device [8] name=mlx5_0+mlx5_1 speed=800000 ndevs=2" */
bool log_take_virtual_device(struct log_line *line)
{
	struct log_text text = line->message;
	struct nccl_log_net *net;
	struct log_text name;
	int32_t index;

	if (!log_find(&text, "Made virtual device [") || !log_int(&text, &index) ||
	    !LOG_SKIP(&text, "] name="))
		return false;
	name = log_until(&text, ' ');
	line->log->kinds[NCCL_LOG_KIND_NET_DEVICE]++;
	net = find_net(line, text_of("IB"), index, name);
	if (net == NULL)
		return true;
	if (LOG_SKIP(&text, "speed="))
		log_int(&text, &net->speed);
	net->is_virtual = log_find(&text, "ndevs=") && !LOG_SKIP(&text, "1 ") &&
			  !(log_left(&text) == 1 && text.at[0] == '1');
	return true;
}

/* "NET/IB : GPU Direct RDMA Enabled for HCA 0 'mlx5_0'" */
bool log_take_net_gdr(struct log_line *line)
{
	struct log_text text = line->message, network;
	struct nccl_log_net *net;
	int32_t index;
	bool is_on;

	if (!LOG_SKIP(&text, "NET/"))
		return false;
	network = log_trim(log_until(&text, ':'));
	if (!LOG_SKIP(&text, " GPU Direct RDMA "))
		return false;
	is_on = LOG_SKIP(&text, "Enabled");
	if ((!is_on && !LOG_SKIP(&text, "Disabled")) || !LOG_SKIP(&text, " for HCA ") ||
	    !log_int(&text, &index) || !LOG_SKIP(&text, " '"))
		return false;
	line->log->kinds[NCCL_LOG_KIND_GDR]++;
	net = find_net(line, network, index, log_until(&text, '\''));
	if (net != NULL) {
		net->gdr = is_on;
		net->gdr_place = line->place;
	}
	return true;
}

/* "GPU Direct RDMA Disabled for GPU 0 / HCA 1 (distance 5 > 4)" */
bool log_take_gdr(struct log_line *line)
{
	struct log_text text = line->message;
	struct nccl_log_gdr *gdr;
	uint64_t key;
	bool is_on, is_new;

	if (!LOG_SKIP(&text, "GPU Direct RDMA "))
		return false;
	is_on = LOG_SKIP(&text, "Enabled");
	if (!is_on && !LOG_SKIP(&text, "Disabled"))
		return false;
	line->log->kinds[NCCL_LOG_KIND_GDR]++;
	key = hash_text(hash_word(8, line->process), line->message);
	gdr = log_entry(line->log, LOG_GDRS, key, &is_new);
	if (gdr == NULL)
		return true;
	if (is_new)
		*gdr = (struct nccl_log_gdr){ .process = line->process,
					      .is_on = is_on,
					      .text = log_keep(line->log, line->message),
					      .place = line->place };
	gdr->lines++;
	return true;
}

/* ---- variables ------------------------------------------------------------------------------- */

static void keep_variable(struct log_line *line, struct log_text name, struct log_text value)
{
	uint64_t key = hash_text(hash_text(hash_word(9, line->process), name), value);
	struct nccl_log_variable *variable;
	bool is_new;

	variable = log_entry(line->log, LOG_VARIABLES, key, &is_new);
	if (variable == NULL)
		return;
	if (is_new)
		*variable = (struct nccl_log_variable){ .process = line->process,
							.name = log_keep(line->log, name),
							.value = log_keep(line->log, value),
							.place = line->place };
	variable->lines++;
}

/* "NCCL_IB_DISABLE set by environment to 1.", "NCCL_IB_HCA set to mlx5" */
bool log_take_variable(struct log_line *line)
{
	struct log_text text = line->message, name = text, value, number;
	int64_t whole;

	while (name.at < name.end && *name.at != ' ')
		name.at++;
	name = (struct log_text){ text.at, name.at };
	text.at = name.end;
	if (log_left(&name) < 6 || memcmp(name.at, "NCCL_", 5) != 0 ||
	    (!LOG_SKIP(&text, " set by environment to ") && !LOG_SKIP(&text, " set to ")))
		return false;
	value = log_trim(text);
	number = value;
	/* Whole numbers come with a full stop. */
	if (log_number(&number, &whole) && log_left(&number) == 1 && number.at[0] == '.')
		value.end--;
	line->log->kinds[NCCL_LOG_KIND_VARIABLE]++;
	keep_variable(line, name, value);
	return true;
}

/* ---- plugins --------------------------------------------------------------------------------- */

static void keep_plugin(struct log_line *line, struct log_text kind, struct log_text name,
			int32_t version, enum nccl_log_plugin_state state)
{
	uint64_t key = hash_text(hash_text(hash_word(10, line->process), kind), name);
	struct nccl_log_plugin *plugin;
	bool is_new;

	plugin = log_entry(line->log, LOG_PLUGINS, hash_word(key, state), &is_new);
	if (plugin == NULL)
		return;
	if (is_new)
		*plugin = (struct nccl_log_plugin){ .process = line->process,
						    .kind = log_keep(line->log, kind),
						    .name = log_keep(line->log, name),
						    .version = version,
						    .state = (uint8_t)state,
						    .text = log_keep(line->log, line->message),
						    .place = line->place };
	plugin->lines++;
}

/* "net plugin AWS Libfabric (v8)", "Inspector (v5)", "ncclProfiler_v1." */
static void keep_loaded(struct log_line *line, struct log_text kind, struct log_text text)
{
	struct log_text name;
	int32_t version = -1;

	if (LOG_SKIP(&text, "collnet plugin ") || LOG_SKIP(&text, "coll plugin "))
		kind = text_of("COLLNET");
	else if (LOG_SKIP(&text, "gin plugin "))
		kind = text_of("GIN");
	else
		LOG_SKIP(&text, "net plugin ");
	name = text;
	if (log_find(&text, " (v")) {
		name.end = text.at - 3;
		log_int(&text, &version);
	}
	keep_plugin(line, kind, name, version, NCCL_LOG_PLUGIN_LOADED);
}

/* The last symbol that is tried decides; before it, older ones may still be found. */
static bool is_final_failure(struct log_text text)
{
	return log_has(text, "using internal tuner instead") || log_has(text, "ncclProfiler_v1") ||
	       (log_has(text, "ncclNetPlugin symbol") && !log_has(text, "CollNet"));
}

static bool is_missing(struct log_text text)
{
	return log_has(text, "No such file") || log_has(text, "cannot find") ||
	       log_has(text, "No plugin found");
}

static void keep_plugin_words(struct log_line *line, struct log_text kind, struct log_text text)
{
	struct log_text name;

	if (LOG_SKIP(&text, "Could not find:")) {
		name = log_trim(text);
		if (log_find(&text, ". "))
			name.end = text.at - 2;
		keep_plugin(line, kind, log_trim(name), -1, NCCL_LOG_PLUGIN_NOT_FOUND);
	} else if (LOG_SKIP(&text, "Loaded ") || LOG_SKIP(&text, "loaded "))
		keep_loaded(line, kind, text);
	else if (LOG_SKIP(&text, "Using internal"))
		keep_plugin(line, kind, text_of("internal"), -1, NCCL_LOG_PLUGIN_INTERNAL);
	else if (LOG_SKIP(&text, "Using "))
		keep_loaded(line, kind, text);
	else if (LOG_SKIP(&text, "Plugin name set by env to "))
		keep_variable(line, text_of("NCCL_NET_PLUGIN"), log_trim(text));
	else if (log_has(text, "ailed to find ")) {
		if (is_final_failure(text))
			keep_plugin(line, kind, text_of("symbol"), -1, NCCL_LOG_PLUGIN_FAILED);
	} else if (is_missing(text))
		keep_plugin(line, kind, text_of("plugin"), -1, NCCL_LOG_PLUGIN_NOT_FOUND);
	else if (log_has(text, ".so") || log_has(text, "Plugin load"))
		keep_plugin(line, kind, log_trim(log_until(&text, ':')), -1,
			    NCCL_LOG_PLUGIN_FAILED);
	else
		log_note(line, NCCL_LOG_KIND_PLUGIN);
}

/* "NET/Plugin: ...", "TUNER/Plugin: ...", "NET/Plugin : ..." */
bool log_take_plugin(struct log_line *line)
{
	struct log_text text = line->message, kind = log_until(&text, '/');

	if (!LOG_SKIP(&text, "Plugin") || log_left(&kind) > 10)
		return false;
	LOG_SKIP(&text, " ");
	if (!LOG_SKIP(&text, ": "))
		return false;
	line->log->kinds[NCCL_LOG_KIND_PLUGIN]++;
	if (!LOG_SKIP(&text, "Closing") && !LOG_SKIP(&text, "init "))
		keep_plugin_words(line, kind, text);
	return true;
}

static bool kind_of_words(struct log_text words, struct log_text *kind)
{
	static const struct {
		const char *word;
		const char *kind;
	} kinds[] = {
		{ "network ", "NET" },	     { "NET ", "NET" }, { "tuner ", "TUNER" },
		{ "profiler ", "PROFILER" }, { "env ", "ENV" }, { "gin ", "GIN" },
		{ "GIN ", "GIN" },	     { "rma ", "RMA" }, { "RMA ", "RMA" },
		{ "plugin ", "NET" },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(kinds); i++)
		if (log_skip_bytes(&words, kinds[i].word, strlen(kinds[i].word))) {
			*kind = text_of(kinds[i].kind);
			return true;
		}
	return false;
}

/* "Successfully loaded external profiler plugin /opt/x.so", "External network plugin x is unsupported",
 * "Failed to initialize NET plugin IB", "Initialized NET plugin Socket" */
bool log_take_plugin_state(struct log_line *line)
{
	struct log_text text = line->message, kind;
	enum nccl_log_plugin_state state = NCCL_LOG_PLUGIN_LOADED;

	if (LOG_SKIP(&text, "Failed to initialize ") || LOG_SKIP(&text, "External "))
		state = NCCL_LOG_PLUGIN_FAILED;
	else if (!LOG_SKIP(&text, "Successfully loaded external ") &&
		 !LOG_SKIP(&text, "Initialized "))
		return false;
	if (!kind_of_words(text, &kind) || !log_find(&text, "plugin "))
		return false;
	line->log->kinds[NCCL_LOG_KIND_PLUGIN]++;
	keep_plugin(line, kind, log_until(&text, ' '), -1, state);
	return true;
}

/* Releases up to 2.21 and single messages: "Using tuner plugin: 'x'", "Profiler init failed ...". */
bool log_take_plugin_words(struct log_line *line)
{
	struct log_text text = line->message;

	if (LOG_SKIP(&text, "Using tuner plugin: '") || LOG_SKIP(&text, "Opened tuner: '"))
		keep_plugin(line, text_of("TUNER"), log_until(&text, '\''), -1,
			    NCCL_LOG_PLUGIN_LOADED);
	else if (LOG_SKIP(&text, "Plugin name set by env to "))
		keep_variable(line, text_of("NCCL_NET_PLUGIN"), log_trim(text));
	else if (LOG_SKIP(&text, "Profiler init failed"))
		keep_plugin(line, text_of("PROFILER"), text_of("init"), -1, NCCL_LOG_PLUGIN_FAILED);
	else if (LOG_SKIP(&text, "Tuner: failed to find "))
		keep_plugin(line, text_of("TUNER"), text_of("symbol"), -1, NCCL_LOG_PLUGIN_FAILED);
	else
		return false;
	line->log->kinds[NCCL_LOG_KIND_PLUGIN]++;
	return true;
}
