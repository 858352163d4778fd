/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The one truth about what crosses from the BPF programs to user space. Valid C11 and C++.
 *
 * Every record begins with struct tl_header; the kind says what follows. Fixed-width types, widest first,
 * padding spelled out. Kinds are never reused and 0 is invalid. A change of layout raises TL_ABI_VERSION,
 * which the loader compares with the one compiled into the BPF object. */
#ifndef TORCHLEAK_ABI_EVENT_H
#define TORCHLEAK_ABI_EVENT_H

#ifdef __cplusplus
#include <cstdint>
#define TL_STATIC_ASSERT static_assert
typedef std::uint64_t tl_u64;
typedef std::uint32_t tl_u32;
typedef std::uint16_t tl_u16;
typedef std::int32_t tl_s32;
#else
#include <linux/types.h>
#define TL_STATIC_ASSERT _Static_assert
typedef __u64 tl_u64;
typedef __u32 tl_u32;
typedef __u16 tl_u16;
typedef __s32 tl_s32;
#endif

#define TL_ABI_VERSION 1
#define TL_COMM_BYTES 16
#define TL_NAME_BYTES 64

enum tl_kind {
	TL_KIND_INVALID = 0,
	TL_KIND_FORK = 1,
	TL_KIND_EXEC = 2,
	TL_KIND_EXIT = 3,
	TL_KIND_OOM_KILL = 4,
	TL_KIND_RENAME = 5,
	TL_KIND_MAP = 6,
	TL_KIND_UNMAP = 7,
	TL_KIND_REMAP = 8,
	TL_KIND_PROTECT = 9,
	TL_KIND_BRK = 10,
	TL_KIND_ADVISE = 11,
	TL_KIND_ATTACH_SHM = 12,
	TL_KIND_DETACH_SHM = 13,
	TL_KIND_FAULT = 14,
};

struct tl_header {
	tl_u64 time_ns; /* CLOCK_MONOTONIC, at the moment of the record */
	tl_u32 tgid;	/* the process it happened in, in the initial pid namespace */
	tl_u16 kind;
	tl_u16 size; /* of the whole record, header included */
};

/* Pages by kind as the kernel's counters have them, less what CPUs have not folded in yet (some dozen pages a
 * CPU). */
struct tl_rss {
	tl_u64 file_pages;
	tl_u64 anon_pages;
	tl_u64 swap_pages;
	tl_u64 shmem_pages;
};

/* A new process (never a thread). header.tgid is the parent. */
struct tl_fork {
	struct tl_header header;
	tl_u64 child_start_ns; /* CLOCK_BOOTTIME, as in /proc/PID/stat but not rounded to ticks */
	struct tl_rss rss;     /* what the child was born with; zero where memory is shared */
	tl_u32 child_tgid;
	tl_u32 parent_tid;
	tl_u32
	    shares_memory; /* vfork, or clone(CLONE_VM) without CLONE_THREAD: one address space until exec */
	tl_u32 padding;
	char comm[TL_COMM_BYTES];
};

struct tl_exec {
	struct tl_header header;
	char comm[TL_COMM_BYTES]; /* already the new program's */
};

/* Per-process counters, kept by the kernel side in a map keyed by tgid and read each interval. */
struct tl_process {
	tl_u64 swap_in_pages;
	tl_u64 swap_out_pages;
	tl_u64 collapsed_huge_pages; /* made by khugepaged of small ones */
	tl_u64 last_swap_entries;    /* private to the swap program */
};

struct tl_exit {
	struct tl_header header;
	struct tl_rss
	    rss; /* just before the end; zero on kernels (before 6.16) that have let go of it by then */
	tl_u64 peak_rss_pages; /* the kernel's own high-water mark over the life of the process; 0 where not
				  known */
	tl_u64 minor_faults;
	tl_u64 major_faults;
	struct tl_process counters; /* their last state */
	tl_u64 caught_signals; /* of SIGBUS, SIGFPE, SIGSEGV and SIGTERM, those with a handler; bit N-1 for
				  signal N */
	tl_s32 wait_status;    /* as wait(2) gives it: signal in the low bits, exit code << 8 */
	tl_u32 padding;
};

