//! The decisions of a policy about the requests of an ORB.

use std::{
    borrow::Cow,
    cell::RefCell,
    collections::HashMap,
    fmt, fs,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use spandrel_giop::{CompletionStatus, IiopProfile, SystemException, ids};
use spandrel_orb::{
    Orb, OrbBuilder,
    interception::{
        DuplicateName, Interceptor, Interruption, LocateRequestInfo, ServerRequestInfo, ServerRequestInterceptor,
    },
};
use spandrel_poa::{Current, Poa};
use spandrel_server::current_peer_address;
use spandrel_ssliop::PeerIdentity;
use spandrel_sync::{
    Arc, Mutex, RwLock, Weak,
    atomic::{AtomicU64, Ordering},
    thread,
};
use spandrel_transport::{Address, DIOP, IIOP};

use crate::{
    audit::{AuditLog, AuditRecord},
    credentials::{Identity, ReceivedCredentials, current_user},
    path_check::PathCheck,
    policy::{Decision, PathFact, Policy, PolicyError, RequestFacts, decide},
};

/// The most identities of certificates that are remembered.
const MAX_IDENTITIES: usize = 1024;
/// The time between two looks at the policy file: a second, and less in this crate's tests.
const WATCH_INTERVAL: Duration = Duration::from_millis(if cfg!(test) { 20 } else { 1000 });
/// The name of the root adapter, which paths of adapters leave out.
const ROOT_ADAPTER: &str = "RootPOA";

/// A policy in force, and its audit log. Cheap to clone; all clones are the same.
#[derive(Clone)]
pub struct Authorizer(Arc<Authority>);

struct Authority {
    /// Unique among those of the process.
    id: u64,
    /// The policy in force, with the number of policies before it.
    policy: RwLock<(u64, Arc<Policy>)>,
    /// The number of the policy in force.
    generation: AtomicU64,
    /// The policy file, with its state before it was read first.
    file: Option<(PathBuf, FileState)>,
    audit: Option<AuditLog>,
    /// The adapters whose servants check paths.
    path_adapters: RwLock<Vec<String>>,
    /// The identities of certificates (DER).
    identities: Mutex<HashMap<Vec<u8>, Arc<Identity>>>,
}

/// A peer, with the rules that concern it.
struct Peer {
    credentials: ReceivedCredentials,
    policy: Arc<Policy>,
    rules: Vec<u32>,
}

/// The last peer of a thread.
struct CachedPeer {
    authority: u64,
    generation: u64,
    /// Its certificate, if it has one.
    certificate: Option<Vec<u8>>,
    peer: Arc<Peer>,
}

spandrel_sync::thread_local! {
    static LAST_PEER: RefCell<Option<CachedPeer>> = const { RefCell::new(None) };
    /// The caller for which this thread makes calls in its own process.
    static CALLER: RefCell<Option<ReceivedCredentials>> = const { RefCell::new(None) };
}

/// For the whole process, so not part of any model.
static AUTHORITIES: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);

impl fmt::Debug for Authorizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authorizer").field("file", &self.0.file).finish_non_exhaustive()
    }
}

/// [`Authorizer::install`] as a method of the builder.
///
/// ```no_run
/// # mod spandrel { pub use spandrel_orb::*; pub use spandrel_authorization as authorization; }
/// use spandrel::Orb;
/// use spandrel::authorization::{Authorizer, WithAuthorizer};
///
/// let authorizer = Authorizer::from_file("policy.toml".as_ref(), None)?;
/// let orb = Orb::builder().authorizer(&authorizer)?.build()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait WithAuthorizer: Sized {
    /// Lets the authorizer decide about the requests to the ORB's objects, after the server interceptors that are
    /// registered already.
    ///
    /// # Errors
    /// An authorizer is installed already.
    fn authorizer(self, authorizer: &Authorizer) -> Result<Self, DuplicateName>;
}

