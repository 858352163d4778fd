/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The few kernel structures we read, and of each only the fields we read. CO-RE finds the true offsets in the
 * running kernel's BTF at load, so the build does not depend on the kernel of the build host. A `___tl`
 * suffix keeps a name apart from the user-space header's structure of the same name; CO-RE ignores it. */
#ifndef TORCHLEAK_KERNEL_TYPES_H
#define TORCHLEAK_KERNEL_TYPES_H

#include <linux/types.h>
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <stdbool.h>

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

typedef struct {
	int counter;
} atomic_t;

struct qstr {
	const unsigned char *name;
};

struct dentry {
	struct qstr d_name;
};

struct path {
	struct dentry *dentry;
};

struct super_block {
	unsigned int s_dev;
	unsigned long s_magic;
};

struct inode {
	struct super_block *i_sb;
	unsigned long i_ino;
};

struct file {
	struct path f_path;
	struct inode *f_inode;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct percpu_counter {
	__s64 count;
};

struct mm_struct {
	unsigned long start_brk;
	struct percpu_counter
	    rss_stat[4];	   /* from 6.2; MM_FILEPAGES, MM_ANONPAGES, MM_SWAPENTS, MM_SHMEMPAGES */
	struct task_struct *owner; /* with CONFIG_MEMCG */
};

typedef struct {
	long counter;
} atomic_long_t;

struct mm_rss_stat {
	atomic_long_t count[4];
};

struct mm_struct___before_6_2 {
	struct mm_rss_stat rss_stat;
};

struct signal_struct {
	atomic_t live;
	int group_exit_code;
	unsigned long min_flt;
	unsigned long maj_flt;
	unsigned long maxrss;
};

struct sigaction___tl {
	void *sa_handler;
};

struct k_sigaction {
	struct sigaction___tl sa;
};

struct sighand_struct {
	struct k_sigaction action[64];
};

struct task_struct {
	unsigned int flags;
	int exit_code;
	int pid;
	int tgid;
	struct task_struct *group_leader;
	struct mm_struct *mm;
	struct files_struct *files;
	struct signal_struct *signal;
	struct sighand_struct *sighand;
	__u64 start_boottime;
	unsigned long min_flt;
	unsigned long maj_flt;
	char comm[16];
};

struct trace_event_raw_mark_victim {
	int pid;
};

struct trace_event_raw_rss_stat {
	int member;
	long size;
};

#if defined(__TARGET_ARCH_x86)
struct pt_regs___tl {
	unsigned long r10, r9, r8, dx, si, di, orig_ax;
};
#elif defined(__TARGET_ARCH_arm64)
struct pt_regs___tl {
	__u64 regs[31];
	__u64 orig_x0;
	__s32 syscallno;
};
#else
#error "torchleak-trace knows x86-64 and arm64"
#endif

#pragma clang attribute pop

#endif
