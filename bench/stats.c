// SPDX-License-Identifier: MIT
#include "bench/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Sorts the figures. */
static struct bench_stats stats_of(double *value, unsigned n)
{
	qsort(value, n, sizeof(*value), compare);
	return (struct bench_stats){
		.median = n % 2 ? value[n / 2] : (value[n / 2 - 1] + value[n / 2]) / 2,
		.min = value[0],
		.max = value[n - 1],
	};
}

struct bench_stats bench_stats(const double *value, unsigned n)
{
	struct bench_stats stats = { NAN, NAN, NAN };
	double *sorted = malloc(n * sizeof(*sorted));

	if (sorted) {
		memcpy(sorted, value, n * sizeof(*sorted));
		stats = stats_of(sorted, n);
	}
	free(sorted);
	return stats;
}

struct bench_stats bench_ratio(const double *of, const double *to, unsigned n)
{
	struct bench_stats stats = { NAN, NAN, NAN };
	double *ratio = malloc(n * sizeof(*ratio));

	for (unsigned i = 0; ratio && i < n; i++)
		ratio[i] = of[i] / to[i];
	if (ratio)
		stats = stats_of(ratio, n);
	free(ratio);
	return stats;
}
