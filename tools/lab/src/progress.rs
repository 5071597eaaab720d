//! Progress of a long series: a bar on a terminal, plain lines elsewhere, always on standard error.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// The progress bar or the lines about finished steps, on standard error.
#[derive(Debug)]
pub struct Progress {
    form: Form,
    unit: Unit,
    total: u64,
    done: u64,
    start: Instant,
    /// The last output; none before the first.
    last: Option<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// One line that is written anew.
    Bar,
    /// A line now and then.
    Lines,
}

/// The unit of progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Steps,
    Octets,
}

impl Unit {
    /// A number of this unit, as it is shown.
    fn text(self, number: u64) -> String {
        if self == Self::Steps { number.to_string() } else { format!("{:.1} MB", number as f64 / 1e6) }
    }
}

/// The minimum interval of plain lines.
const LINE_INTERVAL: Duration = Duration::from_secs(2);
/// The minimum interval of changes of the bar, so that drawing does not disturb a measurement.
const BAR_INTERVAL: Duration = Duration::from_millis(100);
const BAR_WIDTH: usize = 24;
/// The width of the text behind the bar. The whole line fits 80 columns.
const TEXT_WIDTH: usize = 36;

impl Progress {
    /// A bar if standard error is a terminal, lines otherwise. It ends after `total` steps.
    #[must_use]
    pub fn begin(total: u64) -> Self {
        Self::new(Unit::Steps, total)
    }

    /// As [`begin`](Self::begin), for the octets of a transfer; `None` if their number is not known before its end.
    #[must_use]
    pub fn of_octets(total: Option<u64>) -> Self {
        Self::new(Unit::Octets, total.unwrap_or(u64::MAX))
    }

    fn new(unit: Unit, total: u64) -> Self {
        let form = if io::stderr().is_terminal() { Form::Bar } else { Form::Lines };
        Self { form, unit, total, done: 0, start: Instant::now(), last: None }
    }

    /// Reports the octets of a transfer up to now.
    pub fn reach(&mut self, octets: u64) {
        self.done = octets;
        match self.form {
            Form::Bar => self.draw_bar(&self.rate()),
            Form::Lines => {
                if self.last.unwrap_or(self.start).elapsed() >= LINE_INTERVAL {
                    self.last = Some(Instant::now());
                    let seconds = self.start.elapsed().as_secs();
                    _ = writeln!(io::stderr(), "{seconds:>4} s {} {}", self.counts(), self.rate());
                }
            }
        }
    }

    /// The octets in a second, and the time that is left at this rate.
    fn rate(&self) -> String {
        let rate = self.done as f64 / self.start.elapsed().as_secs_f64().max(1e-3);
        let left = (self.total.saturating_sub(self.done)) as f64 / rate.max(1.0);
        let left = if self.total == u64::MAX { String::new() } else { format!(", {left:.0} s left") };
        format!("{:.1} MB/s{left}", rate / 1e6)
    }

    /// The number that is done, and that of all if it is known.
    fn counts(&self) -> String {
        let reached = self.unit.text(self.done);
        if self.total == u64::MAX { reached } else { format!("{reached}/{}", self.unit.text(self.total)) }
    }

    /// Reports the next step.
    pub fn at(&mut self, what: &str) {
        self.draw_bar(what);
    }

    /// Reports a finished step, and its result.
    pub fn step(&mut self, what: &str, result: &str) {
        self.done += 1;
        match self.form {
            Form::Bar => self.draw_bar(&format!("{what}: {result}")),
            Form::Lines => {
                let last = self.last.unwrap_or(self.start);
                if self.done == self.total || last.elapsed() >= LINE_INTERVAL {
                    self.last = Some(Instant::now());
                    let seconds = self.start.elapsed().as_secs();
                    _ = writeln!(io::stderr(), "{seconds:>4} s {}/{} {what}: {result}", self.done, self.total);
                }
            }
        }
    }

    /// Removes the progress bar from the terminal.
    pub fn finish(self) {
        if self.form == Form::Bar && self.last.is_some() {
            _ = write!(io::stderr(), "\r\x1b[K");
        }
    }

    fn draw_bar(&mut self, text: &str) {
        let is_due = self.done == self.total || self.last.is_none_or(|last| last.elapsed() >= BAR_INTERVAL);
        if self.form == Form::Bar && is_due {
            self.last = Some(Instant::now());
            _ = write!(io::stderr(), "\r{}\x1b[K", self.bar(text));
        }
    }

    fn bar(&self, text: &str) -> String {
        let full = u128::from(self.done.min(self.total)) * BAR_WIDTH as u128;
        let full = full.checked_div(self.total.into()).unwrap_or(0) as usize;
        let text: String = text.chars().take(TEXT_WIDTH).collect();
        let (seconds, full) = (self.start.elapsed().as_secs(), "#".repeat(full));
        format!("{seconds:>3} s [{full:-<BAR_WIDTH$}] {} {text}", self.counts())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_grows_with_the_steps_and_fits_a_terminal() {
        let mut progress = Progress { form: Form::Lines, ..Progress::begin(4) };
        assert_eq!(progress.bar("c"), "  0 s [------------------------] 0/4 c");
        progress.step("c", "1");
        assert_eq!(progress.bar("c"), "  0 s [######------------------] 1/4 c");
        let many = Progress { done: 9999, total: 9999, ..progress };
        let bar = many.bar(&"long ".repeat(20));
        assert!(bar.starts_with("  0 s [########################] 9999/9999 long ") && bar.len() <= 80, "{bar}");
    }

    #[test]
    fn octets_are_shown_with_their_rate_and_the_time_that_is_left() {
        let start = Instant::now().checked_sub(Duration::from_secs(10)).unwrap();
        let half = Progress { form: Form::Lines, done: 20_000_000, start, ..Progress::of_octets(Some(40_000_000)) };
        assert_eq!(half.rate(), "2.0 MB/s, 10 s left");
        assert_eq!(half.bar("x"), " 10 s [############------------] 20.0 MB/40.0 MB x");
        let unknown = Progress { form: Form::Lines, done: 20_000_000, start, ..Progress::of_octets(None) };
        assert_eq!(unknown.bar(&unknown.rate()), " 10 s [------------------------] 20.0 MB 2.0 MB/s");
        let large = Progress { form: Form::Lines, done: 1 << 62, start, ..Progress::of_octets(Some(1 << 63)) };
        assert!(large.bar("").contains("[############-----"), "{}", large.bar(""));
        let none = Progress { form: Form::Lines, ..Progress::of_octets(Some(0)) };
        assert!(none.bar("").contains("0.0 MB/0.0 MB"));
    }
}
