//! Servers that the implementation repository starts on demand (`spandrel-activator`), and binding to their objects
//! by the names of the server and the object.
//!
//! A server calls [`install`], or the builder's method of [`WithActivation`], while its ORB is made. With the options `-ORBUseImR 1`, `-ORBServerId NAME` and
//! `-ORBInitRef ImplRepoService=URL`, which the repository appends to the command line of a server, references of
//! persistent adapters denote the repository: it starts the server if necessary and forwards the client to it.
//! [`impl_is_ready`] registers the addresses of this process once its objects are active.
//!
//! ```no_run
//! # mod spandrel { pub use spandrel_orb::*; pub use spandrel_cos as services; }
//! use spandrel::Orb;
//! use spandrel::services::activation::{self, WithActivation};
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let mut args: Vec<String> = std::env::args().skip(1).collect();
//!     let orb = Orb::builder().activation()?.take_args(&mut args)?.build()?;
//!     // Persistent adapters are created and their objects activated here.
//!     activation::impl_is_ready(&orb)?;
//!     Ok(orb.run_until_signal()?)
//! }
//! ```
//!
//! Without `-ORBUseImR 1` both functions change nothing.
//!
//! A key with which a client calls the repository is `ImplRepoService/NAME/KEY`: the name of the server and the key
//! of the object there ([`ServerKey`]). The key of an object may be a plain one
//! ([`Orb::set_object_key_alias`](spandrel_orb::Orb::set_object_key_alias)), so that
//! `corbaloc::HOST:PORT/ImplRepoService/bank/grace` denotes the object `grace` of the server `bank`. [`bind`] makes
//! such references: it is the `_bind` of earlier ORBs (paper 000, figure 16).

use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use spandrel_cdr::{Ior, TaggedComponent};
use spandrel_giop::component::{TAG_ALTERNATE_IIOP_ADDRESS, TAG_SSL_SEC_TRANS};
use spandrel_giop::ids::{TAG_DATAGRAM_ADDRESS, TAG_LOCAL_ADDRESS, TAG_OPERATION_INDEX};
use spandrel_giop::{IiopProfile, TAG_INTERNET_IOP};
use spandrel_orb::interception::{
    DuplicateName, Interceptor, IorInfo, IorInterceptor, ObjectReferenceFactory, ObjectReferenceTemplate,
};
use spandrel_orb::{
    CompletionStatus, ObjectRef, Orb, OrbBuilder, SystemException, SystemExceptionKind,
    internal::implementation_repository_prefix,
};
use spandrel_poa::{Current, LifespanPolicy, Poa, PoaError};
use spandrel_sync::Arc;

use crate::implementation_repository::{
    ActivationMode, Administration, ServerObject, ServerObjectServant, ServerObjectSkeleton, StartupOptions,
    administration::{RegisterServerError, ServerIsRunningError, ServerIsShuttingDownError},
};

/// The name of the repository as an initial reference, its plain object key, and the first part of the keys that it
/// forwards.
pub const IMPL_REPO_SERVICE: &str = spandrel_orb::internal::IMPL_REPO_SERVICE;

/// The environment variable by which the repository gives a token to a server that it starts. The token proves that
/// a registration is that of this process.
pub const TOKEN_VARIABLE: &str = "SPANDREL_ACTIVATION_TOKEN";

/// The most characters of a server's name.
pub const MAX_SERVER_NAME: usize = 64;

/// The time in which the repository has to accept the registration of a server. It may be restarting.
const REGISTRATION_LIMIT: Duration = Duration::from_secs(30);
/// The time limit of one attempt.
const ATTEMPT_LIMIT: Duration = Duration::from_secs(5);

