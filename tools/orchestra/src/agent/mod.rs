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

use crate::idl::orchestra::Property;

fn property(name: &str, value: impl Into<String>) -> Property {
    Property { name: name.to_owned(), value: value.into() }
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