impl WithAuthorizer for OrbBuilder {
    fn authorizer(self, authorizer: &Authorizer) -> Result<Self, DuplicateName> {
        authorizer.install(self)
    }
}

impl Authorizer {
    /// Decides by this policy until [`replace`](Self::replace).
    #[must_use]
    pub fn new(policy: Policy) -> Self {
        Self::with(policy, None, None)
    }

    /// An authorizer with the policy of a file, and an audit log if there is one. The file is read again by
    /// [`reload`](Self::reload).
    ///
    /// # Errors
    /// A file that cannot be read, or that is no policy.
    pub fn from_file(file: &Path, audit: Option<AuditLog>) -> Result<Self, PolicyError> {
        let state = state_of(file);
        Ok(Self::with(Policy::read(file)?, Some((file.to_owned(), state)), audit))
    }

    /// As [`new`](Self::new), with an audit log.
    #[must_use]
    pub fn audited(policy: Policy, audit: AuditLog) -> Self {
        Self::with(policy, None, Some(audit))
    }

    fn with(policy: Policy, file: Option<(PathBuf, FileState)>, audit: Option<AuditLog>) -> Self {
        Self(Arc::new(Authority {
            id: AUTHORITIES.fetch_add(1, std::sync::atomic::Ordering::Relaxed),
            policy: RwLock::new((0, Arc::new(policy))),
            generation: AtomicU64::new(0),
            file,
            audit,
            path_adapters: RwLock::default(),
            identities: Mutex::default(),
        }))
    }

    /// Registers the interceptor that decides about the requests to the ORB's objects. It comes after those that are
    /// registered already.
    ///
    /// # Errors
    /// An authorizer is installed already.
    pub fn install(&self, builder: OrbBuilder) -> Result<OrbBuilder, DuplicateName> {
        builder.server_request_interceptor(AuthorizationInterceptor(Arc::clone(&self.0)))
    }

    /// Reads the policy file again. Requests that begin afterwards are decided by it.
    ///
    /// # Errors
    /// As [`from_file`](Self::from_file); the policy in force stays so.
    pub fn reload(&self) -> Result<(), PolicyError> {
        self.0.reload()
    }

    /// Decides by this policy from the next request on.
    pub fn replace(&self, policy: Policy) {
        self.0.replace(policy);
    }

    /// Reads the policy file again whenever it has changed: a thread looks at its time and size each second. An
    /// invalid file changes nothing; the ORB's log says why (level `error`).
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn watch(&self) -> std::io::Result<()> {
        let Some((file, state)) = self.0.file.clone() else { return Ok(()) };
        let authority = Arc::downgrade(&self.0);
        thread::Builder::new().name("spandrel-policy".into()).spawn(move || watch(&authority, &file, state)).map(drop)
    }

    /// States that the servants of this adapter, and of those below it, ask [`permits_path`](Self::permits_path) in
    /// each operation that reveals or changes something. Rules with a `path` concern them alone; for other objects, such rules match nothing. `adapter`
    /// has the names below the root, separated by `/`.
    pub fn check_paths_of(&self, adapter: impl Into<String>) {
        self.0.path_adapters.write().push(adapter.into());
    }

    /// The check of paths for the options of a service with this adapter ([`check_paths_of`](Self::check_paths_of)).
    #[must_use]
    pub fn path_check(&self, adapter: impl Into<String>) -> PathCheck {
        self.check_paths_of(adapter);
        let authorizer = self.clone();
        PathCheck::new(move |operation, path| authorizer.permits_path(operation, path))
    }

