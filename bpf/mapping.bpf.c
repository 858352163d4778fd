// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* Every change of an address space by system call. A record is made when a call returns with success, and
 * carries the time of its entry: the kernel frees a range before munmap returns, and another thread may be
 * given it in between. */
#include "arch.h"
#include "emit.h"
#include "filter.h"
#include "pending.h"

#include <asm/unistd.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define TL_MAP_ANONYMOUS 0x20
#define TL_MADV_WILLNEED 3 /* it and the advice below it change no memory */
#define TL_MAX_ERRNO 4095

/* Those whose record must carry the time of entry. mmap gives and does not take; where it does take
 * (MAP_FIXED), it replaces in one step. */
static __always_inline bool tl_takes_memory(long number)
{
	switch (number) {
	case __NR_munmap:
	case __NR_mremap:
	case __NR_brk:
	case __NR_madvise:
	case __NR_shmdt:
		return true;
	default:
		return false;
	}
}

static __always_inline bool tl_changes_mappings(long number)
{
	return number == __NR_mmap || number == __NR_mprotect || number == __NR_shmat ||
	       tl_takes_memory(number);
}

SEC("tp_btf/sys_enter")
int BPF_PROG(tl_on_sys_enter, struct pt_regs___tl *regs, long number)
{
	struct tl_thread thread;

	/* Every system call of the machine comes by here: nothing is done before this has let it through. */
	if (!tl_takes_memory(number))
		return 0;
	thread = tl_current();
	if (tl_traced(thread.tgid))
		tl_enter_call(thread.tid);
	return 0;
}

static __always_inline void tl_describe_file(struct tl_map *record)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	__u32 fd = (__u32)record->fd;
	struct file **slot;
	struct file *file = 0;
	struct inode *inode;

	if (fd < BPF_CORE_READ(table, max_fds)) {
		slot = BPF_CORE_READ(table, fd);
		bpf_probe_read_kernel(&file, sizeof(file), slot + fd);
	}
	if (!file) {
		tl_count_loss(TL_LOSS_FILE_UNREADABLE);
		return;
	}
	inode = BPF_CORE_READ(file, f_inode);
	record->inode = BPF_CORE_READ(inode, i_ino);
	record->device = BPF_CORE_READ(inode, i_sb, s_dev);
	record->filesystem = (__u32)BPF_CORE_READ(inode, i_sb, s_magic);
	bpf_probe_read_kernel_str(record->name, sizeof(record->name),
				  BPF_CORE_READ(file, f_path.dentry, d_name.name));
}

static __always_inline void tl_fill_map(struct tl_map *record, const struct tl_call *call, __u64 address)
{
	record->address = address;
	record->length = call->argument[1];
	record->offset = call->argument[5];
	record->inode = 0;
	record->device = 0;
	record->filesystem = 0;
	record->protection = (__u32)call->argument[2];
	record->flags = (__u32)call->argument[3];
	record->padding = 0;
}

static __always_inline void tl_emit_map(__u32 tgid, const struct tl_call *call, __u64 address)
{
	struct tl_map *record;

	if (call->argument[3] & TL_MAP_ANONYMOUS) {
		record = tl_reserve(TL_KIND_MAP, TL_MAP_ANONYMOUS_BYTES, tgid, TL_LOSS_RING_FULL);
		if (!record)
			return;
		tl_fill_map(record, call, address);
		record->fd = -1;
	} else {
		record = TL_RESERVE(TL_KIND_MAP, tl_map, tgid);
		if (!record)
			return;
		tl_fill_map(record, call, address);
		record->fd = (__s32)call->argument[4];
		__builtin_memset(record->name, 0, sizeof(record->name));
		tl_describe_file(record);
	}
	tl_submit(record);
}

