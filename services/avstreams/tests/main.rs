//! Tests of audio and video streams, by sentences of the specification.

mod control;
#[cfg(unix)] // processes are ended by signals
mod deaths;
mod exceptions;
#[cfg(unix)]
mod executable;
mod flow_specs;
mod flows;
mod foreign;
mod hostile;
#[cfg(target_os = "linux")] // the octets that a connection holds
mod interruptions;
mod losses;
mod pacing;
mod sentences;
mod single_flows;
mod support;
mod tls;
