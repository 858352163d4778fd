/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The calls under way that take memory away, by the thread that makes them. */
#ifndef TORCHLEAK_PENDING_H
#define TORCHLEAK_PENDING_H

#include "filter.h"

static __always_inline struct tl_pending_call *tl_pending_slot(__u32 tid)
{
	__u32 slot = tid & (TL_PENDING_SLOTS - 1);

	return bpf_map_lookup_elem(&tl_pending, &slot);
}

static __always_inline void tl_enter_call(__u32 tid)
{
	struct tl_pending_call *call = tl_pending_slot(tid);

	if (call) {
		call->entry_ns = bpf_ktime_get_ns();
		call->tid = tid;
	}
}

static __always_inline bool tl_is_in_call(__u32 tid)
{
	struct tl_pending_call *call = tl_pending_slot(tid);

	return call && call->tid == tid;
}

/* When the thread entered the call that now returns; 0 where that was not seen, as with all that are not
 * traced. */
static __always_inline __u64 tl_leave_call(__u32 tid)
{
	struct tl_pending_call *call = tl_pending_slot(tid);

	if (!call || call->tid != tid)
		return 0;
	call->tid = 0;
	return call->entry_ns;
}

#endif
