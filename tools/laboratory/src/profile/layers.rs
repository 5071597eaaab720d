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
    fn with(function: &Function) -> Option<Self> {
        let file = function.object.rsplit('/').next().unwrap_or_default();
        let name = function.name.as_str();
        if file.starts_with("libc.") || file.starts_with("libc-") || file.starts_with("libpthread") {
            return Some(in_the_c_library(name));
        }
        if file.starts_with("libomni") {
            return in_omniorb(name);
        }
        if name.starts_with("std::sync::") || name.starts_with("std::sys::sync::") || name.starts_with("std::thread::")
        {
            return Some(Self::Synchronization);
        }
        let layer = |name| CRATES.iter().find(|(crate_name, _)| *crate_name == name).map(|(_, layer)| *layer);
        match crates(name).find_map(layer) {
            // Stubs and skeletons of omniORB, in the program that uses them.
            None if name.starts_with("_0RL_") || name.contains("(cdrStream&)") => Some(Self::Marshaling),
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

/// The layer of a function of omniORB's libraries, by the class that it belongs to.
fn in_omniorb(name: &str) -> Option<Layer> {
    let name = name.trim_start_matches("omni::");
    let begins = |words: &[&str]| words.iter().any(|word| name.starts_with(word));
    if begins(&["cdr", "_CORBA_", "operator<<", "operator>>", "omniCodeSet", "orbServices"]) || name.contains("marshal")
    {
        Some(Layer::Marshaling)
    } else if begins(&[
        "CORBA::Request",
        "RequestImpl",
        "CORBA::Any",
        "TypeCode",
        "CORBA::TypeCode",
        "DynAny",
        "omniDynamic",
    ]) || begins(&[
        "CORBA::NVList",
        "NVListImpl",
        "NamedValue",
        "omniRemoteIdentity",
        "omniCallDescriptor",
        "omniObjRef",
    ]) || begins(&[
        "omniIOR",
        "IOP_C",
        "GIOP_C",
        "CORBA::",
        "omniInvoker",
        "invokeCtrl",
        "ContextList",
        "ExceptionList",
    ]) {
        Some(Layer::Invocation)
    } else if begins(&["giopStream", "giopImpl", "IOP_S", "GIOP_S", "giopMarshal", "GIOP"]) {
        Some(Layer::Messages)
    } else if begins(&[
        "tcp",
        "giopConnection",
        "giopStrand",
        "giopRope",
        "SocketCollection",
        "SocketHolder",
        "giopActive",
    ]) || begins(&["connection", "unix", "libcWrapper", "omniTransport", "Socket"])
    {
        Some(Layer::Connections)
    } else if begins(&[
        "omniObjTable",
        "omniOrbPOA",
        "omniLocalIdentity",
        "omniIdentity",
        "omniObjKey",
        "omniObjAdapter",
    ]) || begins(&["omniOrbBOA", "omniServant", "PortableServer"])
    {
        Some(Layer::Demultiplexing)
    } else if begins(&["giopServer", "giopWorker", "giopRendezvouser", "giopMonitor", "omniAsync", "omniInterceptor"])
        || begins(&["DynamicImplementation", "omniServerRequest", "ServerRequest"])
    {
        Some(Layer::Dispatch)
    } else if begins(&[
        "omni_mutex",
        "omni_thread",
        "omni_condition",
        "omni_semaphore",
        "omni_rmutex",
        "omni_tracedmutex",
    ]) {
        Some(Layer::Synchronization)
    } else {
        None
    }
}

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
