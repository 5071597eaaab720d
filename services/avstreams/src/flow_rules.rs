//! Rules for flows that end points of streams and single flows share.

use std::net::IpAddr;

use spandrel::authorization::ReceivedCredentials;
use spandrel::services::av_streams::{DirType, FlowStatus, QoS, SfpStatus};
use spandrel::types::Any;
use spandrel_property::LocalPropertySet;

use crate::core::set_property;
use crate::flow::FlowEnd;
use crate::flow_spec::{FlowAddress, FlowProtocol, MAX_NAME};
use crate::refusal::Refusal;
use crate::sfp::FrameFields;

/// Whether octets may be sent to an address that a party has named.
pub(crate) fn require_consent(flow: &FlowEnd, address: &FlowAddress, caller: Option<IpAddr>) -> Result<(), Refusal> {
    let is_caller = caller.is_some_and(|ip| ip.to_canonical() == address.data.ip().to_canonical());
    if address.token.is_some() || is_caller || !flow.definition().needs_token {
        return Ok(());
    }
    let name = &flow.definition().name;
    Err(Refusal::Failed(format!("the receiver of the flow `{name}` shows no token, and is not the party that calls")))
}

/// Requires that the name that a client gives an object is short enough to be remembered.
pub(crate) fn require_short(name: &str) -> Result<(), Refusal> {
    if name.len() <= MAX_NAME {
        return Ok(());
    }
    Err(Refusal::Denied(format!("the name of an object has at most {MAX_NAME} octets, not {}", name.len())))
}

/// The address of the party that calls.
pub(crate) fn caller_ip() -> Option<IpAddr> {
    ReceivedCredentials::current()?.ip()
}

/// Sets the property with the state of a flow.
pub(crate) fn publish(properties: &LocalPropertySet, flow: &FlowEnd) {
    let definition = flow.definition();
    let status = FlowStatus {
        flow_name: definition.name.clone(),
        directionality: if flow.is_source() { DirType::DirOut } else { DirType::DirIn },
        status: flow.state(),
        the_format: SfpStatus { seq_nums: true, timestamps: true, ..SfpStatus::default() },
        the_qo_s: QoS::default(),
    };
    if let Ok(status) = Any::new(&status) {
        set_property(properties, &definition.name, &status);
    }
}

/// The fields of frames that a setting of SFP asks for.
pub(crate) fn fields_of(name: &str, settings: &Any) -> Option<FrameFields> {
    if !matches!(FlowProtocol::parse(name), Some(FlowProtocol::Sfp { .. })) {
        return None;
    }
    let status = settings.extract::<SfpStatus>().ok()?;
    Some(match (status.timestamps || status.source_indicators, status.seq_nums) {
        (true, _) => FrameFields::Whole,
        (false, true) => FrameFields::Sequenced,
        (false, false) => FrameFields::Simple,
    })
}
