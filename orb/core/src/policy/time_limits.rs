//! Policies that limit the time of a call (CORBA 3.3 Part 1, 17.2.4).

use std::time::{Duration, SystemTime};

use spandrel_cdr::{CdrError, Decode, Decoder, Defining, Encode, Encoder, TypeCode, Typed};

use crate::{PolicyType, PolicyValue};

/// `Messaging::REQUEST_START_TIME_POLICY_TYPE`: the earliest delivery of the request.
pub(crate) const REQUEST_START_TIME: PolicyType = 27;
/// `Messaging::REQUEST_END_TIME_POLICY_TYPE`: the latest delivery of the request.
pub(crate) const REQUEST_END_TIME: PolicyType = 28;
/// `Messaging::REPLY_START_TIME_POLICY_TYPE`: the earliest delivery of the reply.
pub(crate) const REPLY_START_TIME: PolicyType = 29;
/// `Messaging::REPLY_END_TIME_POLICY_TYPE`: the latest delivery of the reply.
pub(crate) const REPLY_END_TIME: PolicyType = 30;
/// `Messaging::RELATIVE_REQ_TIMEOUT_POLICY_TYPE`: the time until the request is delivered.
pub(crate) const RELATIVE_REQUEST_TIMEOUT: PolicyType = 31;
/// `Messaging::RELATIVE_RT_TIMEOUT_POLICY_TYPE`: the time until the reply is delivered.
pub(crate) const RELATIVE_ROUNDTRIP_TIMEOUT: PolicyType = 32;
/// `TAO::CONNECTION_TIMEOUT_POLICY_TYPE`, by TAO's number.
pub(crate) const CONNECTION_TIMEOUT: PolicyType = 0x5441_0008;

/// The policies that calls have to look up.
pub(crate) const LIMITS: [PolicyType; 6] = [
    REQUEST_START_TIME,
    REQUEST_END_TIME,
    REPLY_START_TIME,
    REPLY_END_TIME,
    RELATIVE_REQUEST_TIMEOUT,
    CONNECTION_TIMEOUT,
];

/// The time limit of a call, from its beginning to its reply. Beyond it the call ends in TIMEOUT.
/// [`Duration::MAX`] is no limit.
///
/// ```
/// # mod spandrel { pub use spandrel_orb::*; pub mod policy { pub use spandrel_orb::policy::*; } }
/// use std::time::Duration;
///
/// use spandrel::Orb;
/// use spandrel::policy::{RelativeRoundtripTimeoutPolicy, SetOverrideType};
///
/// let orb = Orb::builder().build()?;
/// let limit = RelativeRoundtripTimeoutPolicy(Duration::from_secs(2));
/// orb.policy_manager().set_policy_overrides(&[limit.into()], SetOverrideType::AddOverride)?; // for all calls
/// # orb.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct RelativeRoundtripTimeoutPolicy(pub Duration);

/// The time limit until the request is sent, connecting included. The reply may come later. [`Duration::MAX`]
/// is no limit.
///
/// ```
/// # mod spandrel { pub use spandrel_orb::*; pub mod policy { pub use spandrel_orb::policy::*; } }
/// use std::time::Duration;
///
/// use spandrel::policy::{RelativeRequestTimeoutPolicy, RelativeRoundtripTimeoutPolicy, SetOverrideType};
/// # let orb = spandrel::Orb::builder().build()?;
/// # let account = orb.string_to_object("corbaloc::bank.example:2809/Account")?;
///
/// // A report takes minutes, but a server that is down is known after two seconds.
/// let limits = [
///     RelativeRequestTimeoutPolicy(Duration::from_secs(2)).into(),
///     RelativeRoundtripTimeoutPolicy(Duration::from_secs(600)).into(),
/// ];
/// let patient = account.set_policy_overrides(&limits, SetOverrideType::AddOverride)?;
/// # orb.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct RelativeRequestTimeoutPolicy(pub Duration);

/// The time limit for obtaining a connection, if none is open that the request can use: for connecting, or
/// for waiting for a connection. It applies to each address of a reference separately. The policy is TAO's.
/// [`OrbBuilder::connect_timeout`](crate::OrbBuilder::connect_timeout) limits connecting as well.
/// [`Duration::MAX`] is no limit.
///
/// ```
/// # mod spandrel { pub use spandrel_orb::*; pub mod policy { pub use spandrel_orb::policy::*; } }
/// use std::time::Duration;
///
/// use spandrel::policy::{ConnectionTimeoutPolicy, SetOverrideType};
/// # let orb = spandrel::Orb::builder().build()?;
/// # let account = orb.string_to_object("corbaloc::bank.example:2809/Account")?;
///
/// // A reference with several addresses: the next one is tried after 200 ms.
/// let limit = ConnectionTimeoutPolicy(Duration::from_millis(200));
/// let replicated = account.set_policy_overrides(&[limit.into()], SetOverrideType::AddOverride)?;
/// # orb.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct ConnectionTimeoutPolicy(pub Duration);

