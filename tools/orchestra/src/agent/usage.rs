//! The use of processor time and memory, as `/proc` reports it.

use crate::idl::orchestra::{CpuTime, ThreadUsage};

/// The use of resources by the processes of a server.
#[derive(Debug, Default)]
pub(crate) struct TreeUsage {
    /// The first process, with all its threads.
    pub(crate) process: CpuTime,
    /// The children that it has waited for.
    pub(crate) children: CpuTime,
    /// All processes that exist, with the children that they have waited for.
    pub(crate) tree: CpuTime,
    pub(crate) threads: Vec<ThreadUsage>,
    pub(crate) processes: u32,
    pub(crate) resident: u64,
    pub(crate) peak_resident: u64,
    pub(crate) voluntary_switches: u64,
    pub(crate) involuntary_switches: u64,
}

/// The seconds of processor time, in user mode and in the kernel, that a process, its descendants and the children that they
/// have waited for have used so far. Zero where the system does not report them.
#[must_use]
pub fn processor_times(process: u32) -> (f64, f64) {
    let CpuTime { user, system } = tree_usage(process, None).tree;
    (user, system)
}

pub(crate) fn difference(a: CpuTime, b: CpuTime) -> CpuTime {
    CpuTime { user: (a.user - b.user).max(0.0), system: (a.system - b.system).max(0.0) }
}

#[cfg(target_os = "linux")]
pub(crate) use linux::{machine_time, tree_usage};

#[cfg(not(target_os = "linux"))]
pub(crate) fn machine_time() -> Option<CpuTime> {
    None
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn tree_usage(_first: u32, _group: Option<&[u32]>) -> TreeUsage {
    TreeUsage::default()
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs;

    use spandrel_lab::machine::resident_octets;

    use super::{CpuTime, ThreadUsage, TreeUsage};

    /// The most threads of a process that are looked at.
    const MAX_THREADS: usize = 4096;

    /// The time of all processors since the system began: processes in user mode, and the kernel with its interrupts.
    pub(crate) fn machine_time() -> Option<CpuTime> {
        let text = fs::read_to_string("/proc/stat").ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let ticks: Vec<f64> = line.split_whitespace().filter_map(|field| field.parse().ok()).collect();
        // user, nice, system, idle, iowait, irq, softirq
        let [user, nice, system, _, _, irq, softirq, ..] = ticks[..] else { return None };
        Some(CpuTime { user: seconds(user + nice), system: seconds(system + irq + softirq) })
    }

    fn seconds(ticks: f64) -> f64 {
        ticks / rustix::param::clock_ticks_per_second() as f64
    }

    /// The processes of `group`, or without one the first process and its descendants.
    pub(crate) fn tree_usage(first: u32, group: Option<&[u32]>) -> TreeUsage {
        let mut usage = TreeUsage::default();
        let processes = group.map_or_else(|| descendants(first), <[u32]>::to_vec);
        for process in processes {
            let Some(stat) = Stat::read(&format!("/proc/{process}/stat")) else { continue };
            usage.processes += 1;
            usage.tree = sum(usage.tree, sum(stat.own, stat.children));
            usage.resident += resident_octets(process).unwrap_or(0);
            let is_first = process == first;
            if is_first {
                (usage.process, usage.children) = (stat.own, stat.children);
                let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
                usage.peak_resident = number(&status, "VmHWM:").unwrap_or(0) * 1024;
            }
            add_threads(&mut usage, process, is_first);
        }
        usage
    }

    fn sum(a: CpuTime, b: CpuTime) -> CpuTime {
        CpuTime { user: a.user + b.user, system: a.system + b.system }
    }

    fn add_threads(usage: &mut TreeUsage, process: u32, is_first: bool) {
        let Ok(tasks) = fs::read_dir(format!("/proc/{process}/task")) else { return };
        for task in tasks.flatten().take(MAX_THREADS).map(|task| task.path()) {
            let status = fs::read_to_string(task.join("status")).unwrap_or_default();
            usage.voluntary_switches += number(&status, "voluntary_ctxt_switches:").unwrap_or(0);
            usage.involuntary_switches += number(&status, "nonvoluntary_ctxt_switches:").unwrap_or(0);
            let id = task.file_name().and_then(|name| name.to_str()?.parse().ok());
            if let (true, Some(id), Some(stat)) = (is_first, id, Stat::read(&task.join("stat").to_string_lossy())) {
                usage.threads.push(ThreadUsage { id, name: stat.name, time: stat.own });
            }
        }
    }

    /// A number behind its name at the beginning of a line.
    fn number(status: &str, name: &str) -> Option<u64> {
        let value = status.lines().find_map(|line| line.strip_prefix(name))?;
        value.split_whitespace().next()?.parse().ok()
    }

    /// A process and all processes below it.
    fn descendants(first: u32) -> Vec<u32> {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let parents: Vec<(u32, u32)> = numbers
            .filter_map(|process| Some((process, Stat::read(&format!("/proc/{process}/stat"))?.parent)))
            .collect();
        let mut processes = vec![first];
        let mut next = 0;
        while let Some(parent) = processes.get(next).copied() {
            let children = parents.iter().filter(|(child, of)| *of == parent && !processes.contains(child));
            let children: Vec<u32> = children.map(|(child, _)| *child).collect();
            processes.extend(children);
            next += 1;
        }
        processes
    }

    /// The fields of `/proc/…/stat` (proc(5)) that are used here.
    struct Stat {
        name: String,
        parent: u32,
        own: CpuTime,
        children: CpuTime,
    }

    impl Stat {
        fn read(path: &str) -> Option<Self> {
            let text = fs::read_to_string(path).ok()?;
            // The name is in parentheses, and may itself contain some.
            let (before, after) = text.rsplit_once(')')?;
            let name = before.split_once('(')?.1.to_owned();
            let fields: Vec<&str> = after.split_whitespace().collect();
            let time = |first: usize| {
                let ticks = |at: usize| fields.get(at)?.parse().ok().map(seconds);
                Some(CpuTime { user: ticks(first)?, system: ticks(first + 1)? })
            };
            Some(Self { name, parent: fields.get(1)?.parse().ok()?, own: time(11)?, children: time(13)? })
        }
    }
}
