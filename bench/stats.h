/* SPDX-License-Identifier: MIT */
/*
 * The median and the range of some figures.
 */
#ifndef HL_BENCH_STATS_H
#define HL_BENCH_STATS_H

struct bench_stats {
	double median, min, max;
};

/* Of n figures, one at least, whose order is kept; all NAN: no memory. */
struct bench_stats bench_stats(const double *value, unsigned n);

/* Of the ratios of[i] / to[i]: pair by pair, so that what slowed down both in a turn
 * counts for neither. */
struct bench_stats bench_ratio(const double *of, const double *to, unsigned n);

#endif
