//! Lines with the counts of running flows.

use std::io::IsTerminal as _;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use spandrel::ObjectRef;
use spandrel_avstreams::{AvStreams, DeviceDefinition, FlowStatistics};

/// The counts of a flow, as text.
pub(crate) fn counts(is_source: bool, statistics: &FlowStatistics) -> String {
    let millis = |micros: u64| micros as f64 / 1e3;
    let frames = format!("{} frames of {} octets", statistics.frames, statistics.octets);
    // A sender knows of losses by the reports of its receiver.
    let lost = format!(
        "{} of {} packets lost",
        statistics.lost,
        statistics.packets + if is_source { 0 } else { statistics.lost }
    );
    let jitter = format!("jitter {:.2} ms", millis(statistics.jitter_micros));
    if is_source {
        return format!("{frames} sent, {lost}, {jitter}");
    }
    format!("{frames} received, {lost}, {jitter}, at most {:.2} ms late", millis(statistics.max_lateness_micros))
}

/// The time between two lines, if there are any: on a terminal a second.
pub(crate) fn interval(option: Option<Duration>) -> Option<Duration> {
    let default = || if std::io::stderr().is_terminal() { Duration::from_secs(1) } else { Duration::ZERO };
    Some(option.unwrap_or_else(default)).filter(|interval| !interval.is_zero())
}

/// Writes the counts of a device's flows until the sender of the channel is dropped.
pub(crate) fn run(
    streams: &AvStreams,
    (device, definition): (&ObjectRef, &DeviceDefinition),
    interval: Duration,
    end: &Receiver<()>,
) {
    while end.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
        for flow in &definition.flows {
            for statistics in streams.statistics(device, &flow.name) {
                let counts = counts(flow.medium.is_source(), &statistics);
                spandrel_daemon::remark(&format!("running: {}: {counts}\n", flow.name));
            }
        }
    }
}
