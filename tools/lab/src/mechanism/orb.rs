//! Mechanism `orb`: the stubs and skeletons that the IDL compiler makes of `idl/ttcp.idl` and `idl/latency.idl`. The same text
//! stands for other engines' generated code, too (`orb-interpretive`, `orb-padded`).
//!
//! An application's view of the ORB: nothing here but its public interface. Each job has an ORB of its own at either end, so
//! that it begins with a fresh connection as the other mechanisms' jobs do.

use std::hint::black_box;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use spandrel::policies::{SetOverrideType, SyncScopePolicy};
use spandrel::ssliop::Ssliop;
use spandrel::{Concurrency, Endpoint, IiopProfile, ObjectRef, Orb, OrbBuilder, Poa, SystemException};

use super::generated::latency::{self, Latency, LatencyServant, LatencySkeleton};
use super::generated::ttcp::{self, TtcpSequenceServant, TtcpTwoway, TtcpTwowayServant, TtcpTwowaySkeleton};
use super::relay::Relay;
use super::{Job, Mechanism, Receiver, SocketOptions, Transmitter, Work, tls};
use crate::LabError;
use crate::call_times::CallTimes;
use crate::mechanism::Over;
use crate::workload::{CallKind, DataType, Flood, PING_STRUCTS, PingCase, PingPong};

/// The mechanism.
#[derive(Debug)]
pub(in crate::mechanism) struct OrbMechanism {
    /// How the server's connections are served; the ORB's default if it is not said.
    pub(in crate::mechanism) concurrency: Option<Concurrency>,
    /// What carries the requests.
    pub(in crate::mechanism) over: Over,
    /// One-ways return before they are written, together (the sync scope NONE); otherwise once the transport has taken them.
    pub(in crate::mechanism) is_batched: bool,
}

impl OrbMechanism {
    /// As the ORB is without being told otherwise.
    pub(in crate::mechanism) const PLAIN: Self = Self { concurrency: None, over: Over::Tcp, is_batched: false };
}

/// How long the receiver's ORB waits at its end for requests that still run.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(5);

fn builder(options: &SocketOptions) -> OrbBuilder {
    let queue = options.queue_octets.map(|octets| octets as usize);
    Orb::builder().socket_queues(queue, queue).shutdown_timeout(SHUTDOWN_LIMIT)
}

impl Mechanism for OrbMechanism {
    fn listen(&self, host: IpAddr, job: &Job) -> Result<Box<dyn Receiver>, LabError> {
        let identity = match self.over {
            Over::Tls => Some(tls::Identity::of(host).map_err(LabError::io("make a certificate"))?),
            _ => None,
        };
        let mut builder = builder(&job.sockets);
        builder = match &identity {
            None => builder.listen(match self.over {
                Over::Uds => Endpoint::of("uds", ""),
                Over::Shm => Endpoint::of("shm", ""),
                _ => Endpoint::new(host.to_string(), 0),
            }),
            Some(tls::Identity { certificate, key }) => {
                let ssliop = Ssliop::new(tls::provider()).identity(vec![certificate.clone()], key.clone_key());
                builder.protocol(ssliop).listen(Endpoint::of("ssliop", Endpoint::new(host.to_string(), 0).address()))
            }
        };
        if let Some(concurrency) = self.concurrency {
            builder = builder.concurrency(concurrency);
        }
        let orb = builder.build().map_err(LabError::call("make the ORB"))?;
        let received = Arc::new(Sink::default());
        let activate = || {
            let poa = Poa::root(&orb)?;
            match job.work {
                Work::Flood(_) => poa.activate(TtcpTwowaySkeleton::new(Arc::clone(&received))),
                Work::PingPong(_) | Work::Wire(_) => poa.activate(LatencySkeleton::new(Answering)),
            }
        };
        let reference = activate().map_err(LabError::call("activate the servant"))?;
        let reference = orb.object_to_string(&reference);
        let endpoint = identity.map_or_else(|| reference.clone(), |identity| identity.endpoint(&reference));
        Ok(Box::new(Serving { endpoint, orb, received }))
    }