/// The reason why a server was not registered with the repository.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum ActivationError {
    /// The repository knows no server of this name.
    #[error("server `{server}` is not registered (`spandrel-activator add {server}` registers it)")]
    NotRegistered {
        /// The name of the server, as in `-ORBServerId`.
        server: String,
    },
    /// Another process of the server runs.
    #[error("another process of server `{server}` runs (`spandrel-activator stop {server}` ends it)")]
    AlreadyRunning {
        /// The name of the server, as in `-ORBServerId`.
        server: String,
    },
    /// The repository refused the registration.
    #[error("the implementation repository refused server `{server}`: {}", spandrel_error::excerpt(reason))]
    Refused {
        /// The name of the server, as in `-ORBServerId`.
        server: String,
        /// The text that the repository sent; foreign, so messages show an excerpt.
        reason: String,
    },
    /// The name of the server is not the `-ORBServerId` of the ORB.
    #[error("service `{service}` is not this server: its ORB has -ORBServerId {server}")]
    OtherServer {
        /// The name that the caller registered.
        service: String,
        /// The `-ORBServerId` of the ORB.
        server: String,
    },
    /// The server's own object could not be activated.
    #[error("cannot activate the object of the server")]
    Adapter(#[from] PoaError),
    /// The repository could not be called, or an option is missing.
    #[error("cannot register the server with the implementation repository")]
    System(#[from] SystemException),
}
spandrel_error::debug_as_report!(ActivationError);

/// The key of an object behind the implementation repository: `ImplRepoService/NAME/KEY`.
///
/// ```
/// # mod spandrel { pub use spandrel_cos as services; }
/// use spandrel::services::activation::ServerKey;
///
/// let key = ServerKey { server: "bank", key: b"grace" };
/// assert_eq!(key.encode(), b"ImplRepoService/bank/grace");
/// assert_eq!(ServerKey::parse(b"ImplRepoService/bank/grace"), Some(key));
/// assert_eq!(ServerKey::parse(b"ImplRepoService/../grace"), None);
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ServerKey<'k> {
    /// The name with which the server is registered.
    pub server: &'k str,
    /// The object key by which the server itself knows the object.
    pub key: &'k [u8],
}

impl<'k> ServerKey<'k> {
    /// Encodes name and key as the key of an indirect reference.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        [&implementation_repository_prefix(self.server), self.key].concat()
    }

    /// The parts of a key; `None` for any other key, or an invalid name of a server.
    #[must_use]
    pub fn parse(octets: &'k [u8]) -> Option<Self> {
        let rest = octets.strip_prefix(IMPL_REPO_SERVICE.as_bytes())?.strip_prefix(b"/")?;
        let end = rest.iter().take(MAX_SERVER_NAME + 1).position(|octet| *octet == b'/')?;
        let server = str::from_utf8(&rest[..end]).ok().filter(|name| is_server_name(name))?;
        Some(Self { server, key: &rest[end + 1..] })
    }
}

/// Whether a server may have this name: at most [`MAX_SERVER_NAME`] letters, digits, `.`, `-` and `_`; the first is a
/// letter or digit.
#[must_use]
pub fn is_server_name(name: &str) -> bool {
    let is_valid = |octet: u8| octet.is_ascii_alphanumeric() || matches!(octet, b'.' | b'-' | b'_');
    name.len() <= MAX_SERVER_NAME
        && name.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric())
        && name.bytes().all(is_valid)
}

/// Makes references of persistent adapters denote the implementation repository, if the ORB has the option
/// `-ORBUseImR 1`.
///
/// # Errors
/// A builder in which it is installed already.
pub fn install(builder: OrbBuilder) -> Result<OrbBuilder, DuplicateName> {
    builder.ior_interceptor(PersistentReferences)
}

/// [`install`] as a method of the builder.
///
/// ```
/// # mod spandrel { pub use spandrel_orb::*; pub use spandrel_cos as services; }
/// use spandrel::Orb;
/// use spandrel::services::activation::WithActivation;
///
/// let orb = Orb::builder().activation()?.build()?;
/// # orb.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait WithActivation: Sized {
    /// Makes references of persistent adapters denote the implementation repository, if the ORB has the option
    /// `-ORBUseImR 1`.
    ///
    /// # Errors
    /// A builder in which it is installed already.
    fn activation(self) -> Result<Self, DuplicateName>;
}

impl WithActivation for OrbBuilder {
    fn activation(self) -> Result<Self, DuplicateName> {
        install(self)
    }
}

/// Registers this process as the running server `-ORBServerId`: from now on its clients are forwarded to it. Does
/// nothing and returns `None` without `-ORBUseImR 1`.
///
/// A repository that is being restarted is called again for up to 30 seconds.
///
/// # Errors
/// [`ActivationError`].
pub fn impl_is_ready(orb: &Orb) -> Result<Option<RunningServer>, ActivationError> {
    if !orb.uses_implementation_repository() {
        return Ok(None);
    }
    let server = server_name(orb)?.to_owned();
    let (own, token) = server_object(orb)?;
    register(orb, server, &own, &token).map(Some)
}

