/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Every map, in one place. They are weak so that each .bpf.c may name them and the linker keeps one of each.
 */
#ifndef TORCHLEAK_MAPS_H
#define TORCHLEAK_MAPS_H

#include "kernel_types.h"
#include "torchleak/abi/event.h"

#define TL_MAX_PROCESSES 16384
#define TL_PENDING_SLOTS 16384 /* a power of two */
#define TL_RING_BYTES (4 * 1024 * 1024)

/* The traced processes: membership is the filter, the value their counters. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, TL_MAX_PROCESSES);
	__type(key, __u32); /* tgid */
	__type(value, struct tl_process);
} tl_processes SEC(".maps") __weak;

/* When a thread entered the mapping call it is in. Calls do not nest within a thread. The slot is tid modulo
 * the size: an array costs a tenth of a hash, and should two threads ever meet in a slot, the one that finds
 * the other's tid there counts a loss and goes by the time of return. */
struct tl_pending_call {
	__u64 entry_ns;
	__u32 tid; /* 0: no call */
	__u32 padding;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, TL_PENDING_SLOTS);
	__type(key, __u32);
	__type(value, struct tl_pending_call);
} tl_pending SEC(".maps") __weak;

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, TL_RING_BYTES);
} tl_events SEC(".maps") __weak;

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, TL_LOSS_COUNT);
	__type(key, __u32);
	__type(value, __u64);
} tl_losses SEC(".maps") __weak;

#endif
