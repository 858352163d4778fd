// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* Pages swapped out and in, exactly, charged to the owner of the memory: kswapd and other processes reclaim
 * it, so the running task says nothing.
 *
 * Two programs share one tracepoint. The raw one is given the address space and so its owner; the classic one
 * is given the exact count of swap entries, which from 6.2 on only the kernel can sum up over the CPUs. The
 * raw one is attached first and runs first, and hands over through a per-CPU slot. Both cost on every fault,
 * so the loader attaches them only where the machine may swap. */
#include "emit.h"
#include "filter.h"
#include "pending.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define TL_MM_SWAPENTS 2
#define TL_PF_EXITING 0x4
#define TL_PAGE_SHIFT 12

struct tl_swap_change {
	__u32 owner_tgid; /* 0: not ours */
	bool by_owner;	  /* the owner itself runs, so a fall may be a swap-in */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct tl_swap_change);
} tl_swap_handover SEC(".maps");

SEC("tp_btf/rss_stat")
int BPF_PROG(tl_on_rss_owner, struct mm_struct *mm, int member)
{
	struct tl_swap_change *change;
	struct task_struct *owner;
	__u32 zero = 0;

	if (member != TL_MM_SWAPENTS)
		return 0;
	change = bpf_map_lookup_elem(&tl_swap_handover, &zero);
	if (!change)
		return 0;
	change->owner_tgid = 0;
	owner = mm->owner;
	/* While fork copies, the new address space has an owner that does not use it yet and still bears its
	 * parent's tgid. */
	if (!owner || BPF_CORE_READ(owner, mm) != mm)
		return 0;
	change->owner_tgid = (__u32)BPF_CORE_READ(owner, tgid);
	change->by_owner = change->owner_tgid == tl_current().tgid;
	return 0;
}

/* A fall of the count is a swap-in unless the entries were given up: by an unmapping call in flight, or by
 * exit. */
static __always_inline bool tl_is_swap_in(const struct tl_swap_change *change)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();

	return change->by_owner && !tl_is_in_call(tl_current().tid) &&
	       !(BPF_CORE_READ(task, flags) & TL_PF_EXITING);
}

SEC("tp/kmem/rss_stat")
int tl_on_rss_size(struct trace_event_raw_rss_stat *ctx)
{
	struct tl_swap_change *change;
	struct tl_process *process;
	__u64 entries;
	__u32 zero = 0;

	if (BPF_CORE_READ(ctx, member) != TL_MM_SWAPENTS)
		return 0;
	change = bpf_map_lookup_elem(&tl_swap_handover, &zero);
	if (!change || !change->owner_tgid)
		return 0;
	process = tl_traced(change->owner_tgid);
	if (!process)
		return 0;
	entries = (__u64)BPF_CORE_READ(ctx, size) >> TL_PAGE_SHIFT;
	if (entries > process->last_swap_entries)
		__sync_fetch_and_add(&process->swap_out_pages, entries - process->last_swap_entries);
	else if (entries < process->last_swap_entries && tl_is_swap_in(change))
		__sync_fetch_and_add(&process->swap_in_pages, process->last_swap_entries - entries);
	process->last_swap_entries = entries;
	return 0;
}
