/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What differs between processors: where a system call's number and arguments are found when it returns. Both
 * keep the arguments' registers untouched over a call, but for the first on arm64, which the kernel saves
 * apart. */
#ifndef TORCHLEAK_ARCH_H
#define TORCHLEAK_ARCH_H

#include "kernel_types.h"

struct tl_call {
	__u64 argument[6];
};

#if defined(__TARGET_ARCH_x86)

static __always_inline long tl_call_number(const struct pt_regs___tl *regs)
{
	return (long)regs->orig_ax;
}

static __always_inline void tl_call_arguments(const struct pt_regs___tl *regs, struct tl_call *call)
{
	call->argument[0] = regs->di;
	call->argument[1] = regs->si;
	call->argument[2] = regs->dx;
	call->argument[3] = regs->r10;
	call->argument[4] = regs->r8;
	call->argument[5] = regs->r9;
}

static __always_inline bool tl_fault_in_user_mode(const struct bpf_perf_event_data *ctx)
{
	return (ctx->regs.cs & 3) == 3;
}

static __always_inline __u64 tl_fault_instruction(const struct bpf_perf_event_data *ctx)
{
	return ctx->regs.rip;
}

#elif defined(__TARGET_ARCH_arm64)

static __always_inline long tl_call_number(const struct pt_regs___tl *regs)
{
	return regs->syscallno;
}

static __always_inline void tl_call_arguments(const struct pt_regs___tl *regs, struct tl_call *call)
{
	call->argument[0] = regs->orig_x0;
	call->argument[1] = regs->regs[1];
	call->argument[2] = regs->regs[2];
	call->argument[3] = regs->regs[3];
	call->argument[4] = regs->regs[4];
	call->argument[5] = regs->regs[5];
}

static __always_inline bool tl_fault_in_user_mode(const struct bpf_perf_event_data *ctx)
{
	return (ctx->regs.pstate & 0xf) == 0;
}

static __always_inline __u64 tl_fault_instruction(const struct bpf_perf_event_data *ctx)
{
	return ctx->regs.pc;
}

#endif

#endif