static __always_inline void tl_emit_range(__u16 kind, __u32 tgid, __u64 entry_ns, const struct tl_call *call,
					  __u32 argument)
{
	struct tl_range *record = TL_RESERVE(kind, tl_range, tgid);

	if (!record)
		return;
	record->entry_ns = entry_ns;
	record->address = call->argument[0];
	record->length = call->argument[1];
	record->argument = argument;
	record->padding = 0;
	tl_submit(record);
}

static __always_inline void tl_emit_remap(__u32 tgid, __u64 entry_ns, const struct tl_call *call,
					  __u64 address)
{
	struct tl_remap *record = TL_RESERVE(TL_KIND_REMAP, tl_remap, tgid);

	if (!record)
		return;
	record->entry_ns = entry_ns;
	record->old_address = call->argument[0];
	record->old_length = call->argument[1];
	record->new_address = address;
	record->new_length = call->argument[2];
	record->flags = (__u32)call->argument[3];
	record->padding = 0;
	tl_submit(record);
}

static __always_inline void tl_emit_brk(__u32 tgid, __u64 entry_ns, __u64 end)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct tl_brk *record = TL_RESERVE(TL_KIND_BRK, tl_brk, tgid);

	if (!record)
		return;
	record->entry_ns = entry_ns;
	record->start = BPF_CORE_READ(task, mm, start_brk);
	record->end = end;
	tl_submit(record);
}

static __always_inline void tl_emit_shm(__u16 kind, __u32 tgid, __u64 entry_ns, __u64 address, __u32 id)
{
	struct tl_shm *record = TL_RESERVE(kind, tl_shm, tgid);

	if (!record)
		return;
	record->entry_ns = entry_ns;
	record->address = address;
	record->id = id;
	record->padding = 0;
	tl_submit(record);
}

SEC("tp_btf/sys_exit")
int BPF_PROG(tl_on_sys_exit, struct pt_regs___tl *regs, long result)
{
	long number = tl_call_number(regs);
	struct tl_call call;
	struct tl_thread thread;
	__u64 entry_ns = 0;
	__u32 tgid;

	if (!tl_changes_mappings(number))
		return 0;
	thread = tl_current();
	tgid = thread.tgid;
	if (tl_takes_memory(number))
		entry_ns = tl_leave_call(thread.tid);
	if (!entry_ns) {
		if (!tl_traced(tgid))
			return 0;
		if (tl_takes_memory(number)) {
			tl_count_loss(TL_LOSS_ENTRY_TIME);
			entry_ns = bpf_ktime_get_ns();
		}
	}
	if ((__u64)result >= (__u64)-TL_MAX_ERRNO)
		return 0;
	tl_call_arguments(regs, &call);

	switch (number) {
	case __NR_mmap:
		tl_emit_map(tgid, &call, (__u64)result);
		break;
	case __NR_munmap:
		tl_emit_range(TL_KIND_UNMAP, tgid, entry_ns, &call, 0);
		break;
	case __NR_mremap:
		tl_emit_remap(tgid, entry_ns, &call, (__u64)result);
		break;
	case __NR_mprotect:
		tl_emit_range(TL_KIND_PROTECT, tgid, entry_ns, &call, (__u32)call.argument[2]);
		break;
	case __NR_brk:
		/* A break that was refused is answered with the old one; brk(0) only asks. */
		if (call.argument[0] && (__u64)result == call.argument[0])
			tl_emit_brk(tgid, entry_ns, (__u64)result);
		break;
	case __NR_madvise:
		if (call.argument[2] > TL_MADV_WILLNEED)
			tl_emit_range(TL_KIND_ADVISE, tgid, entry_ns, &call, (__u32)call.argument[2]);
		break;
	case __NR_shmat:
		tl_emit_shm(TL_KIND_ATTACH_SHM, tgid, entry_ns, (__u64)result, (__u32)call.argument[0]);
		break;
	case __NR_shmdt:
		tl_emit_shm(TL_KIND_DETACH_SHM, tgid, entry_ns, call.argument[0], 0);
		break;
	}
	return 0;
}
