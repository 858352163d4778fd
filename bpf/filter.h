/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
#ifndef TORCHLEAK_FILTER_H
#define TORCHLEAK_FILTER_H

#include "maps.h"

static __always_inline struct tl_process *tl_traced(__u32 tgid)
{
	return bpf_map_lookup_elem(&tl_processes, &tgid);
}

/* Who runs: asked once a program, and handed down. */
struct tl_thread {
	__u32 tgid;
	__u32 tid;
};

static __always_inline struct tl_thread tl_current(void)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	struct tl_thread thread = {.tgid = (__u32)(pid_tgid >> 32), .tid = (__u32)pid_tgid};

	return thread;
}

#endif
