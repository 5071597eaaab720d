//! The OMG's Audio/Video Streams (formal/00-01-03): controls that bind the flows of multimedia devices, and the flows
//! themselves.
#![forbid(unsafe_code)]

mod flow_spec;
mod limits;
mod media;

pub use flow_spec::{
    Carrier, Direction, FlowAddress, FlowEntry, FlowProtocol, FlowSpecError, MAX_ENTRY, MAX_FLOWS, MAX_NAME,
    parse_flow_spec, parse_reverse_flow_spec,
};
pub use limits::AvLimits;
pub use media::{FlowDefinition, Frame, MediaSink, MediaSource, Medium, QosRange, ReceivedFrame};
