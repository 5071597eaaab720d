//! Tests of audio and video streams, by sentences of the specification.

mod control;
mod deaths;
mod executable;
mod flow_specs;
mod flows;
mod foreign;
mod hostile;
mod losses;
mod single_flows;
mod support;
