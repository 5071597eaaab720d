//! Names of a naming service for servers and clients: published, bound again when the service has lost them, and
//! resolved.

use std::{collections::BTreeMap, fmt, time::Duration};

use spandrel_orb::{Interface, ObjectRef, Orb, ReferencePolicies, SystemException, internal::TimerFuture};
use spandrel_sync::{Arc, Mutex, Weak, time::Instant};

use crate::{
    cos_naming::{
        NameComponent, NamingContext,
        naming_context::{BindNewContextError, NotFound, NotFoundReason, RebindError, ResolveError, UnbindError},
    },
    name,
};

/// The most names that one [`NamingClient`] publishes.
pub const MAX_PUBLISHED: usize = 1024;

/// The time between two checks of the published names.
const CHECK_INTERVAL: Duration = Duration::from_secs(30);
/// The time limit of one call of a check.
const CHECK_LIMIT: Duration = Duration::from_secs(10);

/// The reason why a name was not published, resolved or withdrawn.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum NamingError {
    /// The text is not the string form of a name.
    #[error("`{}` is not a name", spandrel_error::excerpt(name))]
    InvalidName {
        /// The text that the program has given.
        name: String,
        /// The rule that it violates.
        #[source]
        reason: name::InvalidName,
    },
    /// The name is not bound.
    #[error("`{name}` is not bound: the naming service has no `{missing}`")]
    NotFound {
        /// The name, in its string form.
        name: String,
        /// The rest of the name, from the first component on that is not bound.
        missing: String,
    },
    /// A component before the last one is bound to an object that is no naming context.
    #[error("`{name}` cannot be resolved: what is bound before `{rest}` is no naming context")]
    NotContext {
        /// The name, in its string form.
        name: String,
        /// The rest of the name, from that component on.
        rest: String,
    },
    /// The naming service could not continue, for example in a context of another service.
    #[error("the naming service could not proceed with `{name}` at `{rest}`")]
    CannotProceed {
        /// The name, in its string form.
        name: String,
        /// The rest of the name, which was not resolved.
        rest: String,
    },
    /// A nil reference is bound to the name.
    #[error("`{name}` is bound to a nil reference")]
    Nil {
        /// The name, in its string form.
        name: String,
    },
    /// [`MAX_PUBLISHED`] names are published.
    #[error("{MAX_PUBLISHED} names are published, which is the limit")]
    TooMany,
    /// The naming service could not be called, or the object does not have the interface.
    #[error("{0}")]
    System(#[from] SystemException),
}
spandrel_error::debug_as_report!(NamingError);

/// Names in a naming service (Naming Service 1.3): [`publish`](Self::publish) for servers,
/// [`resolve`](Self::resolve) for clients. Cheap to clone.
///
/// Names are in their string form: `plant/line1`, or `plant/line1.kind` ([`name`]).
///
/// ```no_run
/// # mod spandrel { pub use spandrel_orb::*; pub use spandrel_cos as services; }
/// use spandrel::services::{NamingClient, NamingError};
/// use spandrel::{ObjectRef, Orb};
///
/// fn publish(orb: &Orb, line: &ObjectRef) -> Result<NamingClient, NamingError> {
///     let names = NamingClient::new(orb)?; // -ORBInitRef NameService=corbaloc::host:2809/NameService
///     names.publish("plant/line1", line)?; // typed references work as well
///     Ok(names) // The name stays published as long as this is kept.
/// }
/// ```
///
/// # Published names
/// While a `NamingClient` or a clone of it exists, it checks each of its names every 30 seconds
/// ([`check_interval`](Self::check_interval)), and binds one that is not bound any more: the naming service has been
/// restarted without its names, or with older ones. A name that is bound to another object stays so, since another
/// server may have published it. A service that cannot be called is called again by the next check. The checks are
/// asynchronous calls on the ORB's reactor thread, one after the other, with a time limit of ten seconds each; they end
/// with the ORB.
#[derive(Clone)]
pub struct NamingClient(Arc<Shared>);

struct Shared {
    orb: Orb,
    root: NamingContext,
    published: Mutex<Published>,
}

struct Published {
    /// The objects by the string forms of their names.
    objects: BTreeMap<String, (Vec<NameComponent>, ObjectRef)>,
    interval: Duration,
    is_checked: bool,
}

