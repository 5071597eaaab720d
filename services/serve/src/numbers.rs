//! Metrics that several services have.

use spandrel_metrics::{Kind, write_header, write_sample};

/// The number of open connections.
pub(crate) fn connections(number: usize) -> String {
    let (mut text, name) = (String::new(), "spandrel_service_connections");
    write_header(&mut text, name, "Open connections of clients.", Kind::Gauge);
    write_sample(&mut text, name, "", number);
    text
}

/// Appends a number that only grows.
pub(crate) fn count(text: &mut String, name: &str, help: &str, number: u64) {
    write_header(text, name, help, Kind::Counter);
    write_sample(text, name, "", number);
}
