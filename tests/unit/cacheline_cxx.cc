/* SPDX-License-Identifier: MIT */
/* hotline/cacheline.h in C++17. */
#include "cacheline_tests.h"

#include <memory>
#include <type_traits>
#include <vector>

static_assert(std::is_standard_layout<message_aligned>::value, "offsetof works");
static_assert(std::is_trivially_copyable<message_aligned>::value, "memcpy works");
static_assert(std::is_aggregate<message_aligned>::value, "braces work");

static void size_aligned_elements_of_a_vector_are_aligned(void **state)
{
	std::vector<message_aligned> messages(7);

	(void)state;
	for (auto &message : messages)
		assert_true(is_aligned(&message, sizeof(struct message)));
}

static void size_aligned_template_serves_without_the_macro(void **state)
{
	auto message = std::make_unique<hl_size_aligned<struct message>>();

	(void)state;
	static_assert(std::is_same<message_aligned, hl_size_aligned<struct message>>::value, "");
	assert_true(is_aligned(message.get(), sizeof(struct message)));
}

static void new_respects_the_alignment(void **state)
{
	(void)state;
	/* Several at once: the first could be aligned by luck. */
	std::vector<std::unique_ptr<struct queue>> queues(8);
	for (auto &queue : queues) {
		queue = std::make_unique<struct queue>();
		assert_true(is_aligned(queue.get(), HL_CACHE_LINE_PAIR));
	}
}

int main()
{
	const struct CMUnitTest tests[] = {
		CACHELINE_TESTS,
		cmocka_unit_test(size_aligned_elements_of_a_vector_are_aligned),
		cmocka_unit_test(size_aligned_template_serves_without_the_macro),
		cmocka_unit_test(new_respects_the_alignment),
	};

	return cmocka_run_group_tests_name("cacheline_cxx", tests, nullptr, nullptr);
}
