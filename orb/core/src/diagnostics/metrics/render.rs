//! The text of metrics for Prometheus, in the format of [`Statistics`](crate::Statistics).

use spandrel_metrics::{Kind, escape_label, write_header, write_sample};
use spandrel_sync::atomic::Ordering;

use super::{
    Metrics, Side,
    histogram::{Histogram, bounds},
};

const SIDES: &[Side] = &[Side::Client, Side::Server];

impl Metrics {
    /// Appends all metrics in the text format of Prometheus.
    pub(crate) fn render(&self, text: &mut String) {
        write_header(
            text,
            "spandrel_requests_running",
            "Calls (client) and requests (server) that have not ended.",
            Kind::Gauge,
        );
        for side in SIDES {
            let running = self.side(*side).running.load(Ordering::Relaxed);
            write_sample(text, "spandrel_requests_running", &format!(r#"side="{}""#, side.name()), running);
        }
        for side in SIDES {
            self.render_times(text, *side);
        }
        {
            let name = "spandrel_queue_wait_seconds";
            write_header(text, name, "Time that requests waited for a thread of the pool.", Kind::Histogram);
            render_histogram(text, name, r#"queue="pool""#, &self.waits);
        }
        let snapshot = self.connections.snapshot();
        let mut per_connection = |name: &str, help: &str, number: fn(&(Side, String, u64, u64)) -> u64| {
            write_header(text, name, help, Kind::Counter);
            for connection in &snapshot {
                let labels = format!(r#"side="{}",peer="{}""#, connection.0.name(), escape_label(&connection.1));
                write_sample(text, name, &labels, number(connection));
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
        write_header(text, name, help, Kind::Histogram);
        self.side(side).series.visit(|interface, operation, outcome, histogram| {
            let labels = format!(
                r#"interface="{}",operation="{}",outcome="{}""#,
                escape_label(interface),
                escape_label(operation),
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
        write_sample(text, &format!("{name}_bucket"), &format!(r#"{labels},le="{bound}""#), count);
    }
    write_sample(text, &format!("{name}_bucket"), &format!(r#"{labels},le="+Inf""#), snapshot.count);
    write_sample(text, &format!("{name}_sum"), labels, snapshot.seconds);
    write_sample(text, &format!("{name}_count"), labels, snapshot.count);
}