    /// Decides about a path, for the request that this thread runs: in the upcall, before the servant answers or defers
    /// it. `operation` is the request's, or another name that the service documents. An object without a path is
    /// `None`. A call of this process that serves no request from outside is permitted.
    ///
    /// # Errors
    /// NO_PERMISSION (COMPLETED_NO).
    pub fn permits_path<'p>(&self, operation: &str, path: impl Into<Option<&'p str>>) -> Result<(), SystemException> {
        let Some(peer) = self.0.peer_of(current_peer_address().as_deref()) else { return Ok(()) };
        let (path, current) = (path.into(), Current::new());
        let adapter = current.poa().ok().map(|poa| adapter_path(&names_of(poa)));
        let servant = current.servant().ok();
        let key = || current.reference().ok().and_then(|object| key_of(object.ior())).map(Cow::Owned);
        let orb = current.poa().ok().map(|poa| poa.orb().clone());
        let has_key = |name: &str| orb.as_ref().is_some_and(|orb| has_key(orb, &key(), name));
        let facts = RequestFacts {
            operation: Some(operation),
            adapter: adapter.as_deref(),
            interface: servant.as_ref().map(|servant| servant.repository_id()),
            path: path.map_or(PathFact::None, PathFact::Is),
            has_key: &has_key,
        };
        match peer.decide(&facts) {
            Decision::Open => self.0.conclude(&peer, Decision::Deny(None), &facts, None),
            decision => self.0.conclude(&peer, decision, &facts, None),
        }
    }

    /// Runs `calls` for a caller that another protocol than GIOP has authenticated. The policy decides for this caller about the
    /// synchronous calls that `calls` makes on objects of the same ORB, which are permitted otherwise.
    pub fn as_caller<R>(&self, caller: &ReceivedCredentials, calls: impl FnOnce() -> R) -> R {
        /// Ends the caller's operation, also if that panics.
        struct Restored(Option<ReceivedCredentials>);
        impl Drop for Restored {
            fn drop(&mut self) {
                let ended = CALLER.replace(self.0.take());
                drop(ended);
            }
        }
        let _restored = Restored(CALLER.replace(Some(caller.clone())));
        calls()
    }

    /// Decides about a call that another protocol than GIOP brings, such as HTTP: of a caller with these credentials, on the
    /// object with this path and repository id. Such a call has no `key`, and its `adapter` is empty.
    ///
    /// # Errors
    /// NO_PERMISSION (COMPLETED_NO).
    pub fn permits_caller(
        &self,
        caller: &ReceivedCredentials,
        operation: &str,
        interface: &str,
        path: Option<&str>,
    ) -> Result<(), SystemException> {
        let (peer, facts) = (self.0.peer_of_caller(caller), facts_of_caller(operation, interface, path));
        self.0.conclude(&peer, peer.decide(&facts), &facts, None)
    }

    /// Decides whether a caller may call any operation of an object with this path: before the path is looked up, so that
    /// no answer tells which paths exist. [`permits_caller`](Self::permits_caller) decides about the call itself. The
    /// audit log has a record of a denial only.
    ///
    /// # Errors
    /// NO_PERMISSION (COMPLETED_NO).
    pub fn permits_path_of_caller(&self, caller: &ReceivedCredentials, path: &str) -> Result<(), SystemException> {
        let peer = self.0.peer_of_caller(caller);
        let facts = RequestFacts {
            operation: None,
            adapter: Some(""),
            interface: None,
            path: PathFact::Is(path),
            has_key: &|_| false,
        };
        match peer.decide(&facts) {
            Decision::Allow(_) | Decision::Open => Ok(()),
            denied => self.0.conclude(&peer, denied, &facts, None),
        }
    }

    /// Whether [`permits_caller`](Self::permits_caller) would permit a call. The audit log has no record of this: it is for
    /// lists of what a caller may call.
    #[must_use]
    pub fn would_permit_caller(
        &self,
        caller: &ReceivedCredentials,
        operation: &str,
        interface: &str,
        path: Option<&str>,
    ) -> bool {
        let peer = self.0.peer_of_caller(caller);
        !matches!(peer.decide(&facts_of_caller(operation, interface, path)), Decision::Deny(_))
    }
}

