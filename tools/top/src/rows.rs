//! The rows that are shown.

use crate::rates::Interval;
use crate::sample::{Sample, label};

/// The most connections that are shown.
const MAX_CONNECTIONS: usize = 50;

/// The rows of all tables, from one set of metrics.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    /// The services of `spandrel serve`.
    pub services: Vec<ServiceRow>,
    /// The tasks of streams: by stream, from head to tail, the writer before the reader.
    pub tasks: Vec<TaskRow>,
    /// A row for each ORB of the process.
    pub orbs: Vec<OrbRow>,
    /// Channels of an event or notification service, those with the longest queues first.
    pub channels: Vec<ChannelRow>,
    /// Connections of the ORBs, those with the most requests first.
    pub connections: Vec<ConnectionRow>,
}

/// The state of one service of `spandrel serve`.
#[derive(Clone, Debug)]
pub struct ServiceRow {
    /// The name in the service's process.
    pub name: String,
    /// Its kind: `Service_Object` or `STREAM`.
    pub kind: String,
    /// `active`, `suspended`, or `no answer`.
    pub state: &'static str,
    /// Its open connections, if it tells them.
    pub connections: Option<u64>,
}

/// The figures of one task of a stream's module.
#[derive(Clone, Debug)]
pub struct TaskRow {
    /// The stream to which the module belongs.
    pub stream: String,
    /// The module to which the task belongs.
    pub module: String,
    /// The side of the task: `reader` or `writer`.
    pub side: String,
    /// Messages received each second, once two readings exist.
    pub rate: Option<f64>,
    /// Messages that wait in its queue.
    pub messages: u64,
    /// The octets of the messages in the queue.
    pub octets: u64,
    /// The octets from which on the queue is flow controlled.
    pub high: u64,
    /// `stopped`, `full` (flow controlled), or `open`.
    pub flow: &'static str,
    /// The threads that run the task; none if it runs in the threads of others.
    pub threads: u64,
    /// Waits for the queue's lock each second.
    pub lock_waits: Option<f64>,
    /// The part of the time for which threads waited for the queue's lock: 1 is one thread that waits all the
    /// time.
    pub lock_wait: Option<f64>,
}

/// The counts and the latencies of one ORB.
#[derive(Clone, Debug)]
pub struct OrbRow {
    /// Its service; empty if the process shows the numbers of one ORB alone.
    pub name: String,
    /// Open connections that it has accepted.
    pub server_connections: u64,
    /// Open connections that it has made.
    pub client_connections: u64,
    /// Requests each second. Without `-ORBMetrics yes`, an ORB measures neither requests nor calls.
    pub requests: Option<f64>,
    /// Calls that it makes each second.
    pub calls: Option<f64>,
    /// Requests that have not ended.
    pub running: u64,
    /// The median time of requests in seconds: the bound of its bucket.
    pub median: Option<f64>,
    /// The 99th percentile of the time of requests, in seconds.
    pub p99: Option<f64>,
    /// Requests and calls each second that ended with a system exception.
    pub failures: Option<f64>,
    /// Whether it measures requests and calls.
    pub is_measured: bool,
}

/// The figures of one open connection of an ORB.
#[derive(Clone, Debug)]
pub struct ConnectionRow {
    /// The service of the ORB.
    pub orb: String,
    /// `server` if the ORB has accepted it, `client` if it has made it.
    pub side: String,
    /// The address of the peer.
    pub peer: String,
    /// Requests on the connection each second.
    pub rate: Option<f64>,
    /// Octets of requests each second.
    pub octets: Option<f64>,
}

/// The figures of one channel of an event or notification service.
#[derive(Clone, Debug)]
pub struct ChannelRow {
    /// The name, or the number in a notification service.
    pub name: String,
    /// The number of connected consumers.
    pub consumers: u64,
    /// The number of connected suppliers.
    pub suppliers: u64,
    /// Events of suppliers each second.
    pub received: Option<f64>,
    /// Deliveries to consumers each second.
    pub delivered: Option<f64>,
    /// Events each second that consumers did not get: dropped or expired.
    pub lost: Option<f64>,
    /// The events in the longest queue of a consumer.
    pub queued: u64,
    /// The age in seconds of the event that is next in a queue.
    pub lag: f64,
}

impl Rows {
    /// The rows of a sample, with rates since an earlier one.
    #[must_use]
    pub fn new(before: Option<&Sample>, now: &Sample) -> Self {
        let interval = Interval { before, now };
        Self {
            services: services(now),
            tasks: tasks(&interval),
            orbs: orbs(&interval),
            channels: channels(&interval),
            connections: connections(&interval),
        }
    }
}

/// A number that cannot be negative nor have a fraction.
fn whole(number: f64) -> u64 {
    number as u64
}

fn services(now: &Sample) -> Vec<ServiceRow> {
    let service = |(labels, active): &(_, f64)| {
        let name = label(labels, "service");
        let of = [("service", name)];
        let state = match (now.number("spandrel_service_answers", &of) > 0.0, *active > 0.0) {
            (false, _) => "no answer",
            (true, true) => "active",
            (true, false) => "suspended",
        };
        ServiceRow {
            name: name.to_owned(),
            kind: label(labels, "kind").to_owned(),
            state,
            connections: now.sum("spandrel_service_connections", &of).map(whole),
        }
    };
    now.series("spandrel_service_active").iter().map(service).collect()
}

