//! Policies from values whose types are known only at run time (`CORBA::ORB::create_policy`).

use spandrel_cdr::{Any, CdrError, Decode, Decoder, Encode, Encoder, Ior, TypeCode, Typed};
use spandrel_giop::SystemException;
use spandrel_orb::policy::{PolicyErrorCode, PolicyFactory};
use spandrel_orb::{Policy, PolicyType};

use crate::Priority;
use crate::policies::{
    ClientProtocolPolicy, PriorityBand, PriorityBandedConnectionPolicy, PriorityModel, PriorityModelPolicy,
    PrivateConnectionPolicy, ServerProtocolPolicy, ThreadpoolPolicy,
};
use crate::protocols::Protocol;

/// Creates the policies of all types of Real-time CORBA:
///
/// | type | value |
/// | --- | --- |
/// | priority model (40) | a [`PriorityModelPolicy`], for which the standard's IDL has no type: a structure of its attributes |
/// | thread pool (41) | `unsigned long` |
/// | server and client protocols (42, 43) | `RTCORBA::ProtocolList`, of which [`protocol_list`] makes a value |
/// | private connection (44) | any value, which is ignored |
/// | priority bands (45) | `RTCORBA::PriorityBands` |
///
/// A value of another type is refused with BAD_POLICY_TYPE, and one that the constructor of the policy refuses with
/// BAD_POLICY_VALUE. The properties of protocols are local objects, which no value contains: those of a list are nil, and
/// stand for the default properties. Others are refused with UNSUPPORTED_POLICY_VALUE; the policies' constructors take them.
///
/// ```
/// use spandrel_cdr::Any;
/// use spandrel_orb::Orb;
/// use spandrel_rt::RtPolicyFactory;
/// use spandrel_rt::policies::ThreadpoolPolicy;
/// use spandrel_sync::Arc;
///
/// let orb = Orb::builder().build()?;
/// for policy_type in RtPolicyFactory::TYPES {
///     orb.register_policy_factory(policy_type, Arc::new(RtPolicyFactory))?;
/// }
/// let policy = orb.create_policy(ThreadpoolPolicy::POLICY_TYPE, &Any::new(7_u32)?)?;
/// assert_eq!(policy.value(), Some(&ThreadpoolPolicy(7)));
/// # orb.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct RtPolicyFactory;

impl RtPolicyFactory {
    /// The policy types for which the factory is to be registered with an ORB.
    pub const TYPES: [PolicyType; 6] = [
        PriorityModelPolicy::POLICY_TYPE,
        ThreadpoolPolicy::POLICY_TYPE,
        ServerProtocolPolicy::POLICY_TYPE,
        ClientProtocolPolicy::POLICY_TYPE,
        PrivateConnectionPolicy::POLICY_TYPE,
        PriorityBandedConnectionPolicy::POLICY_TYPE,
    ];
}

impl PolicyFactory for RtPolicyFactory {
    fn create_policy(&self, policy_type: PolicyType, value: &Any) -> Result<Policy, PolicyErrorCode> {
        match policy_type {
            PriorityModelPolicy::POLICY_TYPE => Ok(extract::<EncodedModel>(value)?.policy()?.into()),
            ServerProtocolPolicy::POLICY_TYPE => Ok(check(ServerProtocolPolicy::new(protocols(value)?))?.into()),
            ClientProtocolPolicy::POLICY_TYPE => Ok(check(ClientProtocolPolicy::new(protocols(value)?))?.into()),
            ThreadpoolPolicy::POLICY_TYPE => Ok(ThreadpoolPolicy(extract(value)?).into()),
            PrivateConnectionPolicy::POLICY_TYPE => Ok(PrivateConnectionPolicy.into()),
            PriorityBandedConnectionPolicy::POLICY_TYPE => {
                let ranges: Vec<EncodedBand> = extract(value)?;
                let bands = ranges.into_iter().map(|EncodedBand { low, high }| PriorityBand::new(low, high));
                Ok(check(bands.collect::<Result<_, _>>().and_then(PriorityBandedConnectionPolicy::new))?.into())
            }
            _ => Err(PolicyErrorCode::BadPolicyType),
        }
    }
}

