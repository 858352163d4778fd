/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
#ifndef TORCHLEAK_FILTER_H
#define TORCHLEAK_FILTER_H

#include "maps.h"

static __always_inline struct tl_process *tl_traced(__u32 tgid)
{
	return bpf_map_lookup_elem(&tl_processes, &tgid);
}

static __always_inline __u32 tl_current_tgid(void)
{
	return (__u32)(bpf_get_current_pid_tgid() >> 32);
}

static __always_inline __u32 tl_current_tid(void)
{
	return (__u32)bpf_get_current_pid_tgid();
}

#endif
