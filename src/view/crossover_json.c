#include "view/crossover_json.h"

#include "common/op.h"
#include "output/json.h"
#include "view/bench_json.h"

static void put_known(struct json *json, const char *key, double value)
{
	if (value > 0)
		json_put_double(json, key, value);
	else
		json_put_null(json, key);
}

static const char *algorithm_name(uint8_t algorithm)
{
	return algorithm != 0 ? op_algorithm_name(algorithm) : NULL;
}

static const char *protocol_name(uint8_t protocol)
{
	return protocol != 0 ? op_protocol_name(protocol) : NULL;
}

static void put_curve_name(struct json *json, const char *key, const struct crossover *one,
			   size_t index)
{
	char name[CROSSOVER_NAME];

	json_put_string(json, key,
			index < one->curve_count ? crossover_curve_name(name, &one->curves[index])
						 : NULL);
}

static void put_points(struct json *json, const struct crossover_view *view,
		       const struct crossover *one, const struct crossover_curve *curve)
{
	json_put_array(json, "points");
	for (size_t i = 0; i < curve->count; i++) {
		const struct crossover_point *point = &curve->points[i];

		json_object(json);
		json_put_unsigned(json, "bytes", point->bytes);
		put_known(json, "median_ns", point->median_ns);
		put_known(json, "low_ns", point->low_ns);
		put_known(json, "high_ns", point->high_ns);
		json_put_unsigned(json, "calls", point->calls);
		if (point->wrong == BENCH_UNCHECKED)
			json_put_null(json, "wrong");
		else
			json_put_unsigned(json, "wrong", point->wrong);
		json_put_string(json, "chosen_algorithm", algorithm_name(point->chosen_algorithm));
		json_put_string(json, "chosen_protocol", protocol_name(point->chosen_protocol));
		put_known(json, "model_ns", crossover_expected_ns(view, one, curve, point->bytes));
		json_end(json);
	}
	json_end(json);
}

static void put_curves(struct json *json, const struct crossover_view *view,
		       const struct crossover *one)
{
	json_put_array(json, "curves");
	for (size_t i = 0; i < one->curve_count; i++) {
		const struct crossover_curve *curve = &one->curves[i];
		struct crossover_error error;
		bool has_error = crossover_error_of(view, one, curve, &error);

		json_object(json);
		put_curve_name(json, "name", one, i);
		json_put_string(json, "algorithm", algorithm_name(curve->algorithm));
		json_put_string(json, "protocol", protocol_name(curve->protocol));
		json_put_bool(json, "is_own", curve->is_own);
		json_put_bool(json, "is_envelope", curve->is_envelope);
		if (has_error) {
			json_put_double(json, "model_median_error", error.median);
			json_put_double(json, "model_worst_error", error.worst);
		} else {
			json_put_null(json, "model_median_error");
			json_put_null(json, "model_worst_error");
		}
		put_points(json, view, one, curve);
		json_end(json);
	}
	json_end(json);
}

static void put_sizes(struct json *json, const struct crossover *one)
{
	json_put_array(json, "sizes");
	for (size_t i = 0; i < one->size_count; i++) {
		const struct crossover_size *size = &one->sizes[i];

		json_object(json);
		json_put_unsigned(json, "bytes", size->bytes);
		put_curve_name(json, "best", one, size->best);
		json_put_bool(json, "is_best_clear", size->is_best_clear);
		put_known(json, "best_ns", size->best_ns);
		put_curve_name(json, "second", one, size->second);
		put_known(json, "own_ns", size->has_own ? size->own_ns : 0);
		json_put_string(json, "own_algorithm", algorithm_name(size->own_algorithm));
		json_put_string(json, "own_protocol", protocol_name(size->own_protocol));
		put_known(json, "regret", size->regret);
		put_known(json, "regret_low", size->regret_low);
		put_known(json, "regret_high", size->regret_high);
		json_put_bool(json, "is_regret_clear", size->is_regret_clear);
		json_end(json);
	}
	json_end(json);
}