fn extract<T: Decode + Typed>(value: &Any) -> Result<T, PolicyErrorCode> {
    value.extract().map_err(|_| PolicyErrorCode::BadPolicyType)
}

/// The policy, unless its constructor refuses the value.
fn check<P>(policy: Result<P, SystemException>) -> Result<P, PolicyErrorCode> {
    policy.map_err(|_| PolicyErrorCode::BadPolicyValue)
}

/// A value of `RTCORBA::ProtocolList`: the protocols with these numbers, the preferred one first, with nil for all
/// properties.
///
/// ```
/// use spandrel_orb::Orb;
/// use spandrel_rt::policies::ClientProtocolPolicy;
/// use spandrel_rt::{RtPolicyFactory, protocol_list, protocols};
/// use spandrel_sync::Arc;
///
/// let orb = Orb::builder().build()?;
/// orb.register_policy_factory(ClientProtocolPolicy::POLICY_TYPE, Arc::new(RtPolicyFactory))?;
/// let list = protocol_list(&[protocols::UNIX_DOMAIN, protocols::IIOP])?;
/// let policy = orb.create_policy(ClientProtocolPolicy::POLICY_TYPE, &list)?;
/// assert_eq!(policy.value::<ClientProtocolPolicy>().map(|policy| policy.protocols().len()), Some(2));
/// # orb.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// MARSHAL for more protocols than a sequence can have.
pub fn protocol_list(protocol_types: &[u32]) -> Result<Any, SystemException> {
    let protocols = protocol_types.iter().map(|protocol_type| EncodedProtocol {
        protocol_type: *protocol_type,
        properties: [Ior::default(), Ior::default()],
    });
    Ok(Any::new(protocols.collect::<Vec<_>>())?)
}

/// The protocols of a list whose properties are nil.
fn protocols(value: &Any) -> Result<Vec<Protocol>, PolicyErrorCode> {
    let encoded: Vec<EncodedProtocol> = extract(value)?;
    if encoded.iter().flat_map(|protocol| &protocol.properties).any(|properties| !properties.is_nil()) {
        return Err(PolicyErrorCode::UnsupportedPolicyValue);
    }
    let protocols = encoded.iter().map(|protocol| Protocol { protocol_type: protocol.protocol_type, transport: None });
    Ok(protocols.collect())
}

/// The type code of `RTCORBA::Priority`, an alias of `short`.
fn priority_type() -> TypeCode {
    TypeCode::alias("IDL:omg.org/RTCORBA/Priority:1.0", "Priority", &TypeCode::SHORT).expect("its names are valid")
}

/// A protocol as the standard's IDL has it.
#[derive(Clone)]
struct EncodedProtocol {
    protocol_type: u32,
    /// The properties of GIOP, and those of the transport.
    properties: [Ior; 2],
}

impl Typed for EncodedProtocol {
    fn type_code() -> TypeCode {
        let properties = TypeCode::local_interface("IDL:omg.org/RTCORBA/ProtocolProperties:1.0", "ProtocolProperties");
        let number = TypeCode::alias("IDL:omg.org/IOP/ProfileId:1.0", "ProfileId", &TypeCode::ULONG);
        let members = number.and_then(|number| {
            let properties = properties?;
            let members = [
                ("protocol_type", number),
                ("orb_protocol_properties", properties.clone()),
                ("transport_protocol_properties", properties),
            ];
            TypeCode::structure("IDL:omg.org/RTCORBA/Protocol:1.0", "Protocol", &members)
        });
        members.expect("its names are valid")
    }
}

