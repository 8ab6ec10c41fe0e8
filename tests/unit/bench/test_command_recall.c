/*
 * Earlier results shown again with --from: text and pages of those of a real GPU in docs/results, which lie beside
 * their JSON, and the JSON itself, unless it has sentences of earlier days.
 */
#include "bench/bench_command.h"
#include "common/attributes.h"
#include "tests/tap.h"
#include "tests/unit/bench/command_stage.h"

static struct {
	const char *name;
	stage_command_fn *command;
	const char *words;
	const char *endings[4];
} kept[] = {
	{ "profilers-h200", bench_profilers, "profilers", { "txt", "html", "json" } },
	{ "profilers-others-h200", bench_profilers, "profilers", { "txt", "json" } },
	{ "profilers-training-h200", bench_profilers, "profilers", { "txt", "html", "json" } },
	{ "profilers-late-h200", bench_profilers, "profilers", { "txt", "json" } },
	{ "bench-health-h200", bench_health, "health", { "txt" } },
	{ "crossover-h200", bench_crossover, "crossover", { "txt", "html" } },
};

static bool is_same_file(const struct stage *stage, const char *name, const char *ending)
{
	char made[200], wanted[200], *one, *other;
	bool is_same;

	text_format(made, sizeof(made), "%s/%s.%s", stage->directory, name, ending);
	text_format(wanted, sizeof(wanted), "docs/results/%s.%s", name, ending);
	one = stage_file(made);
	other = stage_file(wanted);
	is_same = expected_difference(one, other) == NULL;
	if (!is_same)
		expected_explain(wanted, one, other, expected_difference(one, other));
	free(one);
	free(other);
	return is_same;
}

int main(void)
{
	struct stage stage;

	stage_open(&stage);
	for (size_t i = 0; i < ARRAY_LENGTH(kept); i++) {
		char words[512], sentence[200];
		const struct stage_case one = { kept[i].name, NULL, words };

		text_format(words, sizeof(words), "%s --from docs/results/%s.json", kept[i].words,
			    kept[i].name);
		for (size_t j = 0; kept[i].endings[j] != NULL; j++)
			text_format(words + strlen(words), sizeof(words) - strlen(words),
				    " -o @/%s.%s", kept[i].name, kept[i].endings[j]);
		stage_run(&stage, kept[i].command, &one, 1);
		for (size_t j = 0; kept[i].endings[j] != NULL; j++) {
			text_format(sentence, sizeof(sentence), "%s.%s is made from its JSON",
				    kept[i].name, kept[i].endings[j]);
			EXPECT_THAT(sentence,
				    is_same_file(&stage, kept[i].name, kept[i].endings[j]));
		}
	}
	sink_release(&stage.text);
	return tap_done();
}
