//! The octets of the policies that references and requests carry.

use spandrel_cdr::CdrError;
use spandrel_giop::component::PolicyValue as EncodedPolicy;

use crate::octets::{self, DecodeError};
use crate::policies::{
    ClientProtocolPolicy, MAX_BANDS, MAX_PROTOCOLS, PriorityBand, PriorityBandedConnectionPolicy, PriorityModel,
    PriorityModelPolicy,
};
use crate::protocols::Protocol;

/// A policy of Real-time CORBA that references and requests carry.
///
/// The form of the client's protocols is TAO's, because the standard has none for their properties: the list of the
/// protocols, each with its number and the attributes of its transport in the order of the IDL.
#[derive(Clone, Debug, PartialEq)]
pub enum PropagatedPolicy {
    /// The origin and value of the priority that the object's server declares.
    PriorityModel(PriorityModelPolicy),
    /// The ranges of priorities that each have a connection of their own.
    PriorityBands(PriorityBandedConnectionPolicy),
    /// The protocols by which clients connect.
    ClientProtocols(ClientProtocolPolicy),
    /// A policy of another type, an empty list of bands or protocols, or one with a protocol that is unknown.
    Other(EncodedPolicy),
}

impl PropagatedPolicy {
    /// Encodes the policy as references and requests carry it.
    ///
    /// # Errors
    /// More octets than CDR can count.
    pub fn encode(&self) -> Result<EncodedPolicy, CdrError> {
        let mut out = octets::encapsulation();
        let policy_type = match self {
            Self::PriorityModel(policy) => {
                out.u32(policy.model as u32);
                out.i16(policy.server_priority.get());
                PriorityModelPolicy::POLICY_TYPE
            }
            Self::PriorityBands(policy) => {
                out.len(policy.bands().len())?;
                for band in policy.bands() {
                    out.i16(band.low().get());
                    out.i16(band.high().get());
                }
                PriorityBandedConnectionPolicy::POLICY_TYPE
            }
            Self::ClientProtocols(policy) => {
                out.len(policy.protocols().len())?;
                policy.protocols().iter().try_for_each(|protocol| protocol.encode(&mut out))?;
                ClientProtocolPolicy::POLICY_TYPE
            }
            Self::Other(policy) => return Ok(policy.clone()),
        };
        Ok(EncodedPolicy { policy_type, data: out.to_vec() })
    }

    /// Decodes a policy that a reference or request carries.
    ///
    /// # Errors
    /// [`DecodeError`] for octets of another form, and for values that the policy's constructor would refuse.
    pub fn decode(policy: EncodedPolicy) -> Result<Self, DecodeError> {
        match policy.policy_type {
            PriorityModelPolicy::POLICY_TYPE => decode_model(&policy.data).map(Self::PriorityModel),
            PriorityBandedConnectionPolicy::POLICY_TYPE => {
                Ok(decode_bands(&policy.data)?.map_or(Self::Other(policy), Self::PriorityBands))
            }
            ClientProtocolPolicy::POLICY_TYPE => {
                Ok(decode_protocols(&policy.data)?.map_or(Self::Other(policy), Self::ClientProtocols))
            }
            _ => Ok(Self::Other(policy)),
        }
    }
}

/// Decodes the protocols; `None` if there are none, or one is unknown.
fn decode_protocols(data: &[u8]) -> Result<Option<ClientProtocolPolicy>, DecodeError> {
    const NAME: &str = "client protocol policy";
    let protocols = octets::decode(NAME, data, |input| {
        let count = input.sequence_len(4)?;
        if count > MAX_PROTOCOLS {
            return Err(CdrError::OverBound { len: count, bound: MAX_PROTOCOLS });
        }
        (0..count).map(|_| Protocol::decode(input)).collect::<Result<Option<Vec<_>>, _>>()
    })?;
    match protocols {
        Some(protocols) if !protocols.is_empty() => ClientProtocolPolicy::new(protocols)
            .map(Some)
            .map_err(|error| DecodeError::value(NAME, error.detail().unwrap_or_default().to_owned())),
        _ => Ok(None),
    }
}

fn decode_model(data: &[u8]) -> Result<PriorityModelPolicy, DecodeError> {
    const NAME: &str = "priority model policy";
    let (number, priority) = octets::decode(NAME, data, |input| Ok((input.u32()?, input.i16()?)))?;
    let model = match number {
        0 => PriorityModel::ClientPropagated,
        1 => PriorityModel::ServerDeclared,
        _ => return Err(DecodeError::value(NAME, format!("{number} is no priority model"))),
    };
    Ok(PriorityModelPolicy { model, server_priority: octets::priority(NAME, priority)? })
}

/// Decodes the bands; `None` if there are none, by which a server leaves them to its clients.
fn decode_bands(data: &[u8]) -> Result<Option<PriorityBandedConnectionPolicy>, DecodeError> {
    const NAME: &str = "priority-banded connection policy";
    let pairs = octets::decode(NAME, data, |input| {
        let count = input.sequence_len(4)?;
        if count > MAX_BANDS {
            return Err(CdrError::OverBound { len: count, bound: MAX_BANDS });
        }
        (0..count).map(|_| Ok((input.i16()?, input.i16()?))).collect::<Result<Vec<_>, _>>()
    })?;
    if pairs.is_empty() {
        return Ok(None);
    }
    let bands = pairs.into_iter().map(|(low, high)| band(NAME, low, high)).collect::<Result<_, _>>()?;
    PriorityBandedConnectionPolicy::from_bands(bands)
        .map(Some)
        .ok_or_else(|| DecodeError::value(NAME, "its bands overlap".to_owned()))
}

pub(crate) fn band(name: &'static str, low: i16, high: i16) -> Result<PriorityBand, DecodeError> {
    PriorityBand::from_priorities(octets::priority(name, low)?, octets::priority(name, high)?)
        .ok_or_else(|| DecodeError::value(name, format!("the band from {low} to {high} is empty")))
}
