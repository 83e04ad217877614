// SPDX-License-Identifier: MIT
#include "layout/diff.h"

#include "layout/clean.h"
#include "layout/out.h"
#include "layout/report_list.h"

#include <errno.h>

/* ---- Text. ---- */

static void add_pair(struct hl_text *text, const char *what, uint64_t was, uint64_t is)
{
	hl_text_puts(text, what);
	hl_text_putc(text, ' ');
	hl_text_u64(text, was);
	if (was != is) {
		hl_text_puts(text, " -> ");
		hl_text_u64(text, is);
	}
}

static void add_moved(void *arg, const struct hl_moved *moved)
{
	struct hl_out *out = arg;
	struct hl_text *text = &out->text;

	hl_text_spaces(text, HL_OUT_INDENT);
	hl_clean_add(text, moved->name);
	if (moved->old_line != moved->new_line)
		hl_text_printf(text, " moved from line %llu to line %llu (offset %llu -> %llu)",
			       (unsigned long long)moved->old_line,
			       (unsigned long long)moved->new_line,
			       (unsigned long long)moved->old_offset,
			       (unsigned long long)moved->new_offset);
	if (moved->crosses) {
		hl_text_puts(text, moved->old_line != moved->new_line ? " and" : "");
		hl_out_paint(out, HL_RED, " crosses a line now");
	}
	hl_text_putc(text, '\n');
}

/* The words for what happened; NULL when there is nothing but faults and members. */
static const char *headline(unsigned what)
{
	if (what & HL_CHANGE_APPEARED)
		return "appeared";
	if (what & HL_CHANGE_VANISHED)
		return "vanished";
	if (what & HL_CHANGE_GREW)
		return "grew";
	if (what & HL_CHANGE_SHRANK)
		return "shrank";
	return "changed";
}

static struct hl_subject subject_of(const struct hl_change *change, const struct hl_diff *diff,
				    const struct hl_types **types)
{
	bool old = !change->new_subject.type;

	*types = old ? diff->before.survey->types : diff->after.survey->types;
	return old ? change->old_subject : change->new_subject;
}

static void add_new_fault(void *arg, const struct hl_fault *fault)
{
	struct hl_out *out = arg;

	hl_text_spaces(&out->text, HL_OUT_INDENT);
	hl_out_paint(out, HL_YELLOW, "new fault: ");
	hl_text_puts(&out->text, hl_fault_name(fault->kind));
	hl_text_printf(&out->text, " (%u)\n", fault->score);
	hl_out_sentences(out, fault->evidence, HL_OUT_INDENT + 2);
}

static int add_change(struct hl_out *out, const struct hl_diff *diff,
		      const struct hl_change *change)
{
	const struct hl_types *types;
	struct hl_subject subject = subject_of(change, diff, &types);
	struct hl_text *text = &out->text;
	bool both = change->old_subject.type && change->new_subject.type;
	uint64_t size = both || change->new_subject.type ? change->new_size : change->old_size;
	uint64_t lines = both || change->new_subject.type ? change->new_lines : change->old_lines;
	int status = 0;

	hl_out_paint(out, change->what & HL_CHANGE_WORSE ? HL_RED : HL_GREEN,
		     headline(change->what));
	hl_text_puts(text, "  ");
	hl_out_begin(out, HL_BOLD);
	hl_subject_name(text, types, subject);
	hl_out_end(out);
	hl_text_puts(text, "  ");
	add_pair(text, "size", both ? change->old_size : size, size);
	hl_text_puts(text, ", ");
	add_pair(text, "lines", both ? change->old_lines : lines, lines);
	hl_text_puts(text, "  ");
	hl_out_begin(out, HL_DIM);
	hl_subject_declared(text, types, subject);
	hl_out_end(out);
	hl_text_putc(text, '\n');
	if (both)
		status = hl_diff_moved(diff, change, add_moved, out);
	for (uint32_t i = 0; i < change->n_faults && !status; i++)
		status = hl_show_ranked(diff->after.survey, &diff->fault[change->first_fault + i],
					false, add_new_fault, out);
	if (change->what & HL_CHANGE_MENDED) {
		hl_text_spaces(text, HL_OUT_INDENT);
		hl_text_puts(text, "a fault is no more\n");
	}
	return status;
}

static void add_summary(struct hl_out *out, const struct hl_diff *diff, const char *before,
			const char *after)
{
	static const struct {
		unsigned what;
		const char *word;
	} counted[] = {
		{ HL_CHANGE_GREW, "grew" }, { HL_CHANGE_SHRANK, "shrank" },
		{ HL_CHANGE_MORE_LINES, "on more lines" },
		{ HL_CHANGE_CROSSES, "with a member that crosses a line now" },
		{ HL_CHANGE_FAULT, "with a new fault" },
		{ HL_CHANGE_MOVED, "with a member on another line" },
		{ HL_CHANGE_MENDED, "with a fault less" },
		{ HL_CHANGE_APPEARED, "appeared" }, { HL_CHANGE_VANISHED, "vanished" },
	};

	hl_out_begin(out, HL_BOLD);
	hl_clean_add(&out->text, before);
	hl_text_puts(&out->text, " -> ");
	hl_clean_add(&out->text, after);
	hl_out_end(out);
	hl_text_puts(&out->text, ": ");
	hl_out_plural(out, diff->n, "type");
	hl_text_printf(&out->text, " changed, %u did not\n", diff->same);
	for (size_t i = 0; i < sizeof(counted) / sizeof(counted[0]); i++) {
		uint32_t n = 0;

		for (uint32_t k = 0; k < diff->n; k++)
			n += (diff->change[k].what & counted[i].what) != 0;
		if (n)
			hl_text_printf(&out->text, "%8u  %s\n", n, counted[i].word);
	}
	if (diff->n)
		hl_text_putc(&out->text, '\n');
}

