//! Progress of a long series: a bar on a terminal, plain lines elsewhere, always on standard error.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// The display of progress.
#[derive(Debug)]
pub enum Progress {
    /// A bar that redraws itself.
    Bar(ProgressBar),
    /// A line now and then.
    Lines(Lines),
    /// No display.
    Silent,
}

/// Plain progress lines.
#[derive(Debug)]
pub struct Lines {
    total: u64,
    done: u64,
    start: Instant,
    last: Instant,
}

/// The minimum interval of plain lines.
const LINE_INTERVAL: Duration = Duration::from_secs(2);

impl Progress {
    /// A bar if standard error is a terminal, lines otherwise. It ends after `total` steps.
    #[must_use]
    pub fn begin(total: u64) -> Self {
        if !io::stderr().is_terminal() {
            let now = Instant::now();
            return Self::Lines(Lines { total, done: 0, start: now, last: now });
        }
        let style = ProgressStyle::with_template("{elapsed:>4} [{wide_bar}] {pos}/{len} {msg:<44}");
        let bar = ProgressBar::new(total).with_style(style.expect("the template is a constant"));
        // No ticks: a drawing thread would disturb the measurement.
        Self::Bar(bar)
    }

    /// Reports the next step.
    pub fn at(&mut self, what: &str) {
        if let Self::Bar(bar) = self {
            bar.set_message(what.to_owned());
            bar.tick();
        }
    }

    /// Reports a finished step, and its result.
    pub fn step(&mut self, what: &str, result: &str) {
        match self {
            Self::Bar(bar) => {
                bar.set_message(format!("{what}: {result}"));
                bar.inc(1);
            }
            Self::Lines(lines) => {
                lines.done += 1;
                if lines.done == lines.total || lines.last.elapsed() >= LINE_INTERVAL {
                    lines.last = Instant::now();
                    let seconds = lines.start.elapsed().as_secs();
                    _ = writeln!(io::stderr(), "{seconds:>4} s {}/{} {what}: {result}", lines.done, lines.total);
                }
            }
            Self::Silent => {}
        }
    }

    /// Removes the bar.
    pub fn finish(self) {
        if let Self::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}
