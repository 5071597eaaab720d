//! The OMG's Audio/Video Streams (Audio/Video Streams 1.0, formal/00-01-03): controls that bind the flows of multimedia
//! devices, and the flows themselves, beside the ORB.
//!
//! [`AvStreams::start`] adds an adapter to an ORB. [`AvStreams::add_device`] serves a multimedia device, whose flows have a
//! [`MediaSource`] or a [`MediaSink`] in this process; [`AvStreams::new_control`] serves the control of a stream, which binds
//! devices of any ORB. [`AvStreams::add_flow_device`] serves a device of one flow.
//!
//! # Flows
//! The receiver of a flow listens, and the sender connects: by TCP, TLS, UDP, or RTP with RTCP; inside of TCP, TLS and
//! UDP also by the Simple Flow Protocol 1.0. Flows with a pace that are sent by datagrams without credit share a thread; each
//! other flow has one of its own. A flow that ends tells the control of its stream the reason, by the event `flow_dead:NAME`.
//! Parties watch the control of their stream, and a control its parties ([`AvLimits::absence`]).
//!
//! # Security
//! The address of a receiver has a token of 32 random octets, which goes to the sender by the ORB (over TLS, if the objects
//! are reached so). The sender shows it before the first frame; until then nothing is taken, and nothing else is sent to an
//! address, so that a flow floods nobody. [`FlowDefinition::needs_token`] turns this off for parties without tokens.
//!
//! # Decisions
//! The specification leaves these to the implementation:
//!
//! - The direction `in` is from the A party to the B party, `out` the reverse, as in TAO.
//! - Parameters of the quality of service are numbers with ranges ([`QosRange`]). A greater value is reduced to the greatest
//!   one, and the operation returns false; a lesser one raises QoSRequestFailed.
//! - A multipoint stream sends to the groups of its device, or else to each receiver by itself (`connect_leaf`).
//! - `FlowConnection::connect` raises FEPMismatch for a quality of service that cannot be granted, for which it has no exception;
//!   `add_consumer` returns false for a consumer that does not match.
//! - `set_key` raises NO_PERMISSION: flows are opened by tokens.
#![forbid(unsafe_code)]

mod admission;
mod control;
mod core;
mod device;
mod end_point;
mod flow;
mod flow_device;
mod flow_end_point;
mod flow_rules;
mod flow_spec;
mod flow_state;
mod imports;
mod limits;
mod media;
mod options;
mod pacer;
mod peer_watch;
mod qos;
mod receiver;
mod refusal;
mod reorder;
mod rtp;
mod sender;
mod service;
mod sfp;
mod statistics;
mod stream_channel;

pub use device::DeviceDefinition;
pub use flow_spec::{
    Carrier, Direction, FlowAddress, FlowEntry, FlowProtocol, FlowSpecError, MAX_ENTRY, MAX_FLOWS, MAX_NAME,
    parse_flow_spec, parse_reverse_flow_spec,
};
pub use limits::AvLimits;
pub use media::{FlowDefinition, Frame, MediaSink, MediaSource, Medium, QosRange, ReceivedFrame};
pub use options::{AvError, AvOptions};
pub use qos::{DSCP, FRAME_RATE};
pub use service::{ADAPTER, AvStreams};
pub use statistics::FlowStatistics;
