/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The only place that touches the ring buffer. User space polls: a wake-up from here would cost more than all
 * the rest of a program. Whatever cannot be told is counted by its reason. */
#ifndef TORCHLEAK_EMIT_H
#define TORCHLEAK_EMIT_H

#include "maps.h"

static __always_inline void tl_count_loss(__u32 reason)
{
	__u64 *count = bpf_map_lookup_elem(&tl_losses, &reason);

	if (count)
		*count += 1;
}

/* Room for a record of a kind, its header filled in; the caller fills in every other field. NULL when the
 * ring is full. */
static __always_inline void *tl_reserve(__u16 kind, __u16 size, __u32 tgid, __u32 loss_reason)
{
	struct tl_header *header = bpf_ringbuf_reserve(&tl_events, size, 0);

	if (!header) {
		tl_count_loss(loss_reason);
		return 0;
	}
	header->time_ns = bpf_ktime_get_ns();
	header->tgid = tgid;
	header->kind = kind;
	header->size = size;
	return header;
}

#define TL_RESERVE(kind, type, tgid)                                                                         \
	((struct type *)tl_reserve(kind, sizeof(struct type), tgid, TL_LOSS_RING_FULL))

static __always_inline void tl_submit(void *record)
{
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
}

#endif
