//! Policies from values whose types are known only at run time (`CORBA::ORB::create_policy`).

use spandrel_cdr::{Any, CdrError, Decode, Decoder, TypeCode, Typed};
use spandrel_orb::policy::{PolicyErrorCode, PolicyFactory};
use spandrel_orb::{Policy, PolicyType};

use crate::policies::{PriorityBand, PriorityBandedConnectionPolicy, PrivateConnectionPolicy, ThreadpoolPolicy};

/// Creates the policies whose value the standard's IDL has as one type: the thread pool (41, `unsigned long`), priority
/// bands (45, `RTCORBA::PriorityBands`), and the private connection (44), of which any value is ignored. Those of the
/// other types have constructors alone, as in TAO: BAD_POLICY_TYPE.
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
    /// The types that it is to be registered for.
    pub const TYPES: [PolicyType; 3] = [
        ThreadpoolPolicy::POLICY_TYPE,
        PrivateConnectionPolicy::POLICY_TYPE,
        PriorityBandedConnectionPolicy::POLICY_TYPE,
    ];
}

impl PolicyFactory for RtPolicyFactory {
    fn create_policy(&self, policy_type: PolicyType, value: &Any) -> Result<Policy, PolicyErrorCode> {
        match policy_type {
            ThreadpoolPolicy::POLICY_TYPE => Ok(ThreadpoolPolicy(extract(value)?).into()),
            PrivateConnectionPolicy::POLICY_TYPE => Ok(PrivateConnectionPolicy.into()),
            PriorityBandedConnectionPolicy::POLICY_TYPE => {
                let ranges: Vec<EncodedBand> = extract(value)?;
                let bands = ranges.into_iter().map(|EncodedBand { low, high }| PriorityBand::new(low, high));
                let policy = bands.collect::<Result<_, _>>().and_then(PriorityBandedConnectionPolicy::new);
                Ok(policy.map_err(|_| PolicyErrorCode::BadPolicyValue)?.into())
            }
            _ => Err(PolicyErrorCode::BadPolicyType),
        }
    }
}

fn extract<T: Decode + Typed>(value: &Any) -> Result<T, PolicyErrorCode> {
    value.extract().map_err(|_| PolicyErrorCode::BadPolicyType)
}

/// A band as IDL has it, before it is checked.
#[derive(Clone)]
struct EncodedBand {
    low: i16,
    high: i16,
}

impl Typed for EncodedBand {
    fn type_code() -> TypeCode {
        let priority = TypeCode::alias("IDL:omg.org/RTCORBA/Priority:1.0", "Priority", &TypeCode::SHORT);
        let members = priority.and_then(|priority| {
            let members = [("low", priority.clone()), ("high", priority)];
            TypeCode::structure("IDL:omg.org/RTCORBA/PriorityBand:1.0", "PriorityBand", &members)
        });
        members.expect("its names are valid")
    }
}

impl Decode for EncodedBand {
    const MIN_OCTETS: usize = 4;

    fn decode(input: &mut Decoder<'_>) -> Result<Self, CdrError> {
        Ok(Self { low: input.i16()?, high: input.i16()? })
    }
}
