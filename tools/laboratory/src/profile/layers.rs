//! The layers of a call, and the functions of each.

use std::collections::BTreeMap;
use std::fmt;

use super::callgrind::{Cost, Function, Profile};

/// A layer of the path of a call, to which functions are assigned by their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layer {
    /// Functions that enter the kernel.
    SystemCalls,
    /// Copies and comparisons of octets in memory.
    Copying,
    /// The allocator of the C library.
    Allocation,
    /// Values to octets and back: stubs, skeletons and the codec.
    Marshaling,
    /// Headers of messages, and their fragments.
    Messages,
    /// Connections, endpoints and their sockets.
    Connections,
    /// References and invocations of the client, static or dynamic.
    Invocation,
    /// The search of the adapter, the servant and the operation.
    Demultiplexing,
    /// Reading threads, queues and upcalls of the server.
    Dispatch,
    /// Locks, waits and wake-ups of threads.
    Synchronization,
    /// The program of the experiment.
    Application,
}

impl Layer {
    /// All layers in the order of reports.
    pub const ALL: [Self; 11] = [
        Self::SystemCalls,
        Self::Copying,
        Self::Allocation,
        Self::Marshaling,
        Self::Messages,
        Self::Connections,
        Self::Invocation,
        Self::Demultiplexing,
        Self::Dispatch,
        Self::Synchronization,
        Self::Application,
    ];

