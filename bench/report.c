// SPDX-License-Identifier: MIT
#include "bench/report.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *bench_kind_name(enum bench_kind kind)
{
	static const char *const names[] = {
		[BENCH_OURS] = "ours",
		[BENCH_AS_IT_WAS] = "as-it-was",
		[BENCH_PEER] = "peer",
		[BENCH_LIMIT] = "limit",
	};

	return names[kind];
}

bool bench_was_measured(const struct bench_row *row)
{
	return !row->why_not && !row->failed && row->runs;
}

const struct bench_row *bench_ours(const struct bench_scenario *scenario)
{
	for (unsigned i = 0; i < scenario->n_rows; i++) {
		const struct bench_row *row = &scenario->row[i];

		if (row->kind == BENCH_OURS && bench_was_measured(row))
			return row;
	}
	return NULL;
}

bool bench_ratio_to(const struct bench_scenario *scenario, const struct bench_row *to,
		    struct bench_stats *ratio)
{
	const struct bench_row *ours = bench_ours(scenario);

	if (!ours || to == ours || !bench_was_measured(to))
		return false;
	*ratio = bench_ratio(ours->value, to->value, to->runs);
	return true;
}

bool bench_other_ratio(const struct bench_scenario *scenario, const struct bench_row *of,
		       const struct bench_row *to, struct bench_stats *ratio)
{
	if (of->kind != BENCH_OURS || of == bench_ours(scenario) || !bench_was_measured(of) ||
	    to->kind == BENCH_OURS || !bench_was_measured(to))
		return false;
	*ratio = bench_ratio(of->value, to->value, to->runs);
	return true;
}

/* 12345 as "12 345". */
static void add_grouped(struct hl_text *text, const char *digits)
{
	size_t n = strlen(digits);

	for (size_t i = 0; i < n; i++) {
		if (i && (n - i) % 3 == 0)
			hl_text_putc(text, ' ');
		hl_text_putc(text, digits[i]);
	}
}

void bench_add_figure(struct hl_text *text, double value)
{
	char digits[64];
	uint64_t step = 1;

	if (value < 100) {
		hl_text_printf(text, value < 10 ? "%.2f" : "%.1f", value);
		return;
	}
	while (value / (double)step >= 10000)
		step *= 10;
	snprintf(digits, sizeof(digits), "%" PRIu64, (uint64_t)(value / (double)step + 0.5) * step);
	add_grouped(text, digits);
}

static const char *ratio_format(double ratio)
{
	if (ratio < 0.1)
		return "%.2g";
	if (ratio < 10)
		return "%.2f";
	return ratio < 100 ? "%.1f" : "%.0f";
}

void bench_add_ratio(struct hl_text *text, struct bench_stats ratio)
{
	hl_text_printf(text, ratio_format(ratio.median), ratio.median);
	hl_text_puts(text, " (");
	hl_text_printf(text, ratio_format(ratio.min), ratio.min);
	hl_text_puts(text, " to ");
	hl_text_printf(text, ratio_format(ratio.max), ratio.max);
	hl_text_puts(text, ")");
}
