//! The text of metrics for Prometheus, in the format of [`Statistics`](crate::Statistics).

use std::fmt::Write;

use spandrel_sync::atomic::Ordering;

use super::{
    Metrics, Side,
    histogram::{Histogram, bounds},
};
use crate::statistics::render::{header, sample};

const SIDES: &[Side] = &[Side::Client, Side::Server];

impl Metrics {
    /// Appends all metrics.
    pub(crate) fn render(&self, text: &mut String) {
        header(text, "spandrel_requests_running", "Calls (client) and requests (server) that have not ended.", "gauge");
        for side in SIDES {
            let running = self.side(*side).running.load(Ordering::Relaxed);
            sample(text, "spandrel_requests_running", &format!(r#"side="{}""#, side.name()), running);
        }
        for side in SIDES {
            self.render_times(text, *side);
        }
        {
            let name = "spandrel_queue_wait_seconds";
            header(text, name, "Time that requests waited for a thread of the pool.", "histogram");
            render_histogram(text, name, r#"queue="pool""#, &self.waits);
        }
        let snapshot = self.connections.snapshot();
        let mut per_connection = |name: &str, help: &str, number: fn(&(Side, String, u64, u64)) -> u64| {
            header(text, name, help, "counter");
            for connection in &snapshot {
                let labels = format!(r#"side="{}",peer="{}""#, connection.0.name(), label_value(&connection.1));
                sample(text, name, &labels, number(connection));
            }
        };
        per_connection("spandrel_connection_requests_total", "Requests over each open connection.", |counts| counts.2);
        per_connection("spandrel_connection_request_octets_total", "Octets of these requests.", |counts| counts.3);
    }

    fn render_times(&self, text: &mut String, side: Side) {
        let (name, help) = match side {
            Side::Client => ("spandrel_call_seconds", "Time of calls, from the caller's point of view."),
            Side::Server => (
                "spandrel_request_seconds",
                "Time of requests, from the begin of their service by a thread to the reply.",
            ),
        };
        header(text, name, help, "histogram");
        self.side(side).series.visit(|interface, operation, outcome, histogram| {
            let labels = format!(
                r#"interface="{}",operation="{}",outcome="{}""#,
                label_value(interface),
                label_value(operation),
                outcome.name()
            );
            render_histogram(text, name, &labels, histogram);
        });
    }
}

/// Renders a histogram, unless it is empty.
fn render_histogram(text: &mut String, name: &str, labels: &str, histogram: &Histogram) {
    let snapshot = histogram.snapshot();
    if snapshot.count == 0 {
        return;
    }
    for (bound, count) in bounds().zip(&snapshot.counts) {
        sample(text, &format!("{name}_bucket"), &format!(r#"{labels},le="{bound}""#), count);
    }
    sample(text, &format!("{name}_bucket"), &format!(r#"{labels},le="+Inf""#), snapshot.count);
    sample(text, &format!("{name}_sum"), labels, snapshot.seconds);
    sample(text, &format!("{name}_count"), labels, snapshot.count);
}

/// Escapes a label's value: backslashes, quotation marks, line ends, and other control characters.
fn label_value(value: &str) -> String {
    let mut escaped = String::with_capacity(value.len());
    for c in value.chars() {
        match c {
            '\\' => escaped.push_str(r"\\"),
            '"' => escaped.push_str("\\\""),
            '\n' => escaped.push_str(r"\n"),
            c if c.is_control() => drop(write!(escaped, "\\\\u{{{:x}}}", u32::from(c))),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_values_are_escaped() {
        assert_eq!(label_value("IDL:a/B:1.0"), "IDL:a/B:1.0");
        assert_eq!(label_value("a\"b\\c\nd"), r#"a\"b\\c\nd"#);
        assert_eq!(label_value("\r\u{1}"), r"\\u{d}\\u{1}");
    }
}