/// The start time of the request (17.2.4.1). The caller's ORB holds an earlier call and sends nothing. If the
/// time limit of the request or of its reply ends before, the call ends in TIMEOUT at once.
///
/// ```
/// # mod spandrel { pub use spandrel_orb::*; pub mod policy { pub use spandrel_orb::policy::*; } }
/// use std::time::{Duration, SystemTime};
///
/// use spandrel::policy::{RequestEndTimePolicy, RequestStartTimePolicy, SetOverrideType};
/// # let orb = spandrel::Orb::builder().build()?;
/// # let account = orb.string_to_object("corbaloc::bank.example:2809/Account")?;
///
/// // The order is sent when the market opens, within ten seconds, or not at all.
/// let opening = SystemTime::now() + Duration::from_secs(3600);
/// let window = [RequestStartTimePolicy(opening).into(), RequestEndTimePolicy(opening + Duration::from_secs(10)).into()];
/// let scheduled = account.set_policy_overrides(&window, SetOverrideType::AddOverride)?;
/// # orb.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct RequestStartTimePolicy(pub SystemTime);

/// The start time of the reply (17.2.4.3). Earlier results and user exceptions are held back; system
/// exceptions are not.
///
/// ```
/// # mod spandrel { pub use spandrel_orb::*; pub mod policy { pub use spandrel_orb::policy::*; } }
/// use std::time::{Duration, SystemTime};
///
/// use spandrel::policy::{ReplyEndTimePolicy, ReplyStartTimePolicy, SetOverrideType};
/// # let orb = spandrel::Orb::builder().build()?;
/// # let account = orb.string_to_object("corbaloc::bank.example:2809/Account")?;
///
/// // The results of a sealed bid are available between its end and the end of the day.
/// let end = SystemTime::now() + Duration::from_secs(3600);
/// let window = [ReplyStartTimePolicy(end).into(), ReplyEndTimePolicy(end + Duration::from_secs(8 * 3600)).into()];
/// let sealed = account.set_policy_overrides(&window, SetOverrideType::AddOverride)?;
/// # orb.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct ReplyStartTimePolicy(pub SystemTime);

/// The time by which the request must be sent.
///
/// ```
/// # mod spandrel { pub use spandrel_orb::*; pub mod policy { pub use spandrel_orb::policy::*; } }
/// use std::time::{Duration, SystemTime};
///
/// use spandrel::policy::{RequestEndTimePolicy, SetOverrideType};
/// # let orb = spandrel::Orb::builder().build()?;
/// # let account = orb.string_to_object("corbaloc::bank.example:2809/Account")?;
///
/// let deadline = RequestEndTimePolicy(SystemTime::now() + Duration::from_secs(5));
/// let prompt = account.set_policy_overrides(&[deadline.into()], SetOverrideType::AddOverride)?;
/// # orb.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct RequestEndTimePolicy(pub SystemTime);

/// The time by which the reply must have arrived.
///
/// ```
/// # mod spandrel { pub use spandrel_orb::*; pub mod policy { pub use spandrel_orb::policy::*; } }
/// use std::time::{Duration, SystemTime};
///
/// use spandrel::policy::{ReplyEndTimePolicy, SetOverrideType};
/// # let orb = spandrel::Orb::builder().build()?;
/// # let account = orb.string_to_object("corbaloc::bank.example:2809/Account")?;
///
/// // One deadline for several calls in a row, such as those of one frame of a display.
/// let frame = ReplyEndTimePolicy(SystemTime::now() + Duration::from_millis(20));
/// let in_frame = account.set_policy_overrides(&[frame.into()], SetOverrideType::AddOverride)?;
/// # orb.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct ReplyEndTimePolicy(pub SystemTime);

macro_rules! policy_types {
    ($($name:ident $number:ident;)*) => {
        $(impl PolicyValue for $name {
            fn policy_type(&self) -> PolicyType {
                $number
            }
        })*
    };
}

policy_types! {
    ConnectionTimeoutPolicy CONNECTION_TIMEOUT;
    RelativeRoundtripTimeoutPolicy RELATIVE_ROUNDTRIP_TIMEOUT;
    RelativeRequestTimeoutPolicy RELATIVE_REQUEST_TIMEOUT;
    RequestStartTimePolicy REQUEST_START_TIME;
    RequestEndTimePolicy REQUEST_END_TIME;
    ReplyStartTimePolicy REPLY_START_TIME;
    ReplyEndTimePolicy REPLY_END_TIME;
}

