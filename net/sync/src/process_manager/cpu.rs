//! Processor times of a child process on Linux.

use std::time::Duration;
use std::{fs, io};

/// Processor time that a process has used, over all its threads, also those that have ended.
///
/// Counted by the kernel's clock ticks, usually of 10 ms (`proc(5)`, `/proc/pid/stat`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTimes {
    /// The time that it ran in user mode.
    pub user: Duration,
    /// The time that the kernel ran on its behalf.
    pub system: Duration,
    /// User time of its descendants that have ended and been waited for.
    pub children_user: Duration,
    /// System time of those descendants.
    pub children_system: Duration,
}

impl CpuTimes {
    /// User and system time of the process itself.
    #[must_use]
    pub fn total(&self) -> Duration {
        self.user + self.system
    }

    /// The times of a process that runs, or has ended and not been reaped.
    pub(super) fn for_process(id: u32) -> io::Result<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{id}/stat"))?, rustix::param::clock_ticks_per_second())
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "/proc/pid/stat is not as proc(5) says"))
    }

    /// Parses fields 14 to 17 of the line. The second, the program's name in brackets, may contain blanks and
    /// brackets.
    fn parse(line: &str, ticks_per_second: u64) -> Option<Self> {
        let (_, after_name) = line.rsplit_once(')')?;
        let mut fields = after_name.split_ascii_whitespace().skip(11);
        let mut time = || -> Option<Duration> {
            let ticks: u64 = fields.next()?.parse().ok()?;
            let nanos = u128::from(ticks) * 1_000_000_000 / u128::from(ticks_per_second.max(1));
            Some(Duration::from_nanos(u64::try_from(nanos).ok()?))
        };
        Some(Self { user: time()?, system: time()?, children_user: time()?, children_system: time()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stat_line_is_parsed_for_any_program_name() {
        for name in ["cat", "a (b) c", ") R 1 2 3", ""] {
            let line = format!("42 ({name}) S 1 42 42 0 -1 4194560 100 0 0 0 150 25 300 4 20 0 3 0 12345 1000 200");
            let times = CpuTimes::parse(&line, 100).unwrap();
            assert_eq!(
                (times.user, times.system),
                (Duration::from_millis(1_500), Duration::from_millis(250)),
                "{name}"
            );
            assert_eq!(times.children_user + times.children_system, Duration::from_millis(3_040));
            assert_eq!(times.total(), Duration::from_millis(1_750));
        }
    }

    #[test]
    fn a_malformed_stat_line_is_refused() {
        for line in ["", "42 (cat", "42 (cat) S 1 2", "42 (cat) S 1 42 42 0 -1 4194560 100 0 0 0 150 x 300 4 20"] {
            assert_eq!(CpuTimes::parse(line, 100), None, "{line}");
        }
    }
}
