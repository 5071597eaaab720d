//! TAO's factories of strategies (`Server_Strategy_Factory`, `Client_Strategy_Factory`, `Resource_Factory`): their options in
//! a `svc.conf` file become options of the ORB services after them.

use std::sync::Arc;

use spandrel::net::sync::Mutex;
use spandrel::ssliop::Ssliop;
use spandrel::{Orb, OrbBuilder};
use spandrel_configurator::{ServiceContext, ServiceObject, ServiceResult, SharedObject};

/// The names under which TAO's factories are configured, and the functions that make them.
pub(crate) const FACTORIES: [(&str, &[&str]); 4] = [
    ("Server_Strategy_Factory", &["_make_TAO_Default_Server_Strategy_Factory"]),
    ("Client_Strategy_Factory", &["_make_TAO_Default_Client_Strategy_Factory"]),
    ("Resource_Factory", &["_make_TAO_Default_Resource_Factory", "_make_TAO_Resource_Factory"]),
    ("Advanced_Resource_Factory", &["_make_TAO_Advanced_Resource_Factory"]),
];

/// The ORB's option for one of TAO's and its value.
#[derive(Debug, PartialEq, Eq)]
enum Mapped {
    To(&'static str, String),
    /// There is nothing to choose: a reason follows.
    Nothing(&'static str),
    /// The request contradicts what the ORB does: a reason follows.
    Refused(&'static str),
    Unknown,
    Invalid,
}

/// An option of the factories as `TAO_Default_Client_Strategy_Factory::parse_args`,
/// `TAO_Default_Server_Strategy_Factory::parse_args`, `TAO_Default_Resource_Factory::init` and
/// `TAO_Advanced_Resource_Factory::init` read it: names and values are compared without case.
fn mapped(option: &str, value: &str) -> Mapped {
    let to = |name| Mapped::To(name, value.to_owned());
    let lower = value.to_ascii_lowercase();
    match option.to_ascii_lowercase().as_str() {
        "-orbconcurrency" => match lower.as_str() {
            "reactive" => Mapped::To("-ORBConcurrency", lower),
            "thread-per-connection" => Mapped::To("-ORBConcurrency", "thread-per-connection:64".to_owned()),
            // Forms of our own.
            _ if lower.contains(':') || lower == "leader-followers" => Mapped::To("-ORBConcurrency", lower),
            _ => Mapped::Invalid,
        },
        "-orbtransportmuxstrategy" => match lower.as_str() {
            "muxed" => Mapped::To("-ORBConnectionSharing", "multiplexed".to_owned()),
            "exclusive" => Mapped::To("-ORBConnectionSharing", "exclusive".to_owned()),
            _ => Mapped::Invalid,
        },
        "-orbclientconnectionhandler" | "-orbwaitstrategy" => match lower.as_str() {
            "rw" => Mapped::To("-ORBWaitStrategy", "on-read".to_owned()),
            "st" | "mt" => Mapped::To("-ORBWaitStrategy", "on-reactor".to_owned()),
            "mt_noupcall" => Mapped::To("-ORBWaitStrategy", "on-waker".to_owned()),
            // Values of our own option of that name.
            "on-read" | "on-reactor" | "on-waker" => Mapped::To("-ORBWaitStrategy", lower),
            _ => Mapped::Invalid,
        },
        "-orbconnectioncachingstrategy" | "-orbconnectionpurgingstrategy" => match lower.as_str() {
            "lru" | "lfu" | "fifo" | "null" => Mapped::To("-ORBConnectionPurging", lower),
            _ => Mapped::Invalid,
        },
        "-orbconnectioncachemax" => to("-ORBMaxClientConnections"),
        "-orbmuxedconnectionmax" if value == "0" => Mapped::Nothing("the number of connections to a peer is bounded"),
        "-orbmuxedconnectionmax" => to("-ORBConnectionsPerPeer"),
        "-orbnativecharcodeset" => to("-ORBNativeCharCodeSet"),
        "-orbnativewcharcodeset" => to("-ORBNativeWCharCodeSet"),
        "-orbuseridpolicydemuxstrategy" => match lower.as_str() {
            "dynamic" => Mapped::To("-ORBUserIdDemux", "dynamic-hash".to_owned()),
            // The last two are of our own.
            "linear" | "dynamic-hash" | "perfect-hash" => Mapped::To("-ORBUserIdDemux", lower),
            _ => Mapped::Invalid,
        },
        "-orbsystemidpolicydemuxstrategy" | "-orbdemuxstrategy" => match lower.as_str() {
            "dynamic" => Mapped::To("-ORBSystemIdDemux", "dynamic-hash".to_owned()),
            "linear" | "active" | "dynamic-hash" | "perfect-hash" => Mapped::To("-ORBSystemIdDemux", lower),
            _ => Mapped::Invalid,
        },
        // The strategies that we have: others would name a table that no adapter has here.
        "-orbpersistentidpolicydemuxstrategy" | "-orbuniqueidpolicyreversedemuxstrategy" => match lower.as_str() {
            "dynamic" => Mapped::Nothing("adapters of persistent references, and ids of servants, are always hashed"),
            "linear" => Mapped::Refused("adapters of persistent references, and ids of servants, are always hashed"),
            _ => Mapped::Invalid,
        },
        "-orbtransientidpolicydemuxstrategy" => match lower.as_str() {
            "active" => Mapped::Nothing("adapters of transient references are always found by their slots"),
            "dynamic" | "linear" => Mapped::Refused("adapters of transient references are always found by their slots"),
            _ => Mapped::Invalid,
        },
        "-orbactivehintinids" | "-orbactivehintinpoanames" => match lower.as_str() {
            "0" | "1" => Mapped::Nothing("keys have no hints; -ORBSystemIdDemux active, the default, needs none"),
            _ => Mapped::Invalid,
        },
        "-orballowreactivationofsystemids" | "-orbtablesize" | "-orbactiveobjectmapsize" | "-orbpoamapsize" => {
            Mapped::Nothing("tables grow as they need")
        }
        "-orbpoalock"
        | "-orbprofilelock"
        | "-orbiiopprofilelock"
        | "-orbtransportmuxstrategylock"
        | "-orbconnectioncachelock"
        | "-orbconnectionlock"
        | "-orbconnectorlock"
        | "-orbcorbaobjectlock"
        | "-orbobjectkeytablelock"
        | "-orbamhresponsehandlerallocator"
        | "-orbamhresponsehandlerallocatorlock"
        | "-orbamiresponsehandlerallocator" => Mapped::Nothing("locks are always those for several threads"),
        "-orbreactortype"
        | "-orbreactorlock"
        | "-orbreactormasksignals"
        | "-orbreactorregistry"
        | "-orbreactorthreadqueue" => Mapped::Nothing("the ORB chooses its reactor by its concurrency strategy"),
        "-orbconnectstrategy"
        | "-orbflushingstrategy"
        | "-orbresources"
        | "-orbresourceusage"
        | "-orbreplydispatchertablesize"
        | "-orbconnectionhandlercleanup"
        | "-orbforwardoncommfailurelimit"
        | "-orbforwardontransientlimit"
        | "-orbforwardonobjectnotexistlimit"
        | "-orbforwardoninvobjreflimit"
        | "-orbforwardonreplyclosedlimit"
        | "-orbconnectioncachepurgepercentage"
        | "-orbpurgepercentage"
        | "-orbuselocalmemorypool"
        | "-orbdroprepliesduringshutdown"
        | "-orbthreadperconnectiontimeout"
        | "-orbthreadflags"
        | "-orbcharcodesettranslator"
        | "-orbwcharcodesettranslator"
        | "-orbiorparser"
        | "-orboutputcdrallocator"
        | "-orbinputcdrallocator"
        | ZERO_COPY_WRITE => Mapped::Nothing("it has no counterpart"),
        "-orbprotocolfactory" => Mapped::Nothing("protocols are chosen by -ORBTransports and -ORBListenEndpoints"),
        _ => Mapped::Unknown,
    }
}

/// The one option without a value, in lower case.
const ZERO_COPY_WRITE: &str = "-orbzerocopywrite";

/// The settings of ORBs before their options, with all protocols.
pub(crate) fn orb_builder() -> OrbBuilder {
    Orb::builder().protocol(Ssliop::new(Arc::new(rustls::crypto::ring::default_provider())))
}

/// A factory that TAO's configuration files name; its parameters are options of ORBs.
#[derive(Debug, Default)]
pub struct StrategyFactory {
    /// Options of the ORB and their values.
    options: Mutex<Vec<String>>,
}

impl StrategyFactory {
    /// The options for an ORB: names and values in turn.
    #[must_use]
    pub fn options(&self) -> Vec<String> {
        self.options.lock().clone()
    }
}

impl SharedObject for StrategyFactory {
    fn init(&self, context: &ServiceContext<'_>, arguments: &[String]) -> ServiceResult {
        let factory = context.name();
        let mut options = Vec::new();
        let mut arguments = arguments.iter();
        while let Some(option) = arguments.next() {
            let value = match option.eq_ignore_ascii_case(ZERO_COPY_WRITE) {
                true => "",
                false => arguments.next().ok_or_else(|| format!("the option {option} has no value"))?,
            };
            match mapped(option, value) {
                Mapped::To(name, value) => options.extend([name.to_owned(), value]),
                Mapped::Nothing(reason) => tracing::warn!(factory, "{option} {value} has no effect: {reason}"),
                Mapped::Refused(reason) => return Err(format!("{option} {value} has no counterpart: {reason}").into()),
                // Options of our own are taken as they are.
                Mapped::Unknown if option.starts_with("-ORB") => options.extend([option.clone(), value.to_owned()]),
                Mapped::Unknown => return Err(format!("the option {option} is unknown").into()),
                Mapped::Invalid => return Err(format!("invalid value \"{value}\" for {option}").into()),
            }
        }
        // An error belongs to this directive, not to that of the ORB.
        orb_builder().take_args(&mut options.clone())?;
        *self.options.lock() = options;
        Ok(())
    }

    fn info(&self) -> String {
        format!("options of ORBs: {}", self.options.lock().join(" "))
    }
}

impl ServiceObject for StrategyFactory {}