/// Converts a time in units of 100 ns (`TimeBase::TimeT`); the greatest number is no limit.
pub(crate) fn span(time: u64) -> Duration {
    match time {
        u64::MAX => Duration::MAX,
        time => Duration::from_micros(time / 10) + Duration::from_nanos(time % 10 * 100),
    }
}

/// `TimeBase::UtcT`: a point in time, in 100 ns since 15 October 1582.
///
/// ```
/// # mod policy { pub use spandrel_orb::policy::UtcT; }
/// use std::time::{Duration, SystemTime};
///
/// use policy::UtcT; // of spandrel
///
/// let at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
/// let utc = UtcT::from_system_time(at).expect("the year is between 1582 and 60038");
/// assert_eq!(utc.time, 0x01b2_1dd2_1381_4000 + 10_000_000_000_000_000);
/// assert_eq!(utc.to_system_time(), Some(at));
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct UtcT {
    /// The point in UTC, in 100 ns since 15 October 1582.
    pub time: u64,
    /// The lower 32 bits of the inaccuracy, in 100 ns.
    pub inacclo: u32,
    /// The upper 16 bits of the inaccuracy, a number of 48 bits.
    pub inacchi: u16,
    /// The time zone in minutes east of Greenwich; it does not change the point in time.
    pub tdf: i16,
}

/// 1 January 1970, in 100 ns since 15 October 1582.
const UNIX_EPOCH: u64 = 0x01b2_1dd2_1381_4000;

impl UtcT {
    /// Converts a point in time without inaccuracy; `None` before 1582 or after 60038.
    #[must_use]
    pub fn from_system_time(at: SystemTime) -> Option<Self> {
        let ticks = |span: Duration| u64::try_from(span.as_nanos() / 100).ok();
        let time = match at.duration_since(SystemTime::UNIX_EPOCH) {
            Ok(after) => UNIX_EPOCH.checked_add(ticks(after)?),
            Err(before) => UNIX_EPOCH.checked_sub(ticks(before.duration())?),
        };
        Some(Self { time: time?, ..Self::default() })
    }

    /// The latest point in time within the inaccuracy.
    pub(crate) fn latest(self) -> Option<Self> {
        let off = u64::from(self.inacchi) << 32 | u64::from(self.inacclo);
        Some(Self { time: self.time.checked_add(off)?, inacclo: 0, inacchi: 0, tdf: self.tdf })
    }

    /// The point in time; `None` if this system's clock cannot represent it.
    #[must_use]
    pub fn to_system_time(self) -> Option<SystemTime> {
        match self.time.checked_sub(UNIX_EPOCH) {
            Some(after) => SystemTime::UNIX_EPOCH.checked_add(span(after)),
            None => SystemTime::UNIX_EPOCH.checked_sub(span(UNIX_EPOCH - self.time)),
        }
    }
}

impl Typed for UtcT {
    fn type_code() -> TypeCode {
        static DEFINING: Defining = Defining::new();
        let members = || {
            let (u64, u32) = (u64::type_code(), u32::type_code());
            let time = TypeCode::alias("IDL:omg.org/TimeBase/TimeT:1.0", "TimeT", &u64)?;
            let tdf = TypeCode::alias("IDL:omg.org/TimeBase/TdfT:1.0", "TdfT", &i16::type_code())?;
            let members = [("time", time), ("inacclo", u32), ("inacchi", u16::type_code()), ("tdf", tdf)];
            TypeCode::structure("IDL:omg.org/TimeBase/UtcT:1.0", "UtcT", &members)
        };
        DEFINING.recursive("IDL:omg.org/TimeBase/UtcT:1.0", members)
    }
}

impl Encode for UtcT {
    fn encode<'a>(&'a self, out: &mut Encoder<'a>) -> Result<(), CdrError> {
        out.u64(self.time);
        out.u32(self.inacclo);
        out.u16(self.inacchi);
        out.i16(self.tdf);
        Ok(())
    }
}

impl Decode for UtcT {
    const MIN_OCTETS: usize = 16;

    fn decode(input: &mut Decoder<'_>) -> Result<Self, CdrError> {
        Ok(Self { time: input.u64()?, inacclo: input.u32()?, inacchi: input.u16()?, tdf: input.i16()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gregorian_calendar_began_141427_days_before_1970() {
        let day = 24 * 3600 * 10_000_000;
        assert_eq!(UNIX_EPOCH, 141_427 * day);
        let utc = |time| UtcT { time, ..UtcT::default() }.to_system_time();
        assert_eq!(utc(UNIX_EPOCH + 15), Some(SystemTime::UNIX_EPOCH + Duration::from_nanos(1500)));
        assert_eq!(utc(UNIX_EPOCH - day), Some(SystemTime::UNIX_EPOCH - Duration::from_secs(24 * 3600)));
        assert_eq!(span(u64::MAX), Duration::MAX);
    }
}
