// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* khugepaged joins small pages into huge ones behind the owner's back: RSS grows by the holes it fills, and
 * no fault is seen. Counted for the owner of the memory, as with swap. */
#include "filter.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define TL_SCAN_SUCCEED 1

SEC("tp_btf/mm_collapse_huge_page")
int BPF_PROG(tl_on_collapse, struct mm_struct *mm, int isolated, int status)
{
	struct tl_process *process;

	if (status != TL_SCAN_SUCCEED || !mm || !mm->owner)
		return 0;
	process = tl_traced((__u32)BPF_CORE_READ(mm, owner, tgid));
	if (process)
		__sync_fetch_and_add(&process->collapsed_huge_pages, 1);
	return 0;
}
