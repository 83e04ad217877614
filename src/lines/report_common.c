// SPDX-License-Identifier: MIT
#include "lines/report.h"

#include <string.h>

static char letter_of(struct hl_letters *letters, uint32_t thread, char first)
{
	unsigned i = 0;

	while (i < letters->n && letters->thread[i] != thread)
		i++;
	if (i == 26)
		return first == 'A' ? '?' : '!';
	if (i == letters->n)
		letters->thread[letters->n++] = thread;
	return first + i;
}

void hl_lines_picture(struct hl_text *text, const struct hl_shown_line *line,
		      struct hl_letters *letters)
{
	for (unsigned i = 0; i < 64; i++) {
		if (line->writer[i] == HL_MANY)
			hl_text_putc(text, '*');
		else if (line->writer[i])
			hl_text_putc(text, letter_of(letters, line->writer[i], 'A'));
		else if (line->reader[i] == HL_MANY)
			hl_text_putc(text, '+');
		else if (line->reader[i])
			hl_text_putc(text, letter_of(letters, line->reader[i], 'a'));
		else
			hl_text_putc(text, '.');
	}
}

void hl_lines_thread(struct hl_text *text, const struct hl_findings *findings, uint32_t thread)
{
	const struct hl_group *group = &findings->group[hl_findings_group(findings, thread)];

	hl_text_puts(text, group->name);
	if (group->n_threads > 1)
		hl_text_printf(text, " %u", thread);
}

const char *hl_lines_verb(uint8_t flags)
{
	return flags & HL_RAW_RMW ? "changes" : flags & HL_RAW_WRITE ? "writes" : "reads";
}

bool hl_lines_not_seen(const struct hl_raw_module_read *module)
{
	const char *slash = strrchr(module->path, '/'), *name = slash ? slash + 1 : module->path;

	return !(module->raw.flags & HL_RAW_HOOKED) && strncmp(name, "linux-vdso", 10) &&
	       strncmp(name, "linux-gate", 10) && strncmp(name, "ld-linux", 8) &&
	       strncmp(name, "libhotline-c2c", 14);
}

void hl_lines_ending(struct hl_text *text, const struct hl_lines_process *process)
{
	const struct hl_raw_file *file = &process->file;

	if (!file->whole)
		hl_text_puts(text,
			     "killed, or still running: threads that had not ended are missing");
	else if (file->end.signal)
		hl_text_printf(text, "ended by signal %u (%s)", file->end.signal,
			       strsignal((int)file->end.signal));
}
