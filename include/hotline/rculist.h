/* SPDX-License-Identifier: MIT */
/*
 * A doubly linked list that is read under RCU (hotline/rcu.h) while it is changed.
 *
 * Who changes it excludes the other changers, by a lock for instance. Readers walk along it in
 * read sections, forwards, without one; they see each element that is there during the whole
 * walk, and perhaps some of those that come or go. What was taken out of the list still
 * leads on into it: give it away with hl_free_rcu() or hl_call_rcu(), and do not put it into a list
 * before a grace period has passed.
 *
 *	struct route {
 *		struct hl_list_head link;
 *		int to;
 *	};
 *	static HL_LIST_HEAD(routes);
 *
 *	hl_rcu_read_lock();
 *	hl_list_for_each_entry_rcu(route, &routes, link)
 *		use(route->to);
 *	hl_rcu_read_unlock();
 *
 * The names of the kernel's list.h and rculist.h. In the comments, who may call a function
 * at the same time as what:
 *
 *	reader		in a read section, beside everything
 *	changer		beside readers
 *	alone		beside nobody
 *
 * No function can fail, waits, or allocates memory.
 */
#ifndef HOTLINE_RCULIST_H
#define HOTLINE_RCULIST_H

#include <stdbool.h>
#include <stddef.h>

#include <hotline/rcu.h>

HL_BEGIN_DECLS

/* struct hl_list_head - the head of a list, and the place in each element */
struct hl_list_head {
	struct hl_list_head *next, *prev;
};

/* HL_LIST_HEAD(name) - defines an empty list; HL_LIST_HEAD_INIT(name) is its initialiser */
#define HL_LIST_HEAD_INIT(name) \
	{ \
		&(name), &(name) \
	}
#define HL_LIST_HEAD(name) struct hl_list_head name = HL_LIST_HEAD_INIT(name)

/* hl_list_init - makes an empty list of *head. Alone. */
static inline void hl_list_init(struct hl_list_head *head)
{
	head->next = head;
	head->prev = head;
}

/* hl_list_add_rcu, hl_list_add_tail_rcu - put an element at the beginning, at the end. Changer. */
static inline void hl_priv_list_between(struct hl_list_head *added, struct hl_list_head *prev,
					struct hl_list_head *next)
{
	added->next = next;
	added->prev = prev;
	/* LIST_ADDED: the element is complete; pairs with hl_rcu_dereference() of readers */
	hl_rcu_assign_pointer(prev->next, added);
	next->prev = added;
}

static inline void hl_list_add_rcu(struct hl_list_head *added, struct hl_list_head *head)
{
	hl_priv_list_between(added, head, head->next);
}

static inline void hl_list_add_tail_rcu(struct hl_list_head *added, struct hl_list_head *head)
{
	hl_priv_list_between(added, head->prev, head);
}

/* hl_list_del_rcu - takes an element out; readers that are at it still go on from it. Changer. */
static inline void hl_list_del_rcu(struct hl_list_head *element)
{
	element->next->prev = element->prev;
	/* Nothing new is published: what follows was there before. */
	__atomic_store_n(&element->prev->next, element->next, __ATOMIC_RELAXED);
	element->prev = NULL;
}

/* hl_list_replace_rcu - puts an element in the place of another, which is taken out. Changer. */
static inline void hl_list_replace_rcu(struct hl_list_head *old, struct hl_list_head *added)
{
	added->next = old->next;
	added->prev = old->prev;
	hl_rcu_assign_pointer(added->prev->next, added); /* LIST_ADDED */
	added->next->prev = added;
	old->prev = NULL;
}

/* hl_list_splice_rcu, hl_list_splice_tail_rcu - move all elements of `list`, which nobody reads,
 * to the beginning or the end of `head`; `list` is empty then. Changer. */
static inline void hl_priv_list_splice(struct hl_list_head *list, struct hl_list_head *prev,
				       struct hl_list_head *next)
{
	struct hl_list_head *first = list->next, *last = list->prev;

	if (first == list)
		return;
	first->prev = prev;
	last->next = next;
	hl_rcu_assign_pointer(prev->next, first); /* LIST_ADDED */
	next->prev = last;
	hl_list_init(list);
}

static inline void hl_list_splice_rcu(struct hl_list_head *list, struct hl_list_head *head)
{
	hl_priv_list_splice(list, head, head->next);
}

static inline void hl_list_splice_tail_rcu(struct hl_list_head *list, struct hl_list_head *head)
{
	hl_priv_list_splice(list, head->prev, head);
}

/* hl_list_empty - whether there was no element. Reader, changer. */
static inline bool hl_list_empty(const struct hl_list_head *head)
{
	return hl_rcu_access_pointer(head->next) == head;
}

/*
 * hl_list_entry - the struct that an element is in
 * hl_list_first_or_null_rcu - the first element's struct, or NULL. Reader.
 */
#define hl_list_entry(element, type, member) \
	((type *)(void *)((char *)(element)-offsetof(type, member)))
#define hl_list_first_or_null_rcu(head, type, member) \
	__extension__({ \
		struct hl_list_head *hl_priv_first = hl_rcu_dereference((head)->next); \
		hl_priv_first == (head) ? NULL : hl_list_entry(hl_priv_first, type, member); \
	})

/*
 * hl_list_for_each_rcu - walks along the elements. Reader.
 * hl_list_for_each_entry_rcu - along the structs that they are in. Reader.
 * hl_list_for_each_entry_continue_rcu - goes on behind the element `entry`. Reader.
 * hl_list_for_each_entry_safe - for a changer, which may take `entry` out on the way
 */
#define hl_list_for_each_rcu(element, head) \
	for ((element) = hl_rcu_dereference((head)->next); (element) != (head); \
	     (element) = hl_rcu_dereference((element)->next))

#define hl_list_for_each_entry_rcu(entry, head, member) \
	for ((entry) = hl_list_entry(hl_rcu_dereference((head)->next), __typeof__(*(entry)), \
				     member); \
	     &(entry)->member != (head); \
	     (entry) = hl_list_entry(hl_rcu_dereference((entry)->member.next), \
				     __typeof__(*(entry)), member))

#define hl_list_for_each_entry_continue_rcu(entry, head, member) \
	for ((entry) = hl_list_entry(hl_rcu_dereference((entry)->member.next), \
				     __typeof__(*(entry)), member); \
	     &(entry)->member != (head); \
	     (entry) = hl_list_entry(hl_rcu_dereference((entry)->member.next), \
				     __typeof__(*(entry)), member))

#define hl_list_for_each_entry_safe(entry, after, head, member) \
	for ((entry) = hl_list_entry((head)->next, __typeof__(*(entry)), member), \
	    (after) = hl_list_entry((entry)->member.next, __typeof__(*(entry)), member); \
	     &(entry)->member != (head); (entry) = (after), \
	    (after) = hl_list_entry((after)->member.next, __typeof__(*(entry)), member))

HL_END_DECLS

#endif
