//! Progress of a long series: a bar on a terminal, plain lines elsewhere, always on standard error.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// The display of progress.
#[derive(Debug)]
pub struct Progress {
    form: Form,
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
        let form = if io::stderr().is_terminal() { Form::Bar } else { Form::Lines };
        Self { form, total, done: 0, start: Instant::now(), last: None }
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
        let full = (self.done.min(self.total) as usize * BAR_WIDTH).checked_div(self.total as usize).unwrap_or(0);
        let text: String = text.chars().take(TEXT_WIDTH).collect();
        let (seconds, full) = (self.start.elapsed().as_secs(), "#".repeat(full));
        format!("{seconds:>3} s [{full:-<BAR_WIDTH$}] {}/{} {text}", self.done, self.total)
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
}