/// Binds a name, in place of an earlier binding. The contexts of the name are made if one of them is missing. `$await`
/// is there in the asynchronous form.
macro_rules! bind_with_contexts {
    ($root:expr, $name:expr, $object:expr, $rebind:ident, $bind_new_context:ident $(, $await:tt)?) => {{
        let missing = match $root.$rebind($name, Some($object))$(.$await)? {
            Err(RebindError::NotFound(NotFound { why: NotFoundReason::MissingNode, .. })) => $name.len() > 1,
            outcome => return outcome,
        };
        for len in 1..if missing { $name.len() } else { 1 } {
            match $root.$bind_new_context(&$name[..len])$(.$await)? {
                // It exists, or another server has made it.
                Ok(_) | Err(BindNewContextError::AlreadyBound(_)) => {}
                Err(BindNewContextError::CannotProceed(error)) => return Err(error.into()),
                Err(BindNewContextError::InvalidName(error)) => return Err(error.into()),
                Err(BindNewContextError::NotFound(error)) => return Err(error.into()),
                Err(BindNewContextError::System(error)) => return Err(error.into()),
            }
        }
        $root.$rebind($name, Some($object))$(.$await)?
    }};
}

fn bind(root: &NamingContext, name: &[NameComponent], object: &ObjectRef) -> Result<(), RebindError> {
    bind_with_contexts!(root, name, object, rebind, bind_new_context)
}

async fn bind_async(root: &NamingContext, name: &[NameComponent], object: &ObjectRef) -> Result<(), RebindError> {
    bind_with_contexts!(root, name, object, rebind_async, bind_new_context_async, await)
}

impl NamingClient {
    /// The names of the ORB's initial reference `NameService`. Does not call it.
    ///
    /// # Errors
    /// BAD_PARAM if no initial reference of this name is configured; as
    /// [`Orb::resolve_initial_references`].
    pub fn new(orb: &Orb) -> Result<Self, SystemException> {
        Ok(Self::with_root(&orb.resolve_initial_references("NameService")?.unchecked_narrow()))
    }

    /// Uses the names below this context, in place of those of a root context.
    #[must_use]
    pub fn with_root(root: &NamingContext) -> Self {
        let published = Published { objects: BTreeMap::new(), interval: CHECK_INTERVAL, is_checked: false };
        Self(Arc::new(Shared { orb: root.orb().clone(), root: root.clone(), published: Mutex::new(published) }))
    }

    /// The time between two checks of the published names, from the next check on; 30 seconds by default.
    /// [`Duration::MAX`] stands for no checks.
    #[must_use]
    pub fn check_interval(self, interval: Duration) -> Self {
        self.0.published.lock().interval = interval;
        self
    }

    /// Binds an object to a name, in place of an earlier binding, and makes the contexts of the name that are missing.
    /// The name is checked from now on, and bound again when the naming service has lost it.
    ///
    /// # Errors
    /// [`NamingError`]; then the name is not checked.
    pub fn publish(&self, name: &str, object: &impl Interface) -> Result<(), NamingError> {
        let (components, object) = (parse(name)?, object.as_object());
        self.check_limit(&components)?;
        bind(&self.0.root, &components, object).map_err(|error| naming_error(name, error))?;
        self.keep(components, object)
    }