/// Registers an object of this server by the name of the server (`service`) and its own (`marker`), with the command
/// that starts the server, and tells the repository that the server is ready
/// (`CORBA_Handler::activate_service` of paper 000, figure 17). [`bind`] finds it.
///
/// `command` is the name of a command in the repository's configuration. It is used if the service is not registered
/// yet. The marker becomes a plain key of the object.
///
/// # Errors
/// [`ActivationError`].
pub fn activate_service(
    orb: &Orb,
    service: &str,
    marker: &str,
    object: &ObjectRef,
    command: &str,
) -> Result<RunningServer, ActivationError> {
    if !orb.server_id().is_empty() && orb.server_id() != service {
        return Err(ActivationError::OtherServer { service: service.into(), server: orb.server_id().into() });
    }
    let options =
        StartupOptions { command: command.into(), activation: ActivationMode::Normal, ..StartupOptions::default() };
    let registered = retry(|| match administration(orb)?.register_server(service, &options) {
        Err(RegisterServerError::System(exception)) => Err(exception),
        other => Ok(other),
    })?;
    match registered {
        Ok(()) | Err(RegisterServerError::AlreadyRegistered(_)) => {}
        Err(RegisterServerError::CannotComplete(cannot)) => {
            return Err(ActivationError::Refused { server: service.into(), reason: cannot.reason });
        }
        Err(error) => return Err(ActivationError::Refused { server: service.into(), reason: error.to_string() }),
    }
    let (own, token) = server_object(orb)?;
    orb.set_object_key_alias(marker, &direct(own.as_object(), object))?;
    register(orb, service.to_owned(), &own, &token)
}

/// A reference to the object with this name (`marker`, a plain key) of a server (`service`). The first call starts the
/// server if necessary. No request is sent.
///
/// # Errors
/// BAD_PARAM for an invalid name, and for an ORB without the initial reference `ImplRepoService`.
pub fn bind(orb: &Orb, service: &str, marker: &str) -> Result<ObjectRef, SystemException> {
    bind_at(&orb.resolve_initial_references(IMPL_REPO_SERVICE)?, service, marker)
}

/// As [`bind`], by this repository.
///
/// # Errors
/// BAD_PARAM for an invalid name.
pub fn bind_at(repository: &ObjectRef, service: &str, marker: &str) -> Result<ObjectRef, SystemException> {
    if !is_server_name(service) || marker.is_empty() {
        return Err(SystemException::bad_param(0, CompletionStatus::No)
            .with_detail(|| format!("cannot bind to `{marker}` of service `{service}`: a name is invalid")));
    }
    let key = ServerKey { server: service, key: marker.as_bytes() }.encode();
    Ok(repository.orb().reference(with_key(repository.ior(), "", &key)))
}

/// The URL of the repository for the options of the servers that it starts.
///
/// It is a `corbaloc:` with the first address of this reference. If the repository offers TLS or has no TCP port, it is
/// the whole reference: servers copy its addresses into their persistent references, and clients then also reach the
/// repository over TLS.
#[must_use]
pub fn repository_url(repository: &ObjectRef) -> String {
    let plain = iiop_profiles(repository.ior()).next().filter(|profile| {
        profile.port != 0 && !profile.components.iter().any(|component| component.tag == TAG_SSL_SEC_TRANS)
    });
    match plain {
        Some(IiopProfile { host, port, .. }) if host.contains(':') => {
            format!("corbaloc::[{host}]:{port}/{IMPL_REPO_SERVICE}")
        }
        Some(IiopProfile { host, port, .. }) => format!("corbaloc::{host}:{port}/{IMPL_REPO_SERVICE}"),
        None => repository.to_string(),
    }
}

/// A copy of a reference with another type and, in each IIOP profile, another key. Profiles of other kinds are left
/// out, as are components that describe the object and not the server.
#[must_use]
pub fn with_key(ior: &Ior, type_id: &str, key: &[u8]) -> Ior {
    let profiles = iiop_profiles(ior).filter_map(|profile| {
        let components = profile.components.into_iter().filter(|component| component.tag != TAG_OPERATION_INDEX);
        IiopProfile { object_key: key.to_vec(), components: components.collect(), ..profile }.encode().ok()
    });
    Ior { type_id: type_id.to_owned(), profiles: profiles.collect() }
}