/// The facts of a call that another protocol than GIOP brings.
fn facts_of_caller<'f>(operation: &'f str, interface: &'f str, path: Option<&'f str>) -> RequestFacts<'f> {
    RequestFacts {
        operation: Some(operation),
        adapter: Some(""),
        interface: Some(interface),
        path: path.map_or(PathFact::None, PathFact::Is),
        has_key: &|_| false,
    }
}

impl Authority {
    fn reload(&self) -> Result<(), PolicyError> {
        let Some((file, _)) = &self.file else { return Ok(()) };
        match Policy::read(file) {
            Ok(policy) => {
                tracing::info!(file = %file.display(), rules = policy.len(), "the policy was read again");
                self.replace(policy);
                Ok(())
            }
            Err(error) => {
                tracing::error!(%error, "the policy was not read again: the one in force stays");
                Err(error)
            }
        }
    }

    fn replace(&self, policy: Policy) {
        let mut current = self.policy.write();
        let generation = current.0 + 1;
        let old = std::mem::replace(&mut *current, (generation, Arc::new(policy)));
        self.generation.store(generation, Ordering::Release);
        drop(current);
        drop(old);
    }

    /// The peer at this address, or the caller for which this thread makes calls; `None` for the process itself.
    fn peer_of(&self, address: Option<&Address>) -> Option<Arc<Peer>> {
        match address {
            Some(address) => Some(self.peer(address)),
            None => CALLER.with_borrow(|caller| caller.as_ref().map(|caller| Arc::new(self.peer_of_caller(caller)))),
        }
    }

    fn peer_of_caller(&self, caller: &ReceivedCredentials) -> Peer {
        let policy = Arc::clone(&self.policy.read().1);
        let concerned = policy.rules.iter().enumerate().filter(|(_, rule)| rule.matches_peer(caller));
        let rules = concerned.map(|(index, _)| index as u32).collect();
        Peer { credentials: caller.clone(), policy, rules }
    }

    /// The peer of the current request, with its rules.
    fn peer(&self, address: &Address) -> Arc<Peer> {
        match address.scheme() {
            // Without TLS there is no certificate to look for.
            IIOP | DIOP | "shm" => self.peer_with(address, None, None),
            "uds" => self.peer_with(address, None, current_user()),
            _ => PeerIdentity::with_current_certificate(|certificate| self.cached(address, Some(certificate), None))
                .map_or_else(
                    || self.peer_with(address, None, None),
                    // The certificate is taken again only for a peer that the thread does not know.
                    |cached| cached.unwrap_or_else(|| self.peer_with(address, PeerIdentity::current(), None)),
                ),
        }
    }

    /// The thread's last peer, if it is this one.
    fn cached(&self, address: &Address, certificate: Option<&[u8]>, user: Option<u32>) -> Option<Arc<Peer>> {
        LAST_PEER.with_borrow(|last| {
            let last = last.as_ref()?;
            let credentials = &last.peer.credentials;
            let is_same = last.authority == self.id
                && last.generation == self.generation.load(Ordering::Acquire)
                && credentials.address() == address
                && last.certificate.as_deref() == certificate
                && credentials.identity().user_id == user;
            is_same.then(|| Arc::clone(&last.peer))
        })
    }

    fn peer_with(&self, address: &Address, identity: Option<PeerIdentity>, user: Option<u32>) -> Arc<Peer> {
        let certificate = identity.as_ref().map(|identity| identity.certificate().as_ref());
        if let Some(peer) = self.cached(address, certificate, user) {
            return peer;
        }
        let verified = match &identity {
            Some(identity) => self.identity(identity),
            None => Arc::new(Identity::of_user(user)),
        };
        let credentials = ReceivedCredentials::new(Arc::new(address.clone()), verified);
        let (generation, policy) = self.policy.read().clone();
        let concerned = policy.rules.iter().enumerate().filter(|(_, rule)| rule.matches_peer(&credentials));
        let rules = concerned.map(|(index, _)| index as u32).collect();
        let peer = Arc::new(Peer { credentials, policy, rules });
        let certificate = certificate.map(<[u8]>::to_vec);
        let cached = CachedPeer { authority: self.id, generation, certificate, peer: Arc::clone(&peer) };
        let old = LAST_PEER.replace(Some(cached));
        drop(old);
        peer
    }