struct tl_oom_kill {
	struct tl_header header;
};

struct tl_rename {
	struct tl_header header;
	tl_u32 tid; /* equal to tgid where the process itself was renamed */
	tl_u32 padding;
	char comm[TL_COMM_BYTES];
};

/* mmap that succeeded. The file's identity is filled in for file-backed maps only. */
struct tl_map {
	struct tl_header header;
	tl_u64 address;
	tl_u64 length; /* as asked for, not rounded */
	tl_u64 offset;
	tl_u64 inode;
	tl_u32 device;	   /* kernel dev_t: major << 20 | minor */
	tl_u32 filesystem; /* super block magic, e.g. 0x01021994 for tmpfs and memfd */
	tl_u32 protection;
	tl_u32 flags;
	tl_s32 fd; /* -1 where anonymous */
	tl_u32 padding;
	char name[TL_NAME_BYTES]; /* last path component, cut off, NUL-terminated; absent where anonymous */
};

/* A record of an anonymous map ends before the name. */
#define TL_MAP_ANONYMOUS_BYTES 72

/* munmap; also the range of madvise and mprotect, whose extra word is advice or protection. */
struct tl_range {
	struct tl_header header;
	tl_u64 entry_ns;
	tl_u64 address;
	tl_u64 length;
	tl_u32 argument; /* ADVISE: the advice; PROTECT: the protection; UNMAP: 0 */
	tl_u32 padding;
};

struct tl_remap {
	struct tl_header header;
	tl_u64 entry_ns;
	tl_u64 old_address;
	tl_u64 old_length;
	tl_u64 new_address;
	tl_u64 new_length;
	tl_u32 flags;
	tl_u32 padding;
};

struct tl_brk {
	struct tl_header header;
	tl_u64 entry_ns;
	tl_u64 start; /* mm->start_brk */
	tl_u64 end;   /* the break after the call */
};

struct tl_shm {
	struct tl_header header;
	tl_u64 entry_ns;
	tl_u64 address;
	tl_u32 id; /* ATTACH only */
	tl_u32 padding;
};

enum tl_fault_flags {
	TL_FAULT_PRESENT = 1, /* the page could be read before the fault: a write to a write-protected page */
	TL_FAULT_KERNEL = 2,  /* taken in kernel mode, e.g. read(2) into fresh memory */
};

/* One sampled page fault; it stands for `weight` of them. */
struct tl_fault {
	struct tl_header header;
	tl_u64 address;
	tl_u64 weight;
	tl_u64 instruction;
	tl_u32 tid;
	tl_u32 flags;
};

/* Why a record never left the kernel, or left it incomplete: index into the map of losses. */
enum tl_loss {
	TL_LOSS_RING_FULL = 0,
	TL_LOSS_RING_FULL_SAMPLE = 1,
	TL_LOSS_PROCESS_TABLE_FULL = 2,
	TL_LOSS_ENTRY_TIME = 3, /* two threads shared a slot, or the call had begun before we did */
	TL_LOSS_FILE_UNREADABLE = 4,
	TL_LOSS_COUNT = 5,
};

TL_STATIC_ASSERT(sizeof(struct tl_header) == 16, "header");
TL_STATIC_ASSERT(sizeof(struct tl_fork) == 88, "fork");
TL_STATIC_ASSERT(sizeof(struct tl_exec) == 32, "exec");
TL_STATIC_ASSERT(sizeof(struct tl_exit) == 120, "exit");
TL_STATIC_ASSERT(sizeof(struct tl_rename) == 40, "rename");
TL_STATIC_ASSERT(sizeof(struct tl_map) == TL_MAP_ANONYMOUS_BYTES + TL_NAME_BYTES, "map");
TL_STATIC_ASSERT(sizeof(struct tl_range) == 48, "range");
TL_STATIC_ASSERT(sizeof(struct tl_remap) == 64, "remap");
TL_STATIC_ASSERT(sizeof(struct tl_brk) == 40, "brk");
TL_STATIC_ASSERT(sizeof(struct tl_shm) == 40, "shm");
TL_STATIC_ASSERT(sizeof(struct tl_fault) == 48, "fault");

#endif