    fn connect(&self, endpoint: &str, job: &Job) -> Result<Box<dyn Transmitter>, LabError> {
        let (builder, reference) = match self.over {
            Over::Tls => {
                let (reference, trusted) = tls::read_endpoint(endpoint).map_err(LabError::io("read a certificate"))?;
                (builder(&job.sockets).protocol(Ssliop::new(tls::provider()).trust(trusted)), reference)
            }
            _ => (builder(&job.sockets), endpoint),
        };
        let orb = builder.build().map_err(LabError::call("make the ORB"))?;
        let connect = || {
            if self.is_batched {
                let scope = [SyncScopePolicy::None.into()];
                orb.policy_manager().set_policy_overrides(&scope, SetOverrideType::AddOverride)?;
            }
            let object = orb.string_to_object(reference)?;
            match job.work {
                Work::Flood(_) => {
                    let target = TtcpTwoway::narrow(&object)?;
                    target.start_timer()?;
                    target.received()?;
                }
                Work::PingPong(_) | Work::Wire(_) => Latency::narrow(&object)?.ping()?,
            }
            Ok(object)
        };
        let object = connect().map_err(LabError::call("reach the receiver's object"))?;
        Ok(Box::new(Calling { orb: orb.clone(), object }))
    }
}

/// The receiving end: an ORB with one servant.
struct Serving {
    orb: Orb,
    endpoint: String,
    received: Arc<Sink>,
}

impl Receiver for Serving {
    fn endpoint(&self) -> String {
        self.endpoint.clone()
    }

    fn finish(self: Box<Self>) -> Result<u64, LabError> {
        self.orb.shutdown(true).map_err(LabError::call("shut the receiver's ORB down"))?;
        Ok(self.received.octets.load(Ordering::Acquire))
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        _ = self.orb.shutdown(false);
    }
}

/// Counts what comes.
#[derive(Debug, Default)]
struct Sink {
    octets: AtomicU64,
}

impl Sink {
    /// One connection, hence one thread: nobody else counts meanwhile.
    fn take<T>(&self, items: &[T], data: DataType) -> Result<(), SystemException> {
        black_box(items);
        let octets = self.octets.load(Ordering::Relaxed) + (items.len() * data.element_octets()) as u64;
        self.octets.store(octets, Ordering::Release);
        Ok(())
    }
}

macro_rules! take {
    ($($operation:ident: $element:ty = $data:ident;)*) => {
        $(fn $operation(&self, ttcp_seq: &[$element]) -> Result<(), SystemException> {
            self.take(ttcp_seq, DataType::$data)
        })*
    };
}

impl TtcpSequenceServant for Sink {
    take! {
        send_short_seq: i16 = Short;
        send_long_seq: i32 = Long;
        send_double_seq: f64 = Double;
        send_char_seq: spandrel::Char = Char;
        send_octet_seq: u8 = Octet;
        send_struct_seq: ttcp::BinStruct = Struct;
    }

    fn start_timer(&self) -> Result<(), SystemException> {
        self.octets.store(0, Ordering::Release);
        Ok(())
    }

