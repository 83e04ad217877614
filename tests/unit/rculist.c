// SPDX-License-Identifier: MIT
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <hotline/rculist.h>

struct letter {
	char name;
	struct hl_list_head link;
};

static struct letter a = { .name = 'a' }, b = { .name = 'b' }, c = { .name = 'c' },
		     d = { .name = 'd' };

/* The names of what a reader finds, in order. */
static const char *found(struct hl_list_head *list)
{
	static char names[8];
	struct letter *letter;
	size_t n = 0;

	hl_rcu_read_lock();
	hl_list_for_each_entry_rcu(letter, list, link) names[n++] = letter->name;
	hl_rcu_read_unlock();
	names[n] = '\0';
	return names;
}

/* The same backwards, as a changer finds it. */
static const char *found_backwards(struct hl_list_head *list)
{
	static char names[8];
	size_t n = 0;

	for (struct hl_list_head *link = list->prev; link != list; link = link->prev)
		names[n++] = hl_list_entry(link, struct letter, link)->name;
	names[n] = '\0';
	return names;
}

static void fill(struct hl_list_head *list)
{
	hl_list_init(list);
	hl_list_add_rcu(&b.link, list);
	hl_list_add_rcu(&a.link, list);
	hl_list_add_tail_rcu(&c.link, list);
}

static void an_empty_list_has_no_elements(void **state)
{
	HL_LIST_HEAD(list);

	(void)state;
	assert_true(hl_list_empty(&list));
	assert_string_equal(found(&list), "");
	assert_null(hl_list_first_or_null_rcu(&list, struct letter, link));
}

static void elements_are_added_at_both_ends(void **state)
{
	struct hl_list_head list;
	struct hl_list_head *link;
	int n = 0;

	(void)state;
	fill(&list);
	assert_false(hl_list_empty(&list));
	assert_string_equal(found(&list), "abc");
	assert_string_equal(found_backwards(&list), "cba");
	assert_ptr_equal(hl_list_first_or_null_rcu(&list, struct letter, link), &a);
	hl_list_for_each_rcu(link, &list) n++;
	assert_int_equal(n, 3);
}

static void a_reader_goes_on_from_what_was_taken_out(void **state)
{
	struct hl_list_head list;
	struct letter *at;
	char names[4] = "";
	size_t n = 0;

	(void)state;
	fill(&list);
	hl_rcu_read_lock();
	at = hl_list_first_or_null_rcu(&list, struct letter, link);
	hl_list_del_rcu(&a.link);
	assert_string_equal(found(&list), "bc");
	assert_string_equal(found_backwards(&list), "cb");
	hl_list_for_each_entry_continue_rcu(at, &list, link) names[n++] = at->name;
	hl_rcu_read_unlock();
	assert_string_equal(names, "bc");
}

static void one_takes_the_place_of_another(void **state)
{
	struct hl_list_head list;

	(void)state;
	fill(&list);
	hl_list_replace_rcu(&b.link, &d.link);
	assert_string_equal(found(&list), "adc");
	assert_string_equal(found_backwards(&list), "cda");
	assert_ptr_equal(b.link.next, &c.link); /* a reader at it goes on */
	hl_list_replace_rcu(&c.link, &b.link);
	assert_string_equal(found(&list), "adb");
	assert_string_equal(found_backwards(&list), "bda");
}

static void a_list_moves_into_another(void **state)
{
	struct hl_list_head list, more, none;

	(void)state;
	fill(&list);
	hl_list_init(&none);
	hl_list_init(&more);
	hl_list_add_rcu(&d.link, &more);
	hl_list_splice_rcu(&none, &list);
	hl_list_splice_tail_rcu(&none, &list);
	assert_string_equal(found(&list), "abc");
	hl_list_splice_rcu(&more, &list);
	assert_true(hl_list_empty(&more));
	assert_string_equal(found(&list), "dabc");
	assert_string_equal(found_backwards(&list), "cbad");
	hl_list_splice_tail_rcu(&list, &more);
	assert_string_equal(found(&more), "dabc");
	assert_string_equal(found_backwards(&more), "cbad");
	assert_true(hl_list_empty(&list));
}

static void a_changer_may_take_out_what_it_is_at(void **state)
{
	struct hl_list_head list;
	struct letter *letter, *after;

	(void)state;
	fill(&list);
	hl_list_for_each_entry_safe(letter, after, &list, link)
	{
		if (letter == &c)
			continue;
		hl_list_del_rcu(&letter->link);
		memset(&letter->link, 0, sizeof(letter->link));
	}
	assert_string_equal(found(&list), "c");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_list_has_no_elements),
		cmocka_unit_test(elements_are_added_at_both_ends),
		cmocka_unit_test(a_reader_goes_on_from_what_was_taken_out),
		cmocka_unit_test(one_takes_the_place_of_another),
		cmocka_unit_test(a_list_moves_into_another),
		cmocka_unit_test(a_changer_may_take_out_what_it_is_at),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
