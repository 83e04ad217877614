/* SPDX-License-Identifier: MIT */
/*
 * Plots as SVG inside a page, drawn by gnuplot.
 */
#ifndef HL_BENCH_REPORT_PLOT_H
#define HL_BENCH_REPORT_PLOT_H

#include "bench/harness.h"
#include "debuginfo/text.h"

/* Adds the plot of a scenario; number: of the plot on the page. False: gnuplot cannot be
 * run. */
bool bench_add_plot(struct hl_text *text, const struct bench_scenario *scenario, unsigned number);

#endif
