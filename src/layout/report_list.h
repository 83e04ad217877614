/* SPDX-License-Identifier: MIT */
/*
 * Lists of a JSON document that are too long to be in memory as a whole: their
 * elements are made by several threads and written in their order.
 */
#ifndef HL_LAYOUT_REPORT_LIST_H
#define HL_LAYOUT_REPORT_LIST_H

#include "layout/json.h"
#include "layout/report.h"
#include "layout/shape.h"

/* What each thread has of its own. */
struct hl_list_scratch {
	struct hl_json json;
	struct hl_text text;	/* elements as they are printed */
	struct hl_text word;	/* for whoever makes an element: a name, a declaration */
	struct hl_shape shape;	/* likewise */
};

struct hl_list {
	const struct hl_report *report;
	bool begun;		/* it has an element */
	void *arg;
};

/* Writes the n elements that make gives, each of which is freed here. */
typedef cJSON *hl_list_make(const struct hl_list *list, struct hl_list_scratch *scratch,
			    uint32_t i);
int hl_list_write(struct hl_list *list, uint32_t n, hl_list_make *make);

/* Writes an element for each fault of a ranking. */
typedef cJSON *hl_list_make_fault(const struct hl_report *report, struct hl_list_scratch *scratch,
				  struct hl_subject subject, const struct hl_fault *fault);
int hl_list_write_faults(struct hl_list *list, const struct hl_ranking *faults,
			 hl_list_make_fault *make);

/* Adds the word of the scratch as a string, or null when it is empty. */
void hl_list_add_word(struct hl_list_scratch *scratch, cJSON *object, const char *key);

/* Writes a text and empties it. */
int hl_list_write_text(const struct hl_report *report, struct hl_text *text);

/* The faults that the report is about: all, or with --check, what is not accepted. */
const struct hl_ranking *hl_report_ranking(const struct hl_report *report);

#endif
