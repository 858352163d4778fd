// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* The life of processes: fork, exec, exit, rename, OOM kill. Children of traced processes become traced here,
 * before they run their first instruction. */
#include "emit.h"
#include "filter.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile __u32 tl_abi_version = TL_ABI_VERSION;
const volatile __u32 tl_follow_children = 1;

/* The counters were one structure of atomics before 6.2 and are per-CPU counters since. A macro, for the
 * index must be a constant: CO-RE mends it with the kernel's own size of an element, a variable one would go
 * by ours. */
#define TL_RSS_PAGES(mm, member)                                                                             \
	({                                                                                                   \
		struct mm_struct___before_6_2 *tl_old = (void *)(mm);                                        \
		__s64 tl_pages = bpf_core_field_exists(tl_old->rss_stat.count)                               \
				     ? BPF_CORE_READ(tl_old, rss_stat.count[member].counter)                 \
				     : BPF_CORE_READ(mm, rss_stat[member].count);                            \
		tl_pages > 0 ? (__u64)tl_pages : 0;                                                          \
	})

static __always_inline void tl_read_rss(struct mm_struct *mm, struct tl_rss *rss)
{
	__builtin_memset(rss, 0, sizeof(*rss));
	if (!mm)
		return;
	rss->file_pages = TL_RSS_PAGES(mm, 0);
	rss->anon_pages = TL_RSS_PAGES(mm, 1);
	rss->swap_pages = TL_RSS_PAGES(mm, 2);
	rss->shmem_pages = TL_RSS_PAGES(mm, 3);
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(tl_on_fork, struct task_struct *parent, struct task_struct *child)
{
	__u32 parent_tgid = (__u32)parent->tgid;
	__u32 child_tgid = (__u32)child->tgid;
	struct tl_process counters = {};
	struct tl_process *known;
	struct tl_fork *record;

	if (!tl_follow_children || parent_tgid == child_tgid)
		return 0;
	known = tl_traced(parent_tgid);
	if (!known)
		return 0;
	/* Fork copies swap entries as it copies pages. */
	counters.last_swap_entries = known->last_swap_entries;
	if (bpf_map_update_elem(&tl_processes, &child_tgid, &counters, BPF_ANY)) {
		tl_count_loss(TL_LOSS_PROCESS_TABLE_FULL);
		return 0;
	}
	record = TL_RESERVE(TL_KIND_FORK, tl_fork, parent_tgid);
	if (!record)
		return 0;
	record->child_start_ns = child->start_boottime;
	record->child_tgid = child_tgid;
	record->parent_tid = (__u32)parent->pid;
	record->shares_memory = child->mm && child->mm == parent->mm;
	record->padding = 0;
	tl_read_rss(record->shares_memory ? 0 : child->mm, &record->rss);
	bpf_core_read_str(record->comm, sizeof(record->comm), &child->comm);
	tl_submit(record);
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(tl_on_exec, struct task_struct *task)
{
	__u32 tgid = (__u32)task->tgid;
	struct tl_exec *record;

	if (!tl_traced(tgid))
		return 0;
	record = TL_RESERVE(TL_KIND_EXEC, tl_exec, tgid);
	if (!record)
		return 0;
	bpf_core_read_str(record->comm, sizeof(record->comm), &task->comm);
	tl_submit(record);
	return 0;
}

/* A constant index, for the same reason. SIG_DFL is 0 and SIG_IGN 1. */
#define TL_CAUGHT(task, number)                                                                              \
	((__u64)BPF_CORE_READ(task, sighand, action[(number)-1].sa.sa_handler) > 1 ? 1ULL << ((number)-1) : 0)

#define TL_SIGBUS 7
#define TL_SIGFPE 8
#define TL_SIGSEGV 11
#define TL_SIGTERM 15

SEC("tp_btf/sched_process_exit")
int BPF_PROG(tl_on_exit, struct task_struct *task)
{
	__u32 tgid = (__u32)task->tgid;
	struct signal_struct *signal = task->signal;
	struct task_struct *leader = task->group_leader;
	struct tl_process *known;
	struct tl_process counters;
	struct tl_exit *record;

	/* Each thread passes here. The last one ends the process; if two see themselves as the last, only one
	 * of them removes the entry. */
	if (signal->live.counter != 0)
		return 0;
	known = tl_traced(tgid);
	if (!known)
		return 0;
	counters = *known;
	if (bpf_map_delete_elem(&tl_processes, &tgid))
		return 0;
	record = TL_RESERVE(TL_KIND_EXIT, tl_exit, tgid);
	if (!record)
		return 0;
	tl_read_rss(task->mm, &record->rss);
	record->peak_rss_pages = signal->maxrss;
	record->minor_faults = signal->min_flt + task->min_flt + (leader != task ? leader->min_flt : 0);
	record->major_faults = signal->maj_flt + task->maj_flt + (leader != task ? leader->maj_flt : 0);
	record->counters = counters;
	/* torch's loader workers catch these four: a worker too short-lived to be looked at is known by them.
	 */
	record->caught_signals = TL_CAUGHT(task, TL_SIGBUS) | TL_CAUGHT(task, TL_SIGFPE) |
				 TL_CAUGHT(task, TL_SIGSEGV) | TL_CAUGHT(task, TL_SIGTERM);
	record->wait_status = signal->group_exit_code ? signal->group_exit_code : task->exit_code;
	record->padding = 0;
	tl_submit(record);
	return 0;
}

SEC("tp_btf/task_rename")
int BPF_PROG(tl_on_rename, struct task_struct *task, const char *comm)
{
	__u32 tgid = (__u32)task->tgid;
	struct tl_rename *record;

	/* Threads are not processes: only the name of the first thread names the process. */
	if (task->pid != task->tgid || !tl_traced(tgid))
		return 0;
	record = TL_RESERVE(TL_KIND_RENAME, tl_rename, tgid);
	if (!record)
		return 0;
	record->tid = (__u32)task->pid;
	record->padding = 0;
	bpf_probe_read_kernel_str(record->comm, sizeof(record->comm), comm);
	tl_submit(record);
	return 0;
}

/* A classic tracepoint: the raw one's arguments changed in 6.8, the field has kept its name. */
SEC("tp/oom/mark_victim")
int tl_on_oom_kill(struct trace_event_raw_mark_victim *ctx)
{
	__u32 tgid = (__u32)BPF_CORE_READ(ctx, pid);
	struct tl_oom_kill *record;

	if (!tl_traced(tgid))
		return 0;
	record = TL_RESERVE(TL_KIND_OOM_KILL, tl_oom_kill, tgid);
	if (record)
		tl_submit(record);
	return 0;
}
