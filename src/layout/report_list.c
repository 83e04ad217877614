// SPDX-License-Identifier: MIT
#include "layout/report_list.h"

#include "layout/chunks.h"

#include <errno.h>

#define CHUNK	64	/* elements made at a time */

struct run {
	struct hl_list *list;
	hl_list_make *make;
	const struct hl_ranking *faults;	/* for what shows faults ... */
	hl_list_make_fault *make_fault;		/* ... instead of make */
};

static int print(struct hl_list_scratch *scratch, cJSON *item)
{
	hl_text_puts(&scratch->text, ",\n");
	return hl_json_print(&scratch->json, &scratch->text, item);
}

struct target {
	const struct run *run;
	struct hl_list_scratch *scratch;
	struct hl_subject subject;
	int status;
};

static void print_fault(void *arg, const struct hl_fault *fault)
{
	struct target *target = arg;
	const struct run *run = target->run;

	target->status = print(target->scratch, run->make_fault(run->list->report, target->scratch,
								target->subject, fault));
}

static int print_ranked(const struct run *run, struct hl_list_scratch *scratch,
			const struct hl_ranked *ranked)
{
	const struct hl_survey *survey = run->list->report->survey;
	struct target target = {
		.run = run,
		.scratch = scratch,
		.subject = hl_survey_subject(survey, ranked->index),
	};
	int status = hl_show_ranked(survey, ranked, true, print_fault, &target);

	return status ? status : target.status;
}

static int make(void *arg, void *memory, uint32_t first, uint32_t n)
{
	const struct run *run = arg;
	int status = 0;

	for (uint32_t i = first; i < first + n && !status; i++) {
		if (run->make_fault)
			status = print_ranked(run, memory, &run->faults->fault[i]);
		else
			status = print(memory, run->make(run->list, memory, i));
	}
	return status;
}

/* Each element has a comma in front, of which the list's first is no use. */
static int take(void *arg, void *memory)
{
	const struct run *run = arg;
	struct hl_list_scratch *scratch = memory;
	const struct hl_report *report = run->list->report;
	size_t skip = run->list->begun ? 0 : 1;
	int status;

	if (scratch->text.failed)
		return -ENOMEM;
	if (!scratch->text.len)
		return 0;
	run->list->begun = true;
	status = report->write(report->write_arg, scratch->text.at + skip,
			       scratch->text.len - skip);
	hl_text_reset(&scratch->text);
	return status;
}

static void drop(void *memory)
{
	struct hl_list_scratch *scratch = memory;

	hl_json_free(&scratch->json);
	hl_text_free(&scratch->text);
	hl_text_free(&scratch->word);
	hl_shape_free(&scratch->shape);
}

static int write_all(struct run *run, uint32_t n)
{
	const struct hl_chunks chunks = {
		.n = n,
		.chunk = CHUNK,
		.threads = run->list->report->survey->threads,
		.scratch_size = sizeof(struct hl_list_scratch),
		.arg = run,
		.make = make,
		.take = take,
		.drop = drop,
	};

	return hl_chunks_run(&chunks);
}

int hl_list_write(struct hl_list *list, uint32_t n, hl_list_make *one)
{
	struct run run = { .list = list, .make = one };

	return write_all(&run, n);
}

int hl_list_write_faults(struct hl_list *list, const struct hl_ranking *faults,
			 hl_list_make_fault *one)
{
	struct run run = { .list = list, .faults = faults, .make_fault = one };

	return write_all(&run, faults->n);
}

void hl_list_add_word(struct hl_list_scratch *scratch, cJSON *object, const char *key)
{
	if (scratch->word.failed)
		scratch->json.failed = true;
	else
		hl_json_add_string(&scratch->json, object, key,
				   scratch->word.len ? scratch->word.at : NULL);
}

int hl_list_write_text(const struct hl_report *report, struct hl_text *text)
{
	int status = text->failed ? -ENOMEM :
				    report->write(report->write_arg, text->at, text->len);

	hl_text_reset(text);
	return status;
}

const struct hl_ranking *hl_report_ranking(const struct hl_report *report)
{
	return report->check ? &report->check->faults : report->ranking;
}
