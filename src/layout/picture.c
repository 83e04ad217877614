// SPDX-License-Identifier: MIT
#include "picture.h"

#include "body.h"

static int write_picture(struct hl_body *body, hl_type_id id, const struct hl_placing *placing)
{
	const struct hl_type *type = &body->types->type[id];
	bool named_by_typedef = type->kind == HL_TYPEDEF;

	if (named_by_typedef)
		hl_text_puts(body->text, "typedef ");

	int error = hl_body_write(body, hl_type_strip(body->types, id), placing);

	if (named_by_typedef) {
		hl_text_putc(body->text, ' ');
		hl_text_puts(body->text, hl_type_name(body->types, id));
	}
	hl_text_puts(body->text, ";\n");
	return error;
}

int hl_picture(struct hl_text *text, const struct hl_types *types, hl_type_id id, unsigned line,
	       struct hl_shape *scratch)
{
	struct hl_body body = { .text = text, .types = types, .line = line, .scratch = scratch };

	return write_picture(&body, id, NULL);
}

int hl_picture_of_placing(struct hl_text *text, const struct hl_types *types, hl_type_id id,
			  const struct hl_placing *placing, unsigned line,
			  const char *const *changed)
{
	struct hl_body body = { .text = text, .types = types, .line = line, .changed = changed };

	return write_picture(&body, id, placing);
}
