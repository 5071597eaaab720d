//! Numbers of the process's ORB, from the text of its metrics.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use spandrel_metrics::{Series, series};

/// The most operations with numbers of their own: those with the most calls.
const MAX_OPERATIONS: usize = 50;
/// The most connections and numbers that are shown.
const MAX_ROWS: usize = 100;

/// A histogram with its errors.
#[derive(Default)]
struct Times {
    count: f64,
    errors: f64,
    seconds: f64,
    /// The numbers up to each bound, by the bound in seconds.
    buckets: BTreeMap<u64, f64>,
}

impl Times {
    fn add(&mut self, part: &str, series: &Series<'_>) {
        let value = series.value();
        match part {
            "count" => {
                self.count += value;
                let outcome = series.label("outcome").unwrap_or_default();
                if !matches!(outcome, "ok" | "user_exception" | "forwarded") {
                    self.errors += value;
                }
            }
            "sum" => self.seconds += value,
            _ => {
                let bound = series.label("le").and_then(|bound| bound.parse::<f64>().ok());
                if let Some(bound) = bound.filter(|bound| bound.is_finite()) {
                    *self.buckets.entry((bound * 1e9) as u64).or_default() += value;
                }
            }
        }
    }

    fn json(&self) -> Value {
        let bounds: Vec<f64> = self.buckets.keys().map(|bound| *bound as f64 / 1e9).collect();
        let counts: Vec<f64> = self.buckets.values().copied().collect();
        json!({ "count": self.count, "errors": self.errors, "seconds": self.seconds, "bounds": bounds, "counts": counts })
    }
}

/// The numbers in a text of metrics ([`Orb::render_metrics`](spandrel::Orb::render_metrics)): times of both sides and of
/// operations (50 at most), open connections and plain counters (100 at most). All of them count from the start of the process.
#[must_use]
pub fn load_numbers(text: &str) -> Value {
    let mut sides: BTreeMap<&str, Times> = [("client", Times::default()), ("server", Times::default())].into();
    let mut operations: BTreeMap<(&str, String, String), Times> = BTreeMap::new();
    let mut connections: BTreeMap<(String, String), [f64; 2]> = BTreeMap::new();
    let mut plain = Map::new();
    for series in series(text) {
        let (name, value) = (series.name(), series.value());
        let label = |name| series.label(name).unwrap_or_default().to_owned();
        let times = [("spandrel_call_seconds_", "client"), ("spandrel_request_seconds_", "server")];
        if let Some((part, side)) = times.iter().find_map(|(prefix, side)| Some((name.strip_prefix(prefix)?, *side))) {
            sides.entry(side).or_default().add(part, &series);
            let operation = (side, label("interface"), label("operation"));
            operations.entry(operation).or_default().add(part, &series);
        } else if let Some(part) = name.strip_prefix("spandrel_connection_request") {
            let counts = connections.entry((label("side"), label("peer"))).or_default();
            counts[usize::from(part != "s_total")] += value;
        } else if !name.starts_with("spandrel_queue_wait_seconds") && plain.len() < MAX_ROWS {
            plain.insert(series.to_string(), json!(value));
        }
    }
    let mut operations: Vec<_> = operations.into_iter().collect();
    operations.sort_by(|(_, one), (_, other)| other.count.total_cmp(&one.count));
    operations.truncate(MAX_OPERATIONS);
    let operations = operations.iter().map(|((side, interface, operation), times)| {
        json!({ "side": side, "interface": interface, "operation": operation, "times": times.json() })
    });
    let connections = connections.iter().take(MAX_ROWS).map(|((side, peer), [requests, octets])| {
        json!({ "side": side, "peer": peer, "requests": requests, "octets": octets })
    });
    json!({
        "sides": sides.iter().map(|(side, times)| ((*side).to_owned(), times.json())).collect::<Map<_, _>>(),
        "operations": operations.collect::<Vec<_>>(),
        "connections": connections.collect::<Vec<_>>(),
        "numbers": plain,
    })
}