static const char *answer_name(enum crossover_answer answer)
{
	switch (answer) {
	case CROSSOVER_CROSSES:
		return "crosses";
	case CROSSOVER_FIRST_WINS:
		return "first_wins";
	case CROSSOVER_SECOND_WINS:
		return "second_wins";
	case CROSSOVER_ALIKE:
		return "alike";
	default:
		return "no_data";
	}
}

static void put_crossings(struct json *json, const struct crossover *one)
{
	char text[CROSSOVER_SENTENCE];

	json_put_array(json, "crossings");
	for (size_t i = 0; i < one->crossing_count; i++) {
		const struct crossover_crossing *crossing = &one->crossings[i];
		bool is_crossing = crossing->answer == CROSSOVER_CROSSES;

		json_object(json);
		put_curve_name(json, "first", one, crossing->first);
		put_curve_name(json, "second", one, crossing->second);
		json_put_string(json, "answer", answer_name(crossing->answer));
		put_known(json, "bytes", is_crossing ? crossing->bytes : 0);
		put_known(json, "low_bytes", is_crossing ? crossing->low_bytes : 0);
		put_known(json, "high_bytes", is_crossing ? crossing->high_bytes : 0);
		json_put_bool(json, "is_repeated", crossing->is_repeated);
		put_known(json, "most_ratio", crossing->most_ratio);
		put_known(json, "most_bytes", (double)crossing->most_bytes);
		json_put_string(json, "text", crossover_sentence(text, one, crossing));
		json_end(json);
	}
	json_end(json);
}

static const char *advice_name(enum crossover_advice_kind kind)
{
	switch (kind) {
	case CROSSOVER_LEAVE:
		return "leave";
	case CROSSOVER_CHANGE:
		return "change";
	case CROSSOVER_CAUTION:
		return "caution";
	default:
		return "unsure";
	}
}

static void put_advice(struct json *json, const struct crossover *one)
{
	json_put_array(json, "advice");
	for (size_t i = 0; i < one->advice_count; i++) {
		const struct crossover_advice *advice = &one->advice[i];
		bool is_change = advice->kind == CROSSOVER_CHANGE;

		json_object(json);
		json_put_string(json, "kind", advice_name(advice->kind));
		put_curve_name(json, "curve", one, is_change ? advice->curve : SIZE_MAX);
		put_known(json, "from_bytes", is_change ? (double)advice->from_bytes : 0);
		put_known(json, "to_bytes", is_change ? (double)advice->to_bytes : 0);
		put_known(json, "ratio", is_change ? advice->ratio : 0);
		put_known(json, "ratio_low", is_change ? advice->ratio_low : 0);
		json_put_string(json, "text", advice->text);
		json_end(json);
	}
	json_end(json);
}

static void put_one(struct json *json, const struct crossover_view *view,
		    const struct crossover *one)
{
	json_object(json);
	json_put_string(json, "function", op_function_name(one->function));
	json_put_string(json, "datatype", op_datatype_name(one->datatype));
	json_put_string(json, "redop", bench_redop_name(one->redop));
	json_put_string(json, "mode", bench_mode_name(one->mode));
	json_put_bool(json, "in_place", one->is_in_place);
	if (one->root >= 0)
		json_put_signed(json, "root", one->root);
	else
		json_put_null(json, "root");
	json_put_signed(json, "ranks", one->nranks);
	put_curves(json, view, one);
	put_sizes(json, one);
	put_crossings(json, one);
	put_advice(json, one);
	json_put_double(json, "worst_regret", one->worst_regret);
	json_end(json);
}

enum status crossover_json(struct sink *sink, const struct crossover_view *view)
{
	enum status status;
	struct json json;

	json_init(&json, sink);
	json_object(&json);
	json_put_string(&json, "format", "ringside-crossover");
	json_put_unsigned(&json, "version", 1);
	json_put_array(&json, "crossovers");
	for (size_t i = 0; i < view->set->count; i++)
		put_one(&json, view, &view->set->all[i]);
	json_end(&json);
	json_put_unsigned(&json, "unusable", view->set->unusable);
	json_key(&json, "run");
	status = bench_json_put(&json, view->run);
	json_end(&json);
	json_line(&json);
	return status != OK ? status : json_status(&json);
}
