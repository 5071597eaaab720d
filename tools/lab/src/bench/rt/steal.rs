//! The time that the host took from the processors of this machine.

use std::time::Instant;

/// The part of the processors' time that the host may take in a run. A run with more is repeated.
pub(super) const MOST: f64 = 0.01;
/// The greatest number of runs for one measurement; the one with the least steal counts.
pub(super) const ATTEMPTS: u32 = 3;

/// A measurement of stolen time, from its creation on.
pub(super) struct Meter {
    start: Instant,
    ticks: u64,
}

impl Meter {
    pub(super) fn start() -> Self {
        Self { start: Instant::now(), ticks: stolen_ticks().unwrap_or(0) }
    }

    /// The part of the processors' time that was stolen; `None` where the system does not report it.
    pub(super) fn part(&self) -> Option<f64> {
        let ticks = stolen_ticks()?.saturating_sub(self.ticks);
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let seconds = ticks as f64 / rustix::param::clock_ticks_per_second() as f64;
        Some(seconds / (self.start.elapsed().as_secs_f64() * processors as f64))
    }
}

fn stolen_ticks() -> Option<u64> {
    parse(&std::fs::read_to_string("/proc/stat").ok()?)
}

/// The eighth number of the first line: `cpu user nice system idle iowait irq softirq steal …` (proc_stat(5)).
fn parse(text: &str) -> Option<u64> {
    let line = text.lines().next()?.strip_prefix("cpu ")?;
    line.split_ascii_whitespace().nth(7)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steal_is_the_eighth_number_of_the_first_line() {
        assert_eq!(parse("cpu  1 2 3 4 5 6 7 88 9 10\ncpu0 1 1 1 1 1 1 1 1 1 1\n"), Some(88));
        assert_eq!((parse("cpu  1 2 3"), parse("intr 1"), parse("")), (None, None, None));
    }

    #[test]
    fn no_more_is_stolen_than_there_is() {
        let meter = Meter::start();
        let part = meter.part().unwrap();
        assert!((0.0..=1.0).contains(&part) || meter.start.elapsed().as_millis() < 50, "{part}");
    }
}
