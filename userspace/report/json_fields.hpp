// SPDX-License-Identifier: Apache-2.0
// The fields of torchleak.report/1, listed once. JsonWriter and JsonReader both walk this list, so what is
// written is what is read: a field cannot be added to one side only.
//
//   a(name, member)        a field of the contract: written always, an error where missing
//   a.added(name, member)  ours beyond the contract: written always, left at its default where missing
#pragma once

#include <type_traits>

#include "torchleak/core/report.hpp"

namespace torchleak::report_json {

template <typename Archive, typename T>
using Of = std::conditional_t<Archive::kWrites, const T, T>;

template <typename A>
void fields(A& a, Of<A, LayerStatus>& v) {
  a("state", v.state);
  a.null_if_empty("why", v.why);
}

template <typename A>
void fields(A& a, Of<A, Lost>& v) {
  a("events", v.events);
  a("samples", v.samples);
}

template <typename A>
void fields(A& a, Of<A, Cost>& v) {
  a("bpf_ns", v.bpf_ns);
  a("bpf_runs", v.bpf_runs);
  a("target_share_percent", v.target_share_percent);
  a("tracer_cpu_s", v.tracer_cpu_s);
  a("tracer_rss_bytes", v.tracer_rss_bytes);
  a.added("first_data_s", v.first_data_s);
}

template <typename A>
void fields(A& a, Of<A, Capture>& v) {
  a("started", v.started);
  a("duration_s", v.duration_s);
  a("targets", v.targets);
  a("sample_bytes", v.sample_bytes);
  a("layers", v.layers);
  a("lost", v.lost);
  a("cost", v.cost);
  a.added("blind_spots", v.blind_spots);
}

template <typename A>
void fields(A& a, Of<A, Machine>& v) {
  a.added("kernel", v.kernel);
  a.added("architecture", v.architecture);
  a.added("cpus", v.cpus);
  a.added("memory_bytes", v.memory_bytes);
  a.added("swap_bytes", v.swap_bytes);
  a.added("page_bytes", v.page_bytes);
  a.added("thp", v.thp);
}

template <typename A>
void fields(A& a, Of<A, Worker>& v) {
  a("slot", v.slot);
  a("generation", v.generation);
  a("group", v.group);
}

template <typename A>
void fields(A& a, Of<A, Exit>& v) {
  a("code", v.code);
  a("signal", v.signal);
  a("oom_killed", v.oom_killed);
}

template <typename A>
void fields(A& a, Of<A, MemoryCounts>& v) {
  a("rss", v.rss);
  a("anon", v.anon);
  a("file", v.file);
  a("shmem", v.shmem);
  a("swap", v.swap);
  a("pss", v.pss);
  a("uss", v.uss);
}

template <typename A>
void fields(A& a, Of<A, SourceRow>& v) {
  a("source", v.source);
  a("start", v.start);
  a("end", v.end);
  a("growth", v.growth);
  a("cow", v.cow);
}

template <typename A>
void fields(A& a, Of<A, Faults>& v) {
  a("first_touch", v.first_touch);
  a("cow", v.cow);
  a("file", v.file);
  a("shmem", v.shmem);
  a("swap_in", v.swap_in);
  a.added("swap_out", v.swap_out);
  a("huge", v.huge);
  a("major", v.major);
  a.added("minor", v.minor);
  a.added("kernel", v.kernel);
  a.added("collapsed", v.collapsed);
}

template <typename A>
void fields(A& a, Of<A, HeapCensus>& v) {
  a("in_use", v.in_use);
  a("free_retained", v.free_retained);
  a("arenas", v.arenas);
}

template <typename A>
void fields(A& a, Of<A, Reconciliation>& v) {
  a("start", v.start);
  a("attributed", v.attributed);
  a("freed", v.freed);
  a("measured", v.measured);
  a("unexplained", v.unexplained);
}

template <typename A>
void fields(A& a, Of<A, TimelinePoint>& v) {
  a("t_s", v.t_s);
  a("rss", v.rss);
  a("anon", v.anon);
  a("file", v.file);
  a("shmem", v.shmem);
  a("swap", v.swap);
}

template <typename A>
void fields(A& a, Of<A, ProcessReport>& v) {
  a("pid", v.pid);
  a("ppid", v.ppid);
  a("start_time_ns", v.start_time_ns);
  a("comm", v.comm);
  a("cmdline", v.cmdline);
  a("role", v.role);
  a("worker", v.worker);
  a("started_s", v.started_s);
  a("ended_s", v.ended_s);
  a("exit", v.exit);
  a.nested("memory", [&v](auto& memory) {
    memory("start", v.start);
    memory("end", v.end);
    memory("peak_rss", v.peak_rss);
  });
  a("sources", v.sources);
  a("faults", v.faults);
  a("heap", v.heap);
  a("reconciliation", v.reconciliation);
  a("timeline", v.timeline);
}

template <typename A>
void fields(A& a, Of<A, Growth>& v) {
  a("bytes", v.bytes);
  a("explained_bytes", v.explained_bytes);
  a("unexplained_bytes", v.unexplained_bytes);
}

// Without the schema, which is checked before anything else is read.
template <typename A>
void fields(A& a, Of<A, Report>& v) {
  a.nested("tool", [&v](auto& tool) {
    tool.constant("name", "torchleak-trace");
    tool("version", v.tool_version);
  });
  a("capture", v.capture);
  a("machine", v.machine);
  a("processes", v.processes);
  a.empty_list("sites");
  a.empty_list("verdicts");
  a("growth", v.growth);
}

}  // namespace torchleak::report_json