    fn stop_timer(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

impl TtcpTwowayServant for Sink {
    take! {
        call_short_seq: i16 = Short;
        call_long_seq: i32 = Long;
        call_double_seq: f64 = Double;
        call_char_seq: spandrel::Char = Char;
        call_octet_seq: u8 = Octet;
        call_struct_seq: ttcp::BinStruct = Struct;
    }

    fn received(&self) -> Result<u64, SystemException> {
        Ok(self.octets.load(Ordering::Acquire))
    }
}

/// Answers at once.
#[derive(Debug)]
pub(crate) struct Answering;

impl LatencyServant for Answering {
    fn ping(&self) -> Result<(), SystemException> {
        Ok(())
    }

    fn ping_1way(&self) -> Result<(), SystemException> {
        Ok(())
    }

    fn send_struct_seq(&self, s: &[latency::BinStruct]) -> Result<(), SystemException> {
        black_box(s);
        Ok(())
    }

    fn send_octet_seq(&self, s: &[u8]) -> Result<(), SystemException> {
        black_box(s);
        Ok(())
    }

    fn send_struct_seq_1way(&self, s: &[latency::BinStruct]) -> Result<(), SystemException> {
        black_box(s);
        Ok(())
    }
}

/// The sending end: an ORB with one reference.
struct Calling {
    orb: Orb,
    object: ObjectRef,
}

impl Drop for Calling {
    fn drop(&mut self) {
        _ = self.orb.shutdown(true); // closes the connection, so that the receiver need not wait for it
    }
}

impl Transmitter for Calling {
    fn flood(&mut self, flood: &Flood) -> Result<Duration, LabError> {
        let target = TtcpTwoway::unchecked_narrow(&self.object);
        let count = flood.elements();
        let time = match flood.data {
            DataType::Short => {
                let data: Vec<i16> = (0..count).map(|n| n as i16).collect();
                timed(flood, &target, || target.send_short_seq(&data), || target.call_short_seq(&data))
            }
            DataType::Char => {
                let data: Vec<spandrel::Char> = (0..count).map(|n| spandrel::Char((n % 251) as u8)).collect();
                timed(flood, &target, || target.send_char_seq(&data), || target.call_char_seq(&data))
            }
            DataType::Long => {
                let data: Vec<i32> = (0..count).map(|n| n as i32).collect();
                timed(flood, &target, || target.send_long_seq(&data), || target.call_long_seq(&data))
            }
            DataType::Octet => {
                let data: Vec<u8> = (0..count).map(|n| (n % 251) as u8).collect();
                timed(flood, &target, || target.send_octet_seq(&data), || target.call_octet_seq(&data))
            }
            DataType::Double => {
                let data: Vec<f64> = (0..count).map(|n| n as f64).collect();
                timed(flood, &target, || target.send_double_seq(&data), || target.call_double_seq(&data))
            }
            DataType::Struct => {
                let data: Vec<ttcp::BinStruct> = (0..count).map(bin_struct!(ttcp)).collect();
                timed(flood, &target, || target.send_struct_seq(&data), || target.call_struct_seq(&data))
            }
        };
        time.map_err(LabError::call("transmit"))
    }

    fn ping_pong(&mut self, work: &PingPong) -> Result<CallTimes, LabError> {
        let target = Latency::unchecked_narrow(&self.object);
        let times = match work.case {
            PingCase::Void => CallTimes::of(work, &mut || target.ping()),
            PingCase::Structs => {
                let structs = ping_structs();
                CallTimes::of(work, &mut || target.send_struct_seq(&structs))
            }
        };
        times.map_err(LabError::call("call"))
    }

    fn wire_octets(&mut self, case: PingCase) -> Result<Option<(u64, u64)>, LabError> {
        let profile = self.object.ior().profiles.iter().find_map(|profile| IiopProfile::decode(profile).ok().flatten());
        let mut profile = profile.expect("a reference that was called has an IIOP profile");
        let relay = Relay::start(&profile.host, profile.port)?;
        (profile.host, profile.port) = (relay.addr().ip().to_string(), relay.addr().port());
        let measure = || {
            let mut ior = self.object.ior().clone();
            ior.profiles = vec![profile.encode()?];
            let target = Latency::unchecked_narrow(&self.orb.reference(ior));
            let structs = ping_structs();
            let call = || match case {
                PingCase::Void => target.ping(),
                PingCase::Structs => target.send_struct_seq(&structs),
            };
            call()?; // the first one may carry more, such as code sets
            let before = relay.counted();
            call()?;
            let after = relay.counted();
            Ok((after.0 - before.0, after.1 - before.1))
        };
        measure().map(Some).map_err(LabError::call("call through the relay"))
    }
}

/// Sends the flood, one-way or two-way, and waits for the acknowledgement of its end.
#[inline]
fn timed(
    flood: &Flood,
    target: &TtcpTwoway,
    send: impl Fn() -> Result<(), SystemException>,
    call: impl Fn() -> Result<(), SystemException>,
) -> Result<Duration, SystemException> {
    let start = Instant::now();
    match flood.call {
        CallKind::OneWay => {
            for _ in 0..flood.buffers {
                send()?;
            }
            target.received()?;
        }
        CallKind::TwoWay => {
            for _ in 0..flood.buffers {
                call()?;
            }
        }
    }
    Ok(start.elapsed())
}

/// Some generated code has padding to be filled, too.
macro_rules! bin_struct {
    ($module:ident) => {
        #[allow(clippy::needless_update, reason = "this file is compiled with several engines' generated code")]
        |n: usize| $module::BinStruct {
            s: n as i16,
            c: spandrel::Char((n % 251) as u8),
            l: n as i32,
            o: (n % 253) as u8,
            d: n as f64,
            ..Default::default()
        }
    };
}
use bin_struct;

pub(crate) fn ping_structs() -> Vec<latency::BinStruct> {
    (0..PING_STRUCTS).map(bin_struct!(latency)).collect()
}
