//! `spandrel orchestra agent`: the Harness and the WorkTeam of one machine.

mod arguments;
mod config;
#[cfg_attr(not(target_os = "linux"), path = "no_group.rs")]
mod group;
mod harness;
mod recorder;
mod server;
mod servers;
mod team;
mod usage;

pub use arguments::AgentArgs;
pub use config::{AgentConfig, CommandConfig};
pub(crate) use servers::MAX_SERVERS;
pub use usage::processor_times;

use std::time::Duration;

use spandrel::{CompletionStatus, SystemException};

use crate::idl::orchestra::Property;

fn property(name: &str, value: impl Into<String>) -> Property {
    Property { name: name.to_owned(), value: value.into() }
}

/// The time of a parameter in seconds, at most `longest`; none if it is negative.
///
/// # Errors
/// BAD_PARAM for what is no number.
fn limited_time(name: &str, seconds: f64, longest: f64) -> Result<Duration, SystemException> {
    if seconds.is_nan() {
        return Err(SystemException::bad_param(0, CompletionStatus::No).with_detail(format!("{name} is no number")));
    }
    Ok(Duration::from_secs_f64(seconds.clamp(0.0, longest)))
}

/// The machine as results show it.
fn machine() -> Vec<Property> {
    let machine = spandrel_lab::machine::Machine::here();
    let mut properties = vec![property("system", machine.system), property("cores", machine.cores.to_string())];
    properties.extend(machine.kernel.map(|kernel| property("kernel", kernel)));
    properties.extend(machine.processor.map(|processor| property("processor", processor)));
    properties.push(property("agent", machine.program));
    properties
}
