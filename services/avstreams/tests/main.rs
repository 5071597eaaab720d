//! Tests of audio and video streams, by sentences of the specification.

mod control;
#[cfg(unix)] // processes are ended by signals
mod deaths;
#[cfg(unix)]
mod executable;
mod flow_specs;
mod flows;
mod foreign;
mod hostile;
mod losses;
mod single_flows;
mod support;
mod tls;
