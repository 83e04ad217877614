/* SPDX-License-Identifier: MIT */
/* Declarations, written inside out. */
#include "layout_types.h"

#include "debuginfo/text.h"
#include "layout/picture.h"

static struct graph graph;

static int begin(void **state)
{
	(void)state;
	begin_graph(&graph);
	return 0;
}

static void assert_declared(hl_type_id id, const char *name, const char *expected)
{
	struct hl_text text = HL_TEXT_INIT;

	hl_declare(&text, &graph.types, id, name);
	assert_string_equal(text.at, expected);
	hl_text_free(&text);
}

/* A function of the parameters, which 0 ends. */
static hl_type_id function(hl_type_id result, int flags, const hl_type_id *parameters)
{
	hl_type_id id = add_with_members(&graph, HL_FUNCTION, NULL, 0, 1);

	graph.type[id].target = result;
	graph.type[id].flags = (uint8_t)flags;
	for (; *parameters; parameters++)
		add_member(&graph, NULL, *parameters, 0);
	return id;
}

static void pointers_and_qualifiers(void **state)
{
	hl_type_id c = add_alias(&graph, HL_CONST, graph.t_char, NULL);
	hl_type_id p = add_pointer(&graph, c);
	hl_type_id cp = add_alias(&graph, HL_CONST, p, NULL);
	hl_type_id v = add_alias(&graph, HL_VOLATILE, c, NULL);
	hl_type_id atomic = add_alias(&graph, HL_ATOMIC, graph.t_long, NULL);
	hl_type_id atomic_p = add_alias(&graph, HL_ATOMIC, p, NULL);

	(void)state;
	assert_declared(graph.t_int, "a", "int a");
	assert_declared(graph.t_int, NULL, "int");
	assert_declared(p, "a", "const char *a");
	assert_declared(p, "", "const char *");
	assert_declared(cp, "a", "const char *const a");
	assert_declared(v, "a", "const volatile char a");
	assert_declared(add_pointer(&graph, cp), "a", "const char *const *a");
	assert_declared(atomic, "a", "_Atomic long a");
	assert_declared(atomic_p, "a", "const char *_Atomic a");
	assert_declared(0, NULL, "void");
}

static void arrays(void **state)
{
	hl_type_id row = add_array(&graph, graph.t_int, 4);
	hl_type_id matrix = add_array(&graph, row, 3);

	(void)state;
	assert_declared(matrix, "m", "int m[3][4]");
	assert_declared(add_pointer(&graph, row), "p", "int (*p)[4]");
	assert_declared(add_pointer(&graph, row), NULL, "int (*)[4]");
	assert_declared(add_array(&graph, add_pointer(&graph, row), 2), "p", "int (*p[2])[4]");
	assert_declared(add_alias(&graph, HL_CONST, row, NULL), "c", "const int c[4]");
	assert_declared(add_array(&graph, graph.t_char, 0), "tail", "char tail[]");
}

static void vectors(void **state)
{
	hl_type_id vector = add_array(&graph, graph.t_int, 4);

	(void)state;
	graph.type[vector].flags = HL_TYPE_VECTOR;
	assert_declared(vector, "v", "int __attribute__((__vector_size__(16))) v");
	assert_declared(add_pointer(&graph, vector), "v",
			"int __attribute__((__vector_size__(16))) *v");
}

static void functions(void **state)
{
	const hl_type_id none[] = { 0 }, one[] = { graph.t_int, 0 };
	hl_type_id plain = function(graph.t_int, 0, none);
	hl_type_id variadic = function(graph.t_int, HL_TYPE_VARIADIC, one);

	(void)state;

	hl_type_id returns_function = function(add_pointer(&graph, variadic), 0, one);
	hl_type_id table = add_array(&graph, add_pointer(&graph, plain), 3);

	assert_declared(add_pointer(&graph, plain), "fn", "int (*fn)(void)");
	assert_declared(table, "fn", "int (*fn[3])(void)");
	assert_declared(add_pointer(&graph, table), "fn", "int (*(*fn)[3])(void)");
	assert_declared(variadic, "f", "int f(int, ...)");
	assert_declared(add_pointer(&graph, returns_function), "fn", "int (*(*fn)(int))(int, ...)");
}

static void tags_and_typedefs(void **state)
{
	hl_type_id foo = add_with_members(&graph, HL_STRUCT, "foo", 4, 4);

	(void)state;
	add_member(&graph, "a", graph.t_int, 0);
	assert_declared(add_pointer(&graph, foo), "p", "struct foo *p");
	assert_declared(add_alias(&graph, HL_TYPEDEF, foo, "foo_t"), "f", "foo_t f");

	hl_type_id unnamed = add_with_members(&graph, HL_UNION, NULL, 4, 4);

	add_member(&graph, "a", graph.t_int, 0);
	add_bits(&graph, "b", graph.t_int, 0, 3);
	assert_declared(unnamed, "u", "union { int a; int b:3; } u");
}

static void cxx(void **state)
{
	const hl_type_id none[] = { 0 };
	hl_type_id plain = function(graph.t_int, 0, none);
	hl_type_id foo = add_with_members(&graph, HL_CLASS, "foo", 4, 4);
	hl_type_id reference = add_pointer(&graph, foo), moved = add_pointer(&graph, foo);
	hl_type_id data, method;

	(void)state;
	graph.type[reference].kind = HL_LVALUE_REF;
	graph.type[moved].kind = HL_RVALUE_REF;
	assert_declared(reference, "r", "class foo &r");
	assert_declared(moved, "r", "class foo &&r");
	data = add_with_members(&graph, HL_MEMBER_POINTER, NULL, 8, 8);
	graph.type[data].target = graph.t_int;
	graph.type[data].count = 1;
	graph.member[graph.types.n_members++] = (struct hl_member){ .type = foo };
	assert_declared(data, "p", "int foo::*p");
	method = add_with_members(&graph, HL_MEMBER_POINTER, NULL, 16, 8);
	graph.type[method].target = plain;
	graph.type[method].count = 1;
	graph.member[graph.types.n_members++] = (struct hl_member){ .type = foo };
	assert_declared(method, "p", "int (foo::*p)(void)");
}

/* Function types that take function types, so that each level doubles the text. */
static void text_that_would_never_end_is_cut(void **state)
{
	struct hl_text text = HL_TEXT_INIT;
	hl_type_id id = graph.t_int;

	(void)state;
	for (int i = 0; i < 40; i++)
		id = add_pointer(&graph, function(id, 0, (hl_type_id[]){ id, id, 0 }));
	hl_declare(&text, &graph.types, id, "f");
	assert_true(text.len < 1000000);
	hl_text_free(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(pointers_and_qualifiers, begin),
		cmocka_unit_test_setup(arrays, begin),
		cmocka_unit_test_setup(vectors, begin),
		cmocka_unit_test_setup(functions, begin),
		cmocka_unit_test_setup(tags_and_typedefs, begin),
		cmocka_unit_test_setup(cxx, begin),
		cmocka_unit_test_setup(text_that_would_never_end_is_cut, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