/// This process as a server that the implementation repository knows.
#[derive(Debug)]
pub struct RunningServer {
    orb: Orb,
    server: String,
    token: String,
}

impl RunningServer {
    /// The name by which the activator knows the server.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.server
    }

    /// Tells the repository that this process ends: clients wait for the next process instead of being forwarded to
    /// this one. To be called before the ORB is shut down.
    ///
    /// A process that does not call this is missed once it has ended.
    ///
    /// # Errors
    /// Those of the call.
    pub fn begin_stop(&self) -> Result<(), SystemException> {
        match administration(&self.orb)?.server_is_shutting_down(&self.server, &self.token) {
            Err(ServerIsShuttingDownError::System(exception)) => Err(exception),
            Err(_) => Err(SystemException::object_not_exist(0, CompletionStatus::No)
                .with_detail(|| format!("server `{}` is not registered", self.server))),
            Ok(()) => Ok(()),
        }
    }
}

/// The repository of an ORB.
fn administration(orb: &Orb) -> Result<Administration, SystemException> {
    let repository = orb.resolve_initial_references(IMPL_REPO_SERVICE)?;
    Ok(Administration::unchecked_narrow(&repository.with_timeout(Some(ATTEMPT_LIMIT))))
}

/// The name under which the repository knows this server (`-ORBServerId`).
fn server_name(orb: &Orb) -> Result<&str, SystemException> {
    Some(orb.server_id()).filter(|name| is_server_name(name)).ok_or_else(|| {
        SystemException::bad_param(0, CompletionStatus::No).with_detail(|| {
            format!("-ORBUseImR needs -ORBServerId with the name of a server, and that is `{}`", orb.server_id())
        })
    })
}

/// The object by which the repository calls this process, and the place of its token.
fn server_object(orb: &Orb) -> Result<(ServerObject, Arc<OnceLock<String>>), ActivationError> {
    let token = Arc::new(OnceLock::new());
    let servant = ServerObjectSkeleton::new(Control { token: Arc::clone(&token) });
    Ok((Poa::root(orb)?.activate(servant)?.unchecked_narrow(), token))
}

fn register(
    orb: &Orb,
    server: String,
    own: &ServerObject,
    place: &OnceLock<String>,
) -> Result<RunningServer, ActivationError> {
    let token_text = std::env::var(TOKEN_VARIABLE).unwrap_or_default();
    if !token_text.is_empty() {
        _ = place.set(token_text.clone()); // the repository may call before its reply arrives
    }
    let registered = retry(|| match administration(orb)?.server_is_running(&server, &token_text, Some(own)) {
        Err(ServerIsRunningError::System(exception)) => Err(exception),
        other => Ok(other),
    })?;
    match registered {
        Ok(token) => {
            _ = place.set(token.clone());
            Ok(RunningServer { orb: orb.clone(), server, token })
        }
        Err(ServerIsRunningError::NotFound(_)) => Err(ActivationError::NotRegistered { server }),
        Err(ServerIsRunningError::AlreadyRunning(_)) => Err(ActivationError::AlreadyRunning { server }),
        Err(ServerIsRunningError::CannotComplete(cannot)) => {
            Err(ActivationError::Refused { server, reason: cannot.reason })
        }
        Err(error) => Err(ActivationError::Refused { server, reason: error.to_string() }),
    }
}

/// Makes a call of the repository, and makes it again while that cannot be reached.
fn retry<T>(mut call: impl FnMut() -> Result<T, SystemException>) -> Result<T, SystemException> {
    let deadline = Instant::now() + REGISTRATION_LIMIT;
    let mut pause = Duration::from_millis(50);
    loop {
        match call() {
            Err(exception) if is_temporary(&exception) && Instant::now() + pause < deadline => {
                thread::sleep(pause);
                pause = (pause * 2).min(Duration::from_secs(1));
            }
            outcome => return outcome,
        }
    }
}

fn is_temporary(exception: &SystemException) -> bool {
    use SystemExceptionKind::{CommFailure, Timeout, Transient};
    matches!(exception.kind(), Transient | CommFailure | Timeout)
}

