//! TAO's factories of strategies (`Server_Strategy_Factory`, `Client_Strategy_Factory`, `Resource_Factory`): their options in
//! a `svc.conf` file become options of the ORB services after them.

use spandrel::net::sync::Mutex;
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
    Unknown,
    Invalid,
}

fn mapped(option: &str, value: &str) -> Mapped {
    let to = |name| Mapped::To(name, value.to_owned());
    let lower = value.to_ascii_lowercase();
    match option {
        "-ORBConcurrency" => match lower.as_str() {
            "reactive" => to("-ORBConcurrency"),
            "thread-per-connection" => Mapped::To("-ORBConcurrency", "thread-per-connection:64".to_owned()),
            // Forms of our own.
            _ if lower.contains(':') || lower == "leader-followers" => to("-ORBConcurrency"),
            _ => Mapped::Invalid,
        },
        "-ORBTransportMuxStrategy" => match lower.as_str() {
            "muxed" => Mapped::To("-ORBConnectionSharing", "multiplexed".to_owned()),
            "exclusive" => Mapped::To("-ORBConnectionSharing", "exclusive".to_owned()),
            _ => Mapped::Invalid,
        },
        "-ORBClientConnectionHandler" => match value {
            "RW" => Mapped::To("-ORBWaitStrategy", "on-read".to_owned()),
            "ST" | "MT" => Mapped::To("-ORBWaitStrategy", "on-reactor".to_owned()),
            "MT_NOUPCALL" => Mapped::To("-ORBWaitStrategy", "on-waker".to_owned()),
            _ => Mapped::Invalid,
        },
        "-ORBConnectionCachingStrategy" | "-ORBConnectionPurgingStrategy" => match lower.as_str() {
            "lru" | "lfu" | "fifo" | "null" => Mapped::To("-ORBConnectionPurging", lower),
            _ => Mapped::Invalid,
        },
        "-ORBConnectionCacheMax" => to("-ORBMaxClientConnections"),
        "-ORBMuxedConnectionMax" if value == "0" => Mapped::Nothing("the number of connections to a peer is bounded"),
        "-ORBMuxedConnectionMax" => to("-ORBConnectionsPerPeer"),
        "-ORBNativeCharCodeSet" => to("-ORBNativeCharCodeSet"),
        "-ORBNativeWCharCodeSet" | "-ORBNativeWcharCodeSet" => to("-ORBNativeWCharCodeSet"),
        "-ORBUseridPolicyDemuxStrategy"
        | "-ORBSystemidPolicyDemuxStrategy"
        | "-ORBUniqueidPolicyReverseDemuxStrategy" => {
            Mapped::Nothing("adapters choose their tables by their policies, or by the program")
        }
        "-ORBActiveHintInIds"
        | "-ORBActiveHintInPOANames"
        | "-ORBAllowReactivationOfSystemids"
        | "-ORBActiveObjectMapSize"
        | "-ORBPOAMapSize" => Mapped::Nothing("tables grow as they need"),
        "-ORBPOALock"
        | "-ORBProfileLock"
        | "-ORBTransportMuxStrategyLock"
        | "-ORBConnectionCacheLock"
        | "-ORBCorbaObjectLock"
        | "-ORBObjectKeyTableLock"
        | "-ORBAMHResponseHandlerAllocatorLock" => Mapped::Nothing("locks are always those for several threads"),
        "-ORBReactorType" | "-ORBReactorMaskSignals" | "-ORBReactorRegistry" | "-ORBReactorThreadQueue" => {
            Mapped::Nothing("the ORB chooses its reactor by its concurrency strategy")
        }
        "-ORBConnectStrategy"
        | "-ORBFlushingStrategy"
        | "-ORBResources"
        | "-ORBReplyDispatcherTableSize"
        | "-ORBConnectionCachePurgePercentage"
        | "-ORBUseLocalMemoryPool"
        | "-ORBDropRepliesDuringShutdown"
        | "-ORBThreadPerConnectionTimeout"
        | "-ORBThreadFlags"
        | "-ORBCharCodesetTranslator"
        | "-ORBWCharCodesetTranslator"
        | "-ORBIORParser"
        | "-ORBOutputCDRAllocator"
        | "-ORBInputCDRAllocator" => Mapped::Nothing("it has no counterpart"),
        "-ORBProtocolFactory" => Mapped::Nothing("protocols are chosen by -ORBTransports and -ORBListenEndpoints"),
        _ => Mapped::Unknown,
    }
}

/// One of TAO's factories.
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
        for pair in arguments.chunks(2) {
            let [option, value] = pair else {
                return Err(format!("the option {} has no value", pair[0]).into());
            };
            match mapped(option, value) {
                Mapped::To(name, value) => options.extend([name.to_owned(), value]),
                Mapped::Nothing(reason) => tracing::warn!(factory, "{option} {value} has no effect: {reason}"),
                // Options of our own are taken as they are, and checked by the ORB.
                Mapped::Unknown if option.starts_with("-ORB") => options.extend([option.clone(), value.clone()]),
                Mapped::Unknown => return Err(format!("the option {option} is unknown").into()),
                Mapped::Invalid => return Err(format!("invalid value \"{value}\" for {option}").into()),
            }
        }
        *self.options.lock() = options;
        Ok(())
    }

    fn info(&self) -> String {
        format!("options of ORBs: {}", self.options.lock().join(" "))
    }
}

impl ServiceObject for StrategyFactory {}
