// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* Sampled page faults. The program hangs on the software event `page-faults` of each CPU, whose period
 * decides how often it runs at all: what is paid on every fault is the event's own counting. The event fires
 * before the kernel handles the fault, so whether the page can be read tells a write to a protected page
 * (copy-on-write) from fresh memory. */
#include "arch.h"
#include "emit.h"
#include "filter.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

SEC("perf_event")
int tl_on_page_fault(struct bpf_perf_event_data *ctx)
{
	struct tl_thread thread = tl_current();
	__u64 address = ctx->addr;
	struct tl_fault *record;
	__u32 flags = 0;
	char byte;

	if (!tl_traced(thread.tgid))
		return 0;
	if (!tl_fault_in_user_mode(ctx))
		flags |= TL_FAULT_KERNEL;
	if (!bpf_probe_read_user(&byte, sizeof(byte), (const void *)address))
		flags |= TL_FAULT_PRESENT;
	record = tl_reserve(TL_KIND_FAULT, sizeof(*record), thread.tgid, TL_LOSS_RING_FULL_SAMPLE);
	if (!record)
		return 0;
	record->address = address;
	record->weight = ctx->sample_period;
	record->instruction = tl_fault_instruction(ctx);
	record->tid = thread.tid;
	record->flags = flags;
	tl_submit(record);
	return 0;
}