/// The IIOP profiles of a reference.
fn iiop_profiles(ior: &Ior) -> impl Iterator<Item = IiopProfile> {
    let iiop = ior.profiles.iter().filter(|profile| profile.tag == TAG_INTERNET_IOP);
    iiop.filter_map(|profile| IiopProfile::decode(profile).ok().flatten())
}

/// The object with the addresses of this process, also if its reference denotes the repository. `own` is any object of
/// this process with a transient adapter.
fn direct(own: &ObjectRef, object: &ObjectRef) -> ObjectRef {
    let Some(profile) = iiop_profiles(object.ior()).next() else { return object.clone() };
    match ServerKey::parse(&profile.object_key) {
        Some(key) if key.server == object.orb().server_id() => {
            own.orb().reference(with_key(own.ior(), object.type_id(), key.key))
        }
        _ => object.clone(),
    }
}

/// The object by which the repository calls this process.
struct Control {
    /// The token of this process, once it is registered.
    token: Arc<OnceLock<String>>,
}

impl ServerObjectServant for Control {
    fn ping(&self) -> Result<(), SystemException> {
        Ok(())
    }

    fn shutdown(&self, token: &str) -> Result<(), SystemException> {
        if self.token.get().is_none_or(|own| own != token) {
            return Err(SystemException::no_permission(0, CompletionStatus::No)
                .with_detail("the token is not that of this process"));
        }
        let poa = Current::new().poa().map_err(|_| SystemException::internal(0, CompletionStatus::No))?;
        poa.orb().begin_shutdown()
    }
}

/// The interceptor that gives persistent adapters another factory of references.
struct PersistentReferences;

impl Interceptor for PersistentReferences {
    fn name(&self) -> &str {
        "spandrel::services::activation"
    }
}

impl IorInterceptor for PersistentReferences {
    fn components_established(&self, info: &mut IorInfo<'_>) -> Result<(), SystemException> {
        let lifespan = info.effective_policy(LifespanPolicy::POLICY_TYPE);
        if lifespan.and_then(|policy| policy.value().copied()) == Some(LifespanPolicy::Persistent) {
            info.set_current_factory(Arc::new(RepositoryReferences { inner: info.current_factory()? }))?;
        }
        Ok(())
    }
}

/// Makes references that denote the repository.
struct RepositoryReferences {
    /// The factory that another interceptor has set.
    inner: Option<Arc<dyn ObjectReferenceFactory>>,
}

impl ObjectReferenceFactory for RepositoryReferences {
    fn make_object(
        &self,
        template: &ObjectReferenceTemplate,
        object_id: &[u8],
        made: ObjectRef,
    ) -> Result<ObjectRef, SystemException> {
        let made = match &self.inner {
            Some(inner) => inner.make_object(template, object_id, made)?,
            None => made,
        };
        let orb = made.orb();
        if !orb.uses_implementation_repository() {
            return Ok(made);
        }
        let server = server_name(orb)?;
        let repository = orb.resolve_initial_references(IMPL_REPO_SERVICE)?;
        let Some(own) = iiop_profiles(made.ior()).next() else { return Ok(made) };
        let object_key = ServerKey { server, key: &own.object_key }.encode();
        // The repository forwards all requests, so that what they may contain depends on the server alone; their
        // addresses are the repository's.
        let described = own.components.into_iter().filter(|component| !is_address(component));
        let described: Vec<_> = described.filter(|component| component.tag != TAG_OPERATION_INDEX).collect();
        let mut profiles = Vec::new();
        for IiopProfile { host, port, components, .. } in iiop_profiles(repository.ior()) {
            let addresses = components.into_iter().filter(is_address);
            let components = described.iter().cloned().chain(addresses).collect();
            let profile = IiopProfile { version: own.version, host, port, object_key: object_key.clone(), components };
            profiles.push(profile.encode()?);
        }
        Ok(orb.reference(Ior { type_id: made.type_id().to_owned(), profiles }))
    }
}

/// Whether a component is an address of a server.
fn is_address(component: &TaggedComponent) -> bool {
    let tags = [TAG_ALTERNATE_IIOP_ADDRESS, TAG_SSL_SEC_TRANS, TAG_LOCAL_ADDRESS, TAG_DATAGRAM_ADDRESS];
    tags.contains(&component.tag)
}