    /// As [`publish`](Self::publish), without blocking a thread.
    ///
    /// # Errors
    /// As [`publish`](Self::publish).
    pub fn publish_async<'c, I: Interface>(
        &'c self,
        name: &'c str,
        object: &'c I,
    ) -> impl Future<Output = Result<(), NamingError>> + Send + use<'c, I> {
        self.publish_object(name, object.as_object())
    }

    async fn publish_object(&self, name: &str, object: &ObjectRef) -> Result<(), NamingError> {
        let components = parse(name)?;
        self.check_limit(&components)?;
        bind_async(&self.0.root, &components, object).await.map_err(|error| naming_error(name, error))?;
        self.keep(components, object)
    }

    /// Removes the binding of a published name, unless another object is bound to it by now, and checks it no more.
    /// Returns whether it was removed. A name that was not published stays as it is.
    ///
    /// # Errors
    /// [`NamingError`]; then the name is not checked any more either.
    pub fn withdraw(&self, name: &str) -> Result<bool, NamingError> {
        let components = parse(name)?;
        let Some((_, object)) = self.0.published.lock().objects.remove(&name::to_string(&components)) else {
            return Ok(false);
        };
        match self.0.root.resolve(&components) {
            Ok(Some(bound)) if bound == object => {}
            Ok(_) | Err(ResolveError::NotFound(_)) => return Ok(false),
            Err(error) => return Err(naming_error(name, error)),
        }
        match self.0.root.unbind(&components) {
            Ok(()) => Ok(true),
            Err(UnbindError::NotFound(_)) => Ok(false),
            Err(error) => Err(naming_error(name, error)),
        }
    }

    /// The object that is bound to a name, narrowed to `I`.
    ///
    /// # Errors
    /// [`NamingError`]; BAD_PARAM if the object does not have the interface.
    pub fn resolve<I: Interface>(&self, name: &str) -> Result<I, NamingError> {
        let bound = self.0.root.resolve(&parse(name)?).map_err(|error| naming_error(name, error))?;
        Ok(bound.ok_or_else(|| NamingError::Nil { name: name.to_owned() })?.narrow()?)
    }

    /// As [`resolve`](Self::resolve), without blocking a thread.
    ///
    /// # Errors
    /// As [`resolve`](Self::resolve).
    pub async fn resolve_async<I: Interface + 'static>(&self, name: &str) -> Result<I, NamingError> {
        let bound = self.0.root.resolve_async(&parse(name)?).await.map_err(|error| naming_error(name, error))?;
        Ok(bound.ok_or_else(|| NamingError::Nil { name: name.to_owned() })?.narrow_async().await?)
    }

    fn check_limit(&self, name: &[NameComponent]) -> Result<(), NamingError> {
        let published = self.0.published.lock();
        let has_room =
            published.objects.len() < MAX_PUBLISHED || published.objects.contains_key(&name::to_string(name));
        if has_room { Ok(()) } else { Err(NamingError::TooMany) }
    }

    /// Keeps a name that was bound, and begins to check the names.
    fn keep(&self, name: Vec<NameComponent>, object: &ObjectRef) -> Result<(), NamingError> {
        let mut published = self.0.published.lock();
        published.objects.insert(name::to_string(&name), (name, object.clone()));
        let is_first = !std::mem::replace(&mut published.is_checked, true);
        drop(published);
        if is_first {
            let started = self.0.orb.spawn(check(self.0.orb.clone(), Arc::downgrade(&self.0)));
            started.inspect_err(|_| self.0.published.lock().is_checked = false)?;
        }
        Ok(())
    }
}

/// Checks the published names of a client until it is dropped or the ORB ends.
async fn check(orb: Orb, client: Weak<Shared>) {
    loop {
        let Some(interval) = client.upgrade().map(|client| client.published.lock().interval) else { return };
        let Some(next) = Instant::now().checked_add(interval) else { return };
        if !TimerFuture::of_request(&orb, next).await {
            return;
        }
        let Some(client) = client.upgrade() else { return };
        let root = client.root.with_timeout(CHECK_LIMIT);
        let names: Vec<String> = client.published.lock().objects.keys().cloned().collect();
        for name in names {
            // It may have been withdrawn meanwhile.
            let entry = client.published.lock().objects.get(&name).cloned();
            let Some((components, object)) = entry else { continue };
            let bound = match root.resolve_async(&components).await {
                Err(ResolveError::NotFound(_)) => bind_async(&root, &components, &object).await,
                Err(error) => Err(error),
                Ok(_) => continue,
            };
            match bound {
                Ok(()) => tracing::info!(name, "a name is bound again, which the naming service had lost"),
                Err(error) => {
                    tracing::debug!(name, %error, "a published name cannot be checked now");
                    break;
                }
            }
        }
    }
}

fn parse(name: &str) -> Result<Vec<NameComponent>, NamingError> {
    name::parse(name).map_err(|reason| NamingError::InvalidName { name: name.to_owned(), reason })
}

/// The error of `resolve`; `rebind` and `unbind` raise the same.
fn naming_error(name: &str, error: ResolveError) -> NamingError {
    let name = name.to_owned();
    match error {
        ResolveError::NotFound(NotFound { why: NotFoundReason::NotContext, rest_of_name }) => {
            NamingError::NotContext { name, rest: name::to_string(&rest_of_name) }
        }
        ResolveError::NotFound(NotFound { rest_of_name, .. }) => {
            NamingError::NotFound { name, missing: name::to_string(&rest_of_name) }
        }
        ResolveError::CannotProceed(error) => {
            NamingError::CannotProceed { name, rest: name::to_string(&error.rest_of_name) }
        }
        ResolveError::InvalidName(_) => SystemException::bad_param(0, spandrel_orb::CompletionStatus::No)
            .with_detail(|| format!("the naming service rejects the name `{name}`"))
            .into(),
        ResolveError::System(exception) => exception.into(),
    }
}

impl fmt::Debug for NamingClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let published = self.0.published.lock();
        f.debug_struct("NamingClient")
            .field("root", &self.0.root)
            .field("published", &published.objects.keys())
            .finish()
    }
}
