// SPDX-License-Identifier: MIT
#include "bench/harness.h"

#include <stdlib.h>
#include <string.h>

static double ns_per_one(uint64_t ns, uint64_t done)
{
	return (double)ns / (double)done;
}

static double per_second(uint64_t ns, uint64_t done)
{
	return (double)done * 1e9 / (double)ns;
}

const struct bench_metric bench_ns_per_call = {
	.name = "ns_per_call",
	.unit = "ns a call",
	.least_loops = 16,
	.value = ns_per_one,
};
const struct bench_metric bench_ns_per_callback = {
	.name = "ns_per_callback",
	.unit = "ns a callback",
	.least_loops = 4096,
	.value = ns_per_one,
};
const struct bench_metric bench_ns_per_section = {
	.name = "ns_per_section",
	.unit = "ns a section",
	.least_loops = 4096,
	.value = ns_per_one,
};
const struct bench_metric bench_ns_per_grace_period = {
	.name = "ns_per_grace_period",
	.unit = "ns a grace period",
	.least_loops = 4,
	.value = ns_per_one,
};
const struct bench_metric bench_messages_per_second = {
	.name = "messages_per_second",
	.unit = "messages a second",
	.higher_is_better = true,
	/* A run that is about as long as a queue measures how it fills or empties. */
	.least_loops = 2048,
	.value = per_second,
};
const struct bench_metric bench_operations_per_second = {
	.name = "operations_per_second",
	.unit = "operations a second",
	.higher_is_better = true,
	.least_loops = 2048,
	.value = per_second,
};
const struct bench_metric bench_lookups_per_second = {
	.name = "lookups_per_second",
	.unit = "lookups a second",
	.higher_is_better = true,
	.least_loops = 2048,
	.value = per_second,
};
const struct bench_metric bench_pages_per_second = {
	.name = "pages_per_second",
	.unit = "pages a second",
	.higher_is_better = true,
	.least_loops = 256,
	.value = per_second,
};

struct bench_scenario *bench_add_scenario(struct bench_experiment *experiment, const char *name,
					  const char *title, const struct bench_metric *metric,
					  unsigned threads)
{
	struct bench_scenario *all;
	char *own_name;

	if (experiment->wants && !experiment->wants(experiment->wants_arg, experiment->name, name))
		return NULL;
	all = reallocarray(experiment->scenario, experiment->n_scenarios + 1, sizeof(*all));
	own_name = strdup(name);
	if (all)
		experiment->scenario = all;
	if (!all || !own_name) {
		free(own_name);
		experiment->no_memory = true;
		return NULL;
	}
	all += experiment->n_scenarios++;
	*all = (struct bench_scenario){
		.name = own_name,
		.title = title,
		.metric = metric,
		.threads = threads,
	};
	return all;
}

void bench_add_row(struct bench_experiment *experiment, struct bench_scenario *scenario,
		   const struct bench_row *row)
{
	struct bench_row *all;

	if (!scenario)
		return;
	all = reallocarray(scenario->row, scenario->n_rows + 1, sizeof(*all));
	if (!all) {
		experiment->no_memory = true;
		return;
	}
	scenario->row = all;
	all += scenario->n_rows++;
	*all = *row;
	if (row->why_not) {
		all->why_not = strdup(row->why_not);
		experiment->no_memory |= !all->why_not;
	}
}

void bench_free(struct bench_experiment *experiment)
{
	for (unsigned i = 0; i < experiment->n_scenarios; i++) {
		struct bench_scenario *scenario = &experiment->scenario[i];

		for (unsigned k = 0; k < scenario->n_rows; k++) {
			free(scenario->row[k].why_not);
			free(scenario->row[k].value);
		}
		free(scenario->row);
		free(scenario->name);
	}
	if (experiment->end)
		experiment->end();
	free(experiment->scenario);
	experiment->scenario = NULL;
	experiment->n_scenarios = 0;
}
