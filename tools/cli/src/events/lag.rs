//! The monitor of a service, and the consumers that it shows.

use anyhow::Context as _;
use spandrel::net::error::escape;
use spandrel::net::sync::time::Deadline;
use spandrel::services::event_monitoring::{ConsumerState, Monitor};
use spandrel::types::Interface as _;
use spandrel::{SystemException, SystemExceptionKind};

use crate::client_args::bound;
use crate::json::{JsonObject, array};
use crate::trade::Table;

/// The states of one reply.
pub(super) const PAGE: u32 = 500;

/// The monitor that a factory of this kind of service has returned, with the time limit of the command.
pub(super) fn usable_monitor(
    answer: Result<Option<Monitor>, SystemException>,
    kind: &str,
    deadline: Deadline,
) -> anyhow::Result<Monitor> {
    let monitor = answer.map_err(|error| {
        let has_none = error.kind() == SystemExceptionKind::BadOperation;
        anyhow::Error::new(error).context(if has_none {
            format!("the {kind} service has no monitor")
        } else {
            format!("cannot ask the {kind} service for its monitor")
        })
    })?;
    let monitor = monitor.with_context(|| format!("the {kind} service has no monitor"))?;
    Ok(bound(monitor.as_object(), deadline)?.unchecked_narrow())
}

/// The consumers of a channel, those with the longest queues first.
pub(super) fn consumers_of(monitor: &Monitor, name: &str) -> anyhow::Result<Vec<ConsumerState>> {
    let states = monitor.consumers(name, PAGE);
    states.with_context(|| format!("cannot show the consumers of `{}`", escape(name)))
}

/// The consumers as a table, or as JSON.
pub(super) fn lag_text(states: &[ConsumerState], is_json: bool) -> String {
    if is_json {
        let json = |state: &ConsumerState| {
            let object = JsonObject::new().value("consumer", format!("{:x}", state.number));
            let object = object.value("pushed", state.is_pushed).value("queued", state.queued);
            let object = object.value("queued_octets", state.queued_octets).value("lag_ms", state.lag_ms);
            let object = object.value("delivered", state.delivered).value("dropped", state.dropped);
            object.value("expired", state.expired).value("failures", state.failures).finish()
        };
        return format!("{}\n", array(states.iter().map(json)));
    }
    let mut table = Table::new(["CONSUMER", "KIND", "QUEUE", "LAG", "DELIVERED", "DROPPED", "EXPIRED", "FAILURES"]);
    for state in states {
        table.row([
            format!("{:x}", state.number),
            if state.is_pushed { "push" } else { "pull" }.to_owned(),
            state.queued.to_string(),
            format!("{} ms", state.lag_ms),
            state.delivered.to_string(),
            state.dropped.to_string(),
            state.expired.to_string(),
            state.failures.to_string(),
        ]);
    }
    table.finish()
}