int hl_report_diff(const struct hl_report *report, const struct hl_diff *diff, const char *before,
		   const char *after)
{
	struct hl_out out = { .report = report };
	int status = 0;

	add_summary(&out, diff, before, after);
	for (uint32_t i = 0; i < diff->n && !status; i++) {
		status = add_change(&out, diff, &diff->change[i]);
		if (!status)
			status = hl_out_flush_when_full(&out);
	}
	return hl_out_finish(&out, status);
}

/* ---- JSON. ---- */

struct target {
	struct hl_list_scratch *scratch;
	cJSON *array;
};

static void add_moved_json(void *arg, const struct hl_moved *moved)
{
	struct target *target = arg;
	struct hl_json *json = &target->scratch->json;
	cJSON *object = hl_json_add_object(json, target->array, NULL);

	hl_json_add_string(json, object, "name", moved->name);
	hl_json_add_number(json, object, "old_offset", moved->old_offset);
	hl_json_add_number(json, object, "new_offset", moved->new_offset);
	hl_json_add_number(json, object, "old_line", moved->old_line);
	hl_json_add_number(json, object, "new_line", moved->new_line);
	hl_json_add_bool(json, object, "crosses", moved->crosses);
}

static void add_fault_json(void *arg, const struct hl_fault *fault)
{
	struct target *target = arg;
	struct hl_json *json = &target->scratch->json;
	cJSON *object = hl_json_add_object(json, target->array, NULL);

	hl_json_add_string(json, object, "fault", hl_fault_name(fault->kind));
	hl_json_add_number(json, object, "score", fault->score);
	hl_json_add_string(json, object, "evidence", fault->evidence);
}

static void add_what(struct hl_json *json, cJSON *object, unsigned what)
{
	static const char *const words[] = {
		"grew", "more-lines", "crosses", "new-fault", "shrank", "fewer-lines", "moved",
		"fault-gone", "appeared", "vanished",
	};
	cJSON *array = hl_json_add_array(json, object, "what");

	for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (what & 1u << i)
			hl_json_add_string(json, array, NULL, words[i]);
	}
}

static void add_side(struct hl_json *json, cJSON *object, const char *key, bool there,
		     uint64_t size, uint64_t lines)
{
	cJSON *side;

	if (!there) {
		hl_json_add_null(json, object, key);
		return;
	}
	side = hl_json_add_object(json, object, key);
	hl_json_add_number(json, side, "size", size);
	hl_json_add_number(json, side, "lines", lines);
}

static cJSON *make_change(const struct hl_list *list, struct hl_list_scratch *scratch, uint32_t i)
{
	const struct hl_diff *diff = list->arg;
	const struct hl_change *change = &diff->change[i];
	const struct hl_types *types;
	struct hl_subject subject = subject_of(change, diff, &types);
	struct hl_json *json = &scratch->json;
	cJSON *object = hl_json_object(json);
	struct target target = { scratch, NULL };

	hl_text_reset(&scratch->word);
	hl_subject_name(&scratch->word, types, subject);
	hl_list_add_word(scratch, object, "type");
	hl_text_reset(&scratch->word);
	hl_subject_declared(&scratch->word, types, subject);
	hl_list_add_word(scratch, object, "declared");
	add_what(json, object, change->what);
	hl_json_add_bool(json, object, "worse", change->what & HL_CHANGE_WORSE);
	add_side(json, object, "old", change->old_subject.type, change->old_size,
		 change->old_lines);
	add_side(json, object, "new", change->new_subject.type, change->new_size,
		 change->new_lines);
	target.array = hl_json_add_array(json, object, "moved");
	if (change->old_subject.type && change->new_subject.type &&
	    hl_diff_moved(diff, change, add_moved_json, &target))
		json->failed = true;
	target.array = hl_json_add_array(json, object, "new_faults");
	for (uint32_t k = 0; k < change->n_faults; k++) {
		if (hl_show_ranked(diff->after.survey, &diff->fault[change->first_fault + k],
				   false, add_fault_json, &target))
			json->failed = true;
	}
	return object;
}

int hl_report_diff_json(const struct hl_report *report, const struct hl_diff *diff,
			const char *before, const char *after)
{
	struct hl_list list = { .report = report, .arg = (void *)diff };
	struct hl_json json = { 0 };
	struct hl_text text = HL_TEXT_INIT;
	cJSON *head = hl_json_object(&json);
	int status;

	hl_json_add_number(&json, head, "schema", 1);
	hl_json_add_string(&json, head, "old", before);
	hl_json_add_string(&json, head, "new", after);
	hl_json_add_number(&json, head, "line_bytes", report->survey->ruler.line);
	hl_json_add_bool(&json, head, "worse", diff->worse);
	hl_json_add_number(&json, head, "same", diff->same);
	status = hl_json_print_open(&json, &text, head);
	hl_text_puts(&text, ",\n\"changes\":[");
	if (!status)
		status = hl_list_write_text(report, &text);
	if (!status)
		status = hl_list_write(&list, diff->n, make_change);
	hl_text_puts(&text, "]}\n");
	if (!status)
		status = hl_list_write_text(report, &text);
	hl_json_free(&json);
	hl_text_free(&text);
	return status;
}