impl Encode for EncodedProtocol {
    fn encode<'a>(&'a self, out: &mut Encoder<'a>) -> Result<(), CdrError> {
        out.u32(self.protocol_type);
        self.properties.iter().try_for_each(|properties| properties.encode(out))
    }
}

impl Decode for EncodedProtocol {
    const MIN_OCTETS: usize = 4 + 2 * Ior::MIN_OCTETS;

    fn decode(input: &mut Decoder<'_>) -> Result<Self, CdrError> {
        Ok(Self { protocol_type: input.u32()?, properties: [Ior::decode(input)?, Ior::decode(input)?] })
    }
}

/// The type of the value for [`create_policy`](spandrel_orb::Orb::create_policy): a structure of the policy's attributes.
impl Typed for PriorityModelPolicy {
    fn type_code() -> TypeCode {
        let models = ["CLIENT_PROPAGATED", "SERVER_DECLARED"];
        let model = TypeCode::enumeration("IDL:omg.org/RTCORBA/PriorityModel:1.0", "PriorityModel", &models);
        let members = model.and_then(|model| {
            let members = [("priority_model", model), ("server_priority", priority_type())];
            TypeCode::structure("IDL:spandrel/RTCORBA/PriorityModelValue:1.0", "PriorityModelValue", &members)
        });
        members.expect("its names are valid")
    }
}

impl Encode for PriorityModelPolicy {
    fn encode<'a>(&'a self, out: &mut Encoder<'a>) -> Result<(), CdrError> {
        out.u32(self.model as u32);
        out.i16(self.server_priority.get());
        Ok(())
    }
}

/// The attributes of a priority model policy, before they are checked.
#[derive(Clone)]
struct EncodedModel {
    model: u32,
    server_priority: i16,
}

impl EncodedModel {
    fn policy(&self) -> Result<PriorityModelPolicy, PolicyErrorCode> {
        let model = match self.model {
            0 => PriorityModel::ClientPropagated,
            1 => PriorityModel::ServerDeclared,
            _ => return Err(PolicyErrorCode::BadPolicyValue),
        };
        let server_priority = check(Priority::new(self.server_priority))?;
        Ok(PriorityModelPolicy { model, server_priority })
    }
}

impl Typed for EncodedModel {
    fn type_code() -> TypeCode {
        PriorityModelPolicy::type_code()
    }
}

impl Decode for EncodedModel {
    const MIN_OCTETS: usize = 6;

    fn decode(input: &mut Decoder<'_>) -> Result<Self, CdrError> {
        Ok(Self { model: input.u32()?, server_priority: input.i16()? })
    }
}

/// A band as IDL has it, before it is checked.
#[derive(Clone)]
struct EncodedBand {
    low: i16,
    high: i16,
}

impl Typed for EncodedBand {
    fn type_code() -> TypeCode {
        let members = [("low", priority_type()), ("high", priority_type())];
        TypeCode::structure("IDL:omg.org/RTCORBA/PriorityBand:1.0", "PriorityBand", &members)
            .expect("its names are valid")
    }
}

impl Decode for EncodedBand {
    const MIN_OCTETS: usize = 4;

    fn decode(input: &mut Decoder<'_>) -> Result<Self, CdrError> {
        Ok(Self { low: input.i16()?, high: input.i16()? })
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn properties_in_a_list_of_protocols_are_refused() {
        let object = Ior { type_id: "IDL:omg.org/RTCORBA/TCPProtocolProperties:1.0".to_owned(), profiles: Vec::new() };
        for properties in [[object.clone(), Ior::default()], [Ior::default(), object]] {
            let list = Any::new(vec![EncodedProtocol { protocol_type: 0, properties }]).unwrap();
            for policy_type in [ServerProtocolPolicy::POLICY_TYPE, ClientProtocolPolicy::POLICY_TYPE] {
                let refused = RtPolicyFactory.create_policy(policy_type, &list).unwrap_err();
                assert_eq!(refused, PolicyErrorCode::UnsupportedPolicyValue);
            }
        }
    }
}
