//! Processor time and memory of another process, from `/proc`.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use anyhow::Context as _;

/// The processor time of a process until now.
pub(super) struct ProcessorTime {
    /// The nanoseconds of each thread.
    threads: BTreeMap<u32, u64>,
    /// The clock ticks of the process, with those of threads that have ended.
    ticks: u64,
}

/// A tick of the counters in `stat` (`USER_HZ`).
const TICK: Duration = Duration::from_millis(10);

impl ProcessorTime {
    pub(super) fn read(process: u32) -> anyhow::Result<Self> {
        let folder = format!("/proc/{process}/task");
        let mut threads = BTreeMap::new();
        for entry in fs::read_dir(&folder).with_context(|| format!("cannot read {folder}"))? {
            let entry = entry?;
            let Some(thread) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            // A thread may end meanwhile.
            let Ok(text) = fs::read_to_string(entry.path().join("schedstat")) else { continue };
            let nanos = text.split_whitespace().next().context("schedstat is empty")?.parse()?;
            threads.insert(thread, nanos);
        }
        let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
        // The name of the program may have spaces; its bracket ends it. The user and system time are fields 14 and 15.
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let [user, system] = [11, 12].map(|field| fields.get(field).and_then(|text| text.parse::<u64>().ok()));
        let ticks = user.zip(system).map(|(user, system)| user + system).context("stat has no times")?;
        Ok(Self { threads, ticks })
    }

    /// The seconds since an earlier reading: the sum of the threads, or the ticks if a thread has ended since.
    pub(super) fn seconds_since(&self, earlier: &Self) -> f64 {
        if earlier.threads.keys().all(|thread| self.threads.contains_key(thread)) {
            let nanos = |thread: &u32, now: &u64| now - earlier.threads.get(thread).copied().unwrap_or(0).min(*now);
            let sum: u64 = self.threads.iter().map(|(thread, now)| nanos(thread, now)).sum();
            return Duration::from_nanos(sum).as_secs_f64();
        }
        (self.ticks - earlier.ticks.min(self.ticks)) as f64 * TICK.as_secs_f64()
    }
}

/// The resident memory of a process in KiB.
pub(super) fn resident(process: u32) -> anyhow::Result<f64> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("status has no VmRSS")?;
    Ok(line.trim().trim_end_matches("kB").trim_end().parse()?)
}