    /// The names in a certificate.
    fn identity(&self, peer: &PeerIdentity) -> Arc<Identity> {
        let certificate = peer.certificate().as_ref();
        if let Some(known) = self.identities.lock().get(certificate) {
            return Arc::clone(known);
        }
        let identity = Arc::new(Identity::of(peer));
        let mut identities = self.identities.lock();
        if identities.len() >= MAX_IDENTITIES {
            identities.clear();
        }
        identities.insert(certificate.to_vec(), Arc::clone(&identity));
        identity
    }

    /// Whether the servants of this adapter check paths.
    fn checks_paths(&self, adapter: &str) -> bool {
        let is_below = |prefix: &String| {
            adapter.strip_prefix(prefix.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.path_adapters.read().iter().any(is_below)
    }

    /// Records a decision in the audit log, and returns it.
    fn conclude(
        &self,
        peer: &Peer,
        decision: Decision,
        facts: &RequestFacts<'_>,
        key: Option<&[u8]>,
    ) -> Result<(), SystemException> {
        let (name, rule) = match decision {
            Decision::Open => return Ok(()),
            Decision::Allow(rule) => ("allow", Some(rule)),
            Decision::Deny(rule) => ("deny", rule),
        };
        let is_denied = name == "deny";
        if let Some(audit) = &self.audit
            && (is_denied || !peer.policy.audits_denied_only)
        {
            let path = if let PathFact::Is(path) = facts.path { Some(path) } else { None };
            let RequestFacts { operation, adapter, interface, .. } = *facts;
            let record =
                AuditRecord { decision: name, rule, operation, adapter, interface, path, ..AuditRecord::default() };
            audit.record(&peer.credentials, key, record);
        }
        if !is_denied {
            return Ok(());
        }
        let caller = peer.credentials.identity();
        let denied = match facts.operation {
            Some(operation) => format!("`{operation}` is denied to {caller}"),
            None => format!("access is denied to {caller}"),
        };
        let reason = match rule {
            Some(line) => format!("by the policy's rule at line {line}"),
            None => "because no rule of the policy permits it".to_owned(),
        };
        Err(SystemException::no_permission(ids::NO_PERMISSION_POLICY, CompletionStatus::No)
            .with_detail(|| format!("{denied} {reason}"))
            .with_public_detail(denied))
    }
}

impl Peer {
    fn decide(&self, facts: &RequestFacts<'_>) -> Decision {
        decide(self.rules.iter().map(|rule| &self.policy.rules[*rule as usize]), facts)
    }
}

/// The interceptor of an ORB.
struct AuthorizationInterceptor(Arc<Authority>);

impl Interceptor for AuthorizationInterceptor {
    fn name(&self) -> &str {
        "spandrel-authorization"
    }
}

/// The decision as long as the target is not known.
fn decide_early(peer: &Peer, operation: Option<&str>, has_key: &dyn Fn(&str) -> bool) -> Decision {
    peer.decide(&early_facts(operation, has_key))
}

fn early_facts<'f>(operation: Option<&'f str>, has_key: &'f dyn Fn(&str) -> bool) -> RequestFacts<'f> {
    RequestFacts { operation, adapter: None, interface: None, path: PathFact::Later, has_key }
}

impl ServerRequestInterceptor for AuthorizationInterceptor {
    fn receive_request_service_contexts(&self, info: &mut ServerRequestInfo<'_>) -> Result<(), Interruption> {
        let Some(peer) = self.0.peer_of(info.peer_address()) else { return Ok(()) };
        let key = info.object_key();
        let has_key = |name: &str| has_key(info.orb(), &key, name);
        let facts = early_facts(Some(info.operation()), &has_key);
        Ok(self.0.conclude(&peer, peer.decide(&facts), &facts, key.as_deref())?)
    }

    fn receive_request(&self, info: &mut ServerRequestInfo<'_>) -> Result<(), Interruption> {
        let Some(peer) = self.0.peer_of(info.peer_address()) else { return Ok(()) };
        let key = info.object_key();
        let has_key = |name: &str| has_key(info.orb(), &key, name);
        if decide_early(&peer, Some(info.operation()), &has_key) != Decision::Open {
            return Ok(()); // decided before
        }
        let adapter = adapter_path(info.adapter_name()?);
        let path = if self.0.checks_paths(&adapter) { PathFact::Later } else { PathFact::None };
        let facts = RequestFacts {
            operation: Some(info.operation()),
            adapter: Some(&adapter),
            interface: Some(info.target_most_derived_interface()?),
            path,
            has_key: &has_key,
        };
        // What is open still, the service decides when it asks about the path.
        Ok(self.0.conclude(&peer, peer.decide(&facts), &facts, key.as_deref())?)
    }

    fn receive_locate_request(&self, info: &LocateRequestInfo<'_>) -> Result<(), SystemException> {
        let Some(peer) = self.0.peer_of(info.peer_address()) else { return Ok(()) };
        let key = Some(Cow::Borrowed(info.object_key()));
        let has_key = |name: &str| has_key(info.orb(), &key, name);
        let facts = early_facts(None, &has_key);
        match peer.decide(&facts) {
            Decision::Allow(_) | Decision::Open => Ok(()),
            denied => self.0.conclude(&peer, denied, &facts, key.as_deref()),
        }
    }
}

/// Whether a plain key is that of a request's object: the request has it, or it is an alias of the request's key.
fn has_key(orb: &Orb, key: &Option<Cow<'_, [u8]>>, name: &str) -> bool {
    let Some(key) = key.as_deref() else { return false };
    key == name.as_bytes() || orb.alias(name.as_bytes()).and_then(|ior| key_of(&ior)).is_some_and(|alias| alias == key)
}

/// The object key of a reference.
fn key_of(ior: &spandrel_orb::Ior) -> Option<Vec<u8>> {
    let profile = ior.profiles.iter().find_map(|profile| IiopProfile::decode(profile).ok().flatten())?;
    Some(profile.object_key)
}

/// The names of an adapter and those above it, from the root.
fn names_of(poa: Poa) -> Vec<String> {
    let mut names = vec![poa.the_name()];
    let mut above = poa.the_parent();
    while let Some(poa) = above {
        names.push(poa.the_name());
        above = poa.the_parent();
    }
    names.reverse();
    names
}

/// The names below the root, separated by `/`; the root's own name for the root.
fn adapter_path(names: &[String]) -> String {
    match names {
        [root, below @ ..] if root == ROOT_ADAPTER && !below.is_empty() => below.join("/"),
        names => names.join("/"),
    }
}

/// The time and size of a file; `None` if there is no such file.
type FileState = Option<(SystemTime, u64)>;

/// The time and size of a file, by which a change is noticed.
fn state_of(file: &Path) -> FileState {
    let metadata = fs::metadata(file).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

/// Reads the file again at each change, as long as the authorizer exists.
fn watch(authority: &Weak<Authority>, file: &Path, mut known: FileState) {
    loop {
        thread::park_timeout(WATCH_INTERVAL);
        let Some(authority) = authority.upgrade() else { return };
        let state = state_of(file);
        if state != known {
            known = state;
            // The reason was logged.
            _ = authority.reload();
        }
    }
}

#[cfg(test)]
mod tests;