    /// The name that series and tables use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::SystemCalls => "system calls",
            Self::Copying => "copying",
            Self::Allocation => "allocation",
            Self::Marshaling => "marshaling",
            Self::Messages => "messages",
            Self::Connections => "connections",
            Self::Invocation => "invocation",
            Self::Demultiplexing => "demultiplexing",
            Self::Dispatch => "dispatch",
            Self::Synchronization => "synchronization",
            Self::Application => "application",
        }
    }

    /// The layer that a function belongs to. `None`: to those of its callers.
    pub(super) fn with(function: &Function) -> Option<Self> {
        let file = function.object.rsplit('/').next().unwrap_or_default();
        let name = function.name.as_str();
        if file.starts_with("libc.") || file.starts_with("libc-") || file.starts_with("libpthread") {
            return Some(in_the_c_library(name));
        }
        if file.starts_with("libomni") {
            let is_marshaling = name.contains("marshal").then_some(Self::Marshaling);
            return is_marshaling.or_else(|| by_class(OMNIORB, name.trim_start_matches("omni::")));
        }
        if file.starts_with("libTAO") || file.starts_with("libACE") {
            return by_class(TAO, name);
        }
        if name.starts_with("std::sync::") || name.starts_with("std::sys::sync::") || name.starts_with("std::thread::")
        {
            return Some(Self::Synchronization);
        }
        let layer = |name| CRATES.iter().find(|(crate_name, _)| *crate_name == name).map(|(_, layer)| *layer);
        match crates(name).find_map(layer) {
            // Stubs and skeletons of omniORB and of TAO, in the program that uses them.
            None if name.starts_with("_0RL_") || name.contains("(cdrStream&)") => Some(Self::Marshaling),
            None if name.contains("(TAO_OutputCDR&") || name.contains("(TAO_InputCDR&") => Some(Self::Marshaling),
            Some(Self::Application) if name.contains("::generated::") => Some(Self::Marshaling),
            other => other,
        }
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The crates of each layer. All others, such as those of the standard library, work for their callers.
const CRATES: &[(&str, Layer)] = &[
    ("rustix", Layer::SystemCalls),
    ("libc", Layer::SystemCalls),
    ("spandrel_cdr", Layer::Marshaling),
    ("spandrel_giop", Layer::Messages),
    ("spandrel_message", Layer::Messages),
    ("spandrel_ipc", Layer::Connections),
    ("spandrel_tls", Layer::Connections),
    ("spandrel_connection", Layer::Connections),
    ("spandrel_transport", Layer::Connections),
    ("spandrel_orb", Layer::Invocation),
    ("spandrel_dynamic", Layer::Invocation),
    ("spandrel", Layer::Invocation),
    ("spandrel_demux", Layer::Demultiplexing),
    ("spandrel_poa", Layer::Demultiplexing),
    ("spandrel_server", Layer::Dispatch),
    ("spandrel_reactor", Layer::Dispatch),
    ("spandrel_sync", Layer::Synchronization),
    ("spandrel_lab", Layer::Application),
];

/// The names of crates in the name of a function, from its beginning: identifiers before `::` that follow no other one.
fn crates(name: &str) -> impl Iterator<Item = &str> {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == ':';
    name.split(move |letter| !is_part(letter)).filter_map(|path| path.split_once("::")).map(|(first, _)| first)
}

/// The layer of a function of the C library.
fn in_the_c_library(name: &str) -> Layer {
    let name = name.trim_start_matches('_');
    let begins = |words: &[&str]| words.iter().any(|word| name.starts_with(word));
    if begins(&["mem", "str", "bcmp", "bcopy"]) {
        Layer::Copying
    } else if begins(&["malloc", "free", "calloc", "realloc", "int_malloc", "int_free", "int_realloc", "libc_malloc"])
        || begins(&[
            "libc_calloc",
            "posix_memalign",
            "aligned_alloc",
            "unlink_chunk",
            "sysmalloc",
            "tcache",
            "libc_free",
        ])
    {
        Layer::Allocation
    } else if begins(&["pthread", "lll", "GI___pthread", "futex", "sem_", "new_sem"]) {
        Layer::Synchronization
    } else {
        Layer::SystemCalls
    }
}

/// The layer of a function of another ORB's libraries, by the class that it belongs to: the first entry that begins its name.
fn by_class(classes: &[(Layer, &[&str])], name: &str) -> Option<Layer> {
    classes.iter().find(|(_, begins)| begins.iter().any(|begin| name.starts_with(begin))).map(|(layer, _)| *layer)
}

/// The classes of omniORB's libraries.
#[rustfmt::skip]
const OMNIORB: &[(Layer, &[&str])] = &[
    (Layer::Marshaling, &["cdr", "_CORBA_", "operator<<", "operator>>", "omniCodeSet", "orbServices"]),
    (Layer::Invocation, &[
        "CORBA::Request", "RequestImpl", "CORBA::Any", "TypeCode", "CORBA::TypeCode", "DynAny", "omniDynamic", "CORBA::NVList",
        "NVListImpl", "NamedValue", "omniRemoteIdentity", "omniCallDescriptor", "omniObjRef", "omniIOR", "IOP_C", "GIOP_C",
        "CORBA::", "omniInvoker", "invokeCtrl", "ContextList", "ExceptionList",
    ]),
    (Layer::Messages, &["giopStream", "giopImpl", "IOP_S", "GIOP_S", "giopMarshal", "GIOP"]),
    (Layer::Connections, &[
        "tcp", "giopConnection", "giopStrand", "giopRope", "SocketCollection", "SocketHolder", "giopActive", "connection", "unix",
        "libcWrapper", "omniTransport", "Socket",
    ]),
    (Layer::Demultiplexing, &[
        "omniObjTable", "omniOrbPOA", "omniLocalIdentity", "omniIdentity", "omniObjKey", "omniObjAdapter", "omniOrbBOA",
        "omniServant", "PortableServer",
    ]),
    (Layer::Dispatch, &[
        "giopServer", "giopWorker", "giopRendezvouser", "giopMonitor", "omniAsync", "omniInterceptor", "DynamicImplementation",
        "omniServerRequest", "ServerRequest",
    ]),
    (Layer::Synchronization, &[
        "omni_mutex", "omni_thread", "omni_condition", "omni_semaphore", "omni_rmutex", "omni_tracedmutex",
    ]),
];

/// The classes of ACE and TAO, by their sources: no profile of them was made here.
#[rustfmt::skip]
const TAO: &[(Layer, &[&str])] = &[
    (Layer::Marshaling, &[
        "ACE_CDR", "ACE_InputCDR", "ACE_OutputCDR", "TAO_InputCDR", "TAO_OutputCDR", "TAO_Marshal", "operator<<", "operator>>",
        "CORBA::Any", "CORBA::TypeCode", "CORBA::NVList", "CORBA::NamedValue", "TAO::Any", "TAO::TypeCode", "TAO::Unknown_IDL_Type",
        "TAO::NVList_Argument", "TAO::NamedValue_Argument",
    ]),
    (Layer::Messages, &["TAO_GIOP", "TAO_Pluggable_Messaging", "TAO_Queued", "TAO_Incoming", "TAO_ServerRequest"]),
    (Layer::Connections, &[
        "TAO_IIOP", "TAO_Transport", "TAO::Transport", "TAO_Connection", "TAO_Connect", "TAO_Block", "TAO_Exclusive", "TAO_Muxed",
        "TAO_Wait", "ACE_SOCK", "ACE_IPC", "ACE_Connector", "ACE_Acceptor", "ACE::",
    ]),
    (Layer::Demultiplexing, &[
        "TAO_Root_POA", "TAO_Regular_POA", "TAO_Object_Adapter", "TAO_Active", "TAO_Adapter", "TAO::Portable_Server", "TAO_POA",
        "PortableServer", "ACE_Active_Map", "ACE_Hash_Map", "ACE_Map_Manager", "TAO_OpTable", "TAO_Perfect_Hash",
    ]),
    (Layer::Dispatch, &[
        "TAO_Request_Dispatcher", "TAO_ServantBase", "TAO_DynamicImplementation", "CORBA::ServerRequest", "TAO::Upcall", "TAO_Upcall",
        "ACE_Reactor", "ACE_TP_Reactor", "ACE_Select_Reactor", "ACE_Svc_Handler", "ACE_Task",
    ]),
    (Layer::Invocation, &["TAO::", "TAO_Stub", "TAO_Profile", "TAO_MProfile", "TAO_ORB_Core", "CORBA::"]),
    (Layer::Synchronization, &["ACE_Thread", "ACE_Recursive", "ACE_Guard", "ACE_Condition", "ACE_Mutex", "ACE_Lock", "ACE_TSS"]),
    (Layer::Allocation, &["ACE_Message_Block", "ACE_Data_Block", "ACE_Allocator", "ACE_New_Allocator", "ACE_Cached_Allocator"]),
    (Layer::SystemCalls, &["ACE_OS::"]),
];

/// The costs of a process, added up by the layers that its functions belong to.
#[derive(Clone, Debug, Default)]
pub struct LayerCosts {
    /// The sum of the costs of the functions of each layer.
    pub layers: BTreeMap<Layer, Cost>,
    /// The functions that belong to no layer, with their costs.
    pub without: BTreeMap<Function, Cost>,
}

/// How often shares pass from callers to called functions: the length of the longest path between two layers.
const STEPS: usize = 40;

impl LayerCosts {
    /// The cost of each layer in a profile. The cost of a function without a layer is divided among its
    /// callers, by the instructions below each of them.
    #[must_use]
    pub fn new(profile: &Profile) -> Self {
        let owned: BTreeMap<&Function, Option<Layer>> = profile
            .own
            .keys()
            .chain(profile.callers.keys())
            .map(|function| (function, Layer::with(function)))
            .collect();
        let mut shares: BTreeMap<&Function, BTreeMap<Layer, f64>> = BTreeMap::new();
        for (function, layer) in &owned {
            shares.insert(function, layer.iter().map(|layer| (*layer, 1.0)).collect());
        }
        let helpers: Vec<&Function> =
            owned.iter().filter(|(_, layer)| layer.is_none()).map(|(function, _)| *function).collect();
        for _ in 0..STEPS {
            let next: Vec<BTreeMap<Layer, f64>> =
                helpers.iter().map(|helper| shares_of_callers(helper, profile, &shares)).collect();
            for (helper, next) in helpers.iter().zip(next) {
                shares.insert(helper, next);
            }
        }
        let mut costs = Self::default();
        for (function, cost) in &profile.own {
            let shares = &shares[function];
            for (layer, share) in shares {
                costs.layers.entry(*layer).or_default().add(cost.times(*share));
            }
            let rest = 1.0 - shares.values().sum::<f64>();
            if rest > 1e-3 {
                costs.without.entry(function.clone()).or_default().add(cost.times(rest));
            }
        }
        costs
    }
}

/// The layers of the callers of a function, by the instructions below each of them.
fn shares_of_callers(
    function: &Function,
    profile: &Profile,
    shares: &BTreeMap<&Function, BTreeMap<Layer, f64>>,
) -> BTreeMap<Layer, f64> {
    let mut sum = BTreeMap::new();
    // A function that calls itself passes nothing on.
    let callers = profile.callers.get(function).into_iter().flatten().filter(|(caller, _)| *caller != function);
    let mut all = 0.0;
    for (caller, instructions) in callers {
        all += instructions;
        for (layer, share) in shares.get(caller).into_iter().flatten() {
            *sum.entry(*layer).or_default() += share * instructions;
        }
    }
    if all > 0.0 {
        sum.values_mut().for_each(|share: &mut f64| *share /= all);
    }
    sum
}