fn tasks(interval: &Interval<'_>) -> Vec<TaskRow> {
    let (now, mut tasks) = (interval.now, Vec::new());
    for (labels, stopped) in now.series("spandrel_stream_module_stopped") {
        let (stream, module) = (label(labels, "service"), label(labels, "module"));
        for side in ["writer", "reader"] {
            let of = [("service", stream), ("module", module), ("side", side)];
            let number = |name| now.number(name, &of);
            let flow = match (*stopped > 0.0, number("spandrel_stream_flow_controlled") > 0.0) {
                (true, _) => "stopped",
                (false, true) => "full",
                (false, false) => "open",
            };
            tasks.push(TaskRow {
                stream: stream.to_owned(),
                module: module.to_owned(),
                side: side.to_owned(),
                rate: interval.rate("spandrel_stream_messages_total", &of),
                messages: whole(number("spandrel_stream_queue_messages")),
                octets: whole(number("spandrel_stream_queue_octets")),
                high: whole(number("spandrel_stream_queue_high_octets")),
                flow,
                threads: whole(number("spandrel_stream_threads")),
                lock_waits: interval.rate("spandrel_stream_lock_waits_total", &of),
                lock_wait: interval.rate("spandrel_stream_lock_wait_seconds_total", &of),
            });
        }
    }
    tasks
}

/// Whether calls and requests of this outcome have failed.
fn is_failure(outcome: &str) -> bool {
    !matches!(outcome, "ok" | "user_exception" | "forwarded")
}

fn orbs(interval: &Interval<'_>) -> Vec<OrbRow> {
    let now = interval.now;
    let mut names: Vec<&str> =
        now.series("spandrel_connections_open").iter().map(|(labels, _)| label(labels, "service")).collect();
    names.dedup();
    let orb = |name: &str| {
        let of = |side| [("service", name), ("side", side)];
        let own = [("service", name)];
        let failures = ["spandrel_request_seconds_count", "spandrel_call_seconds_count"].map(|family| {
            let mut outcomes: Vec<&str> =
                now.series(family).iter().map(|(labels, _)| label(labels, "outcome")).collect();
            outcomes.sort_unstable();
            outcomes.dedup();
            let failed = outcomes.iter().filter(|outcome| is_failure(outcome));
            failed.map(|outcome| interval.rate(family, &[("service", name), ("outcome", outcome)])).sum::<Option<f64>>()
        });
        OrbRow {
            name: name.to_owned(),
            server_connections: whole(now.number("spandrel_connections_open", &of("server"))),
            client_connections: whole(now.number("spandrel_connections_open", &of("client"))),
            requests: interval.rate("spandrel_request_seconds_count", &own),
            calls: interval.rate("spandrel_call_seconds_count", &own),
            running: whole(now.number("spandrel_requests_running", &of("server"))),
            median: interval.quantile("spandrel_request_seconds", &own, 0.5),
            p99: interval.quantile("spandrel_request_seconds", &own, 0.99),
            failures: interval.before.and(failures.into_iter().try_fold(0.0, |sum, failed| Some(sum + failed?))),
            is_measured: now.sum("spandrel_requests_running", &own).is_some(),
        }
    };
    names.into_iter().map(orb).collect()
}

fn connections(interval: &Interval<'_>) -> Vec<ConnectionRow> {
    let connection = |(labels, _): &(_, f64)| {
        let (orb, side, peer) = (label(labels, "service"), label(labels, "side"), label(labels, "peer"));
        let of = [("service", orb), ("side", side), ("peer", peer)];
        ConnectionRow {
            orb: orb.to_owned(),
            side: side.to_owned(),
            peer: peer.to_owned(),
            rate: interval.rate("spandrel_connection_requests_total", &of),
            octets: interval.rate("spandrel_connection_request_octets_total", &of),
        }
    };
    let mut rows: Vec<_> = interval.now.series("spandrel_connection_requests_total").iter().map(connection).collect();
    rows.sort_by(|one, other| other.rate.unwrap_or_default().total_cmp(&one.rate.unwrap_or_default()));
    rows.truncate(MAX_CONNECTIONS);
    rows
}

/// The channels of an event service and of a notification service, as their metrics show them.
fn channels(interval: &Interval<'_>) -> Vec<ChannelRow> {
    let (now, mut rows) = (interval.now, Vec::new());
    for service in ["event", "notification"] {
        for (series, consumers) in now.series(&format!("spandrel_{service}_consumers")) {
            let name = label(series, "channel");
            let labels = [("channel", name)];
            let rate = |count: &str| interval.rate(&format!("spandrel_{service}s_{count}_total"), &labels);
            let number = |gauge: &str| now.number(&format!("spandrel_{service}_{gauge}"), &labels);
            rows.push(ChannelRow {
                name: name.to_owned(),
                consumers: whole(*consumers),
                suppliers: whole(number("suppliers")),
                received: rate("received"),
                delivered: rate("delivered"),
                lost: rate("dropped").zip(rate("expired")).map(|(dropped, expired)| dropped + expired),
                queued: whole(number("queue_length")),
                lag: number("lag_milliseconds") / 1e3,
            });
        }
    }
    rows.sort_by_key(|row| std::cmp::Reverse(row.queued));
    rows
}
