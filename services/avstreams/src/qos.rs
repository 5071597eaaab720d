//! Negotiation of the quality of service.
//!
//! A request names a flow, or no flow for all of them, and parameters with numbers. A value beyond a device's greatest one
//! becomes that one, and the request is not met in full; a value below its least one fails, and so does an unknown
//! parameter.

use spandrel::services::av_streams::QoS;
use spandrel::types::Any;

use crate::flow::FlowEnd;
use crate::media::FlowDefinition;
use crate::refusal::Refusal;

/// The parameter that changes the pace of a source.
pub const FRAME_RATE: &str = "frame_rate";
/// The parameter that changes the class of service of packets.
pub const DSCP: &str = "dscp";

/// Whether the request concerns the flow.
pub(crate) fn concerns(qos: &QoS, flow: &str) -> bool {
    qos.qo_s_type.is_empty() || qos.qo_s_type == flow
}

/// Replaces the values of a request by those that all of these flows grant. Returns whether all were granted as asked.
pub(crate) fn negotiate<'d>(
    request: &mut [QoS],
    flows: impl Iterator<Item = &'d FlowDefinition> + Clone,
) -> Result<bool, Refusal> {
    let mut is_met = true;
    for qos in request {
        let mut concerned = flows.clone().filter(|flow| concerns(qos, &flow.name)).peekable();
        if concerned.peek().is_none() {
            let name = crate::flow_spec::shown(&qos.qo_s_type);
            return Err(Refusal::Qos(format!("the stream has no flow `{name}`")));
        }
        for flow in concerned.collect::<Vec<_>>() {
            is_met &= negotiate_flow(qos, flow)?;
        }
    }
    Ok(is_met)
}

/// As [`negotiate`], with one flow.
pub(crate) fn negotiate_flow(qos: &mut QoS, flow: &FlowDefinition) -> Result<bool, Refusal> {
    let mut is_met = true;
    for parameter in &mut qos.qo_s_params {
        let name = crate::flow_spec::shown(&parameter.property_name);
        let range = flow.qos.iter().find(|range| range.name == parameter.property_name);
        let range = range.ok_or_else(|| Refusal::Qos(format!("the flow `{}` has no parameter `{name}`", flow.name)))?;
        let value = number(&parameter.property_value)
            .ok_or_else(|| Refusal::Qos(format!("the parameter `{name}` of `{}` is no number", flow.name)))?;
        if value < i64::from(range.min) {
            let reason = format!("the parameter `{name}` of `{}` is at least {}, not {value}", flow.name, range.min);
            return Err(Refusal::Qos(reason));
        }
        if value > i64::from(range.max) {
            parameter.property_value = Any::new(range.max)
                .map_err(|error| Refusal::Qos(format!("the parameter `{name}` cannot be granted: {error}")))?;
            is_met = false;
        }
    }
    Ok(is_met)
}

/// Applies granted values to a flow.
pub(crate) fn apply(granted: &[QoS], flow: &FlowEnd) {
    for qos in granted.iter().filter(|qos| concerns(qos, &flow.definition().name)) {
        for parameter in &qos.qo_s_params {
            let value = number(&parameter.property_value).and_then(|value| u32::try_from(value).ok());
            match (parameter.property_name.as_str(), value) {
                (FRAME_RATE, Some(rate)) => flow.set_frame_rate(rate),
                (DSCP, Some(dscp)) => flow.set_dscp(dscp.min(63) as u8),
                _ => {}
            }
        }
    }
}

/// The number in a value of any integer type.
fn number(value: &Any) -> Option<i64> {
    let of_32 = || value.extract::<u32>().map(i64::from).ok().or_else(|| value.extract::<i32>().map(i64::from).ok());
    let of_16 = || value.extract::<u16>().map(i64::from).ok().or_else(|| value.extract::<i16>().map(i64::from).ok());
    let of_64 = || value.extract::<i64>().ok().or_else(|| i64::try_from(value.extract::<u64>().ok()?).ok());
    of_32().or_else(of_16).or_else(of_64).or_else(|| value.extract::<u8>().map(i64::from).ok())
}
