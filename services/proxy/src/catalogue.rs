//! The objects that are served: their names, references and interfaces.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use spandrel::dynamic::{Descriptions, DynamicObject, InterfaceDescription};
use spandrel::services::cos_naming::{Binding, BindingType, NamingContext, naming_context};
use spandrel::services::{name, repository};
use spandrel::types::TypeCode;
use spandrel::{ObjectRef, Orb, SystemException, SystemExceptionKind};
use tokio::sync::{Mutex, Semaphore};
use wildmatch::WildMatch;

use crate::problem::Problem;

/// Names of objects that HTTP clients may call, and the operations that they may call there.
#[derive(Clone, Debug)]
pub struct Exposure {
    /// A name of the naming service in its string form, such as `Bank/alice`; `*` stands for any text.
    pub name: String,
    /// The operations and attributes; `*` stands for any text. Empty for all.
    pub operations: Vec<String>,
}

/// The longest time for which a reference and an interface are kept.
const KEPT: Duration = Duration::from_secs(30);
/// The most objects that are kept.
const MAX_KEPT: usize = 4096;
/// The most descriptions that are made at a time: each has a thread.
const MAX_DESCRIBING: usize = 16;
/// The deepest context that is searched for names.
const MAX_DEPTH: usize = 16;
/// The most bindings that are looked at for a list of names.
const MAX_BINDINGS: usize = 10_000;
/// The bindings of one answer.
const CHUNK: u32 = 200;

/// Finds the objects behind exposed names, with the descriptions of their interfaces, for a short time from
/// memory.
pub struct Catalogue {
    orb: Orb,
    root: NamingContext,
    exposures: Vec<CompiledExposure>,
    idl: Option<Arc<Descriptions>>,
    kept: Mutex<HashMap<String, Kept>>,
    interfaces: Mutex<HashMap<String, (Arc<InterfaceDescription>, Instant)>>,
    describing: Arc<Semaphore>,
}

struct CompiledExposure {
    name: WildMatch,
    operations: Vec<WildMatch>,
}

struct Kept {
    object: Arc<DynamicObject>,
    since: Instant,
}

impl fmt::Debug for Catalogue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Catalogue").field("root", &self.root).finish_non_exhaustive()
    }
}

impl Catalogue {
    /// The objects below the ORB's initial reference `NameService` with these names. Interfaces are those of `idl`, or
    /// without it those of the interface repository.
    ///
    /// # Errors
    /// If there is no naming service.
    pub fn new(orb: &Orb, exposures: &[Exposure], idl: Option<Descriptions>) -> Result<Self, SystemException> {
        let root = NamingContext::unchecked_narrow(&orb.resolve_initial_references("NameService")?);
        let compile = |texts: &[String]| texts.iter().map(|text| WildMatch::new(text)).collect();
        let exposures = exposures.iter().map(|exposure| CompiledExposure {
            name: WildMatch::new(&exposure.name),
            operations: compile(&exposure.operations),
        });
        Ok(Self {
            orb: orb.clone(),
            root,
            exposures: exposures.collect(),
            idl: idl.map(Arc::new),
            kept: Mutex::default(),
            interfaces: Mutex::default(),
            describing: Arc::new(Semaphore::new(MAX_DESCRIBING)),
        })
    }

    /// The ORB that calls the objects.
    pub(crate) fn orb(&self) -> &Orb {
        &self.orb
    }

    /// Whether an object's operation is served. An attribute counts by its name.
    #[must_use]
    pub fn serves(&self, name: &str, operation: &str) -> bool {
        self.exposures.iter().any(|exposure| {
            let operations = &exposure.operations;
            exposure.name.matches(name)
                && (operations.is_empty() || operations.iter().any(|pattern| pattern.matches(operation)))
        })
    }

    /// The object of a name in the string form that [`name::to_string`] makes.
    ///
    /// # Errors
    /// 404 for a name that is not bound or not served; the problem of the naming service's or the object's exception.
    pub async fn object(&self, name: &str) -> Result<Arc<DynamicObject>, Problem> {
        if !self.exposures.iter().any(|exposure| exposure.name.matches(name)) {
            return Err(not_found(name));
        }
        if let Some(kept) = self.kept.lock().await.get(name)
            && kept.since.elapsed() < KEPT
        {
            return Ok(Arc::clone(&kept.object));
        }
        let reference = self.resolve(name).await?;
        let interface = self.interface(&reference).await?;
        let object = Arc::new(DynamicObject::new(reference, interface));
        let mut all = self.kept.lock().await;
        if all.len() >= MAX_KEPT {
            all.clear();
        }
        all.insert(name.to_owned(), Kept { object: Arc::clone(&object), since: Instant::now() });
        Ok(object)
    }

    /// Forgets an object whose call failed: its name may be bound to another one by now.
    pub(crate) async fn forget(&self, name: &str) {
        self.kept.lock().await.remove(name);
    }

    async fn resolve(&self, name: &str) -> Result<ObjectRef, Problem> {
        use naming_context::ResolveError as Error;
        let Ok(components) = name::parse(name) else { return Err(not_found(name)) };
        match self.root.resolve_async(&components).await {
            Ok(Some(object)) => Ok(object),
            Ok(None) | Err(Error::NotFound(_) | Error::InvalidName(_)) => Err(not_found(name)),
            Err(Error::CannotProceed(_)) => {
                Err(Problem::new(StatusCode::BAD_GATEWAY, "the naming service cannot resolve the name"))
            }
            Err(Error::System(exception)) => Err(Problem::of_system_exception(&exception)),
        }
    }

    /// The interface of an object, with documentation.
    async fn interface(&self, object: &ObjectRef) -> Result<Arc<InterfaceDescription>, Problem> {
        let id = object.type_id().to_owned();
        if !id.is_empty()
            && let Some((interface, since)) = self.interfaces.lock().await.get(&id)
            && since.elapsed() < KEPT
        {
            return Ok(Arc::clone(interface));
        }
        let (orb, object, idl) = (self.orb.clone(), object.clone(), self.idl.clone());
        let described = self.blocking(move || describe(&orb, &object, idl.as_deref())).await??;
        let interface = Arc::new(described);
        // The object may be of another type than its reference claims.
        if interface.id() == id {
            let mut all = self.interfaces.lock().await;
            if all.len() >= MAX_KEPT {
                all.clear();
            }
            all.insert(id, (Arc::clone(&interface), Instant::now()));
        }
        Ok(interface)
    }

    /// The type of this name: of the IDL files, or of the repository that describes an object.
    ///
    /// # Errors
    /// The problem of the repository's exception.
    pub(crate) async fn type_code(&self, object: &ObjectRef, name: &str) -> Result<Option<TypeCode>, Problem> {
        if let Some(idl) = &self.idl {
            return Ok(idl.type_code(name).ok());
        }
        let (orb, object, name) = (self.orb.clone(), object.clone(), name.to_owned());
        let found = self.blocking(move || {
            let repository = repository::repository_of(&orb, &object)?;
            repository::type_by_id(&repository, &name)
        });
        found.await?.map_err(|exception| Problem::of_system_exception(&exception))
    }

    /// Runs calls of a repository on a thread that may block. The thread goes on, and keeps its permit, also if the
    /// request ends.
    async fn blocking<R: Send + 'static>(&self, calls: impl FnOnce() -> R + Send + 'static) -> Result<R, Problem> {
        let permit = Arc::clone(&self.describing).acquire_owned().await;
        let permit = permit.map_err(|error| Problem::internal(error.to_string()))?;
        let done = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            calls()
        });
        done.await.map_err(|error| Problem::internal(error.to_string()))
    }

    /// The names of all objects that are served, sorted: of some 10,000 bindings at most.
    ///
    /// # Errors
    /// The problem of the naming service's exception.
    pub async fn names(&self) -> Result<Vec<String>, Problem> {
        let mut names = Vec::new();
        let mut contexts = vec![(String::new(), self.root.clone(), 0)];
        let mut bindings_read = 0;
        while bindings_read < MAX_BINDINGS
            && let Some((path, context, depth)) = contexts.pop()
        {
            for binding in self.bindings(&context, MAX_BINDINGS - bindings_read).await? {
                bindings_read += 1;
                let name = name::to_string(&binding.binding_name);
                let name = if path.is_empty() { name } else { format!("{path}/{name}") };
                if binding.binding_type == BindingType::Ncontext {
                    // A context of another server may be unreachable: its names are left out.
                    if depth < MAX_DEPTH
                        && self.may_contain(&name)
                        && let Ok(Some(below)) = context.resolve_async(&binding.binding_name).await
                    {
                        contexts.push((name, NamingContext::unchecked_narrow(&below), depth + 1));
                    }
                } else if self.exposures.iter().any(|exposure| exposure.name.matches(&name)) {
                    names.push(name);
                }
            }
        }
        names.sort();
        Ok(names)
    }

    /// Whether names below a context may be served.
    fn may_contain(&self, context: &str) -> bool {
        self.exposures.iter().any(|exposure| {
            let pattern = exposure.name.pattern();
            let fixed = pattern.split(['*', '?']).next().unwrap_or_default();
            let below = format!("{context}/");
            below.starts_with(fixed) || fixed.starts_with(&below)
        })
    }

    /// The bindings of a context, the first ones if there are more than `most`.
    async fn bindings(&self, context: &NamingContext, most: usize) -> Result<Vec<Binding>, Problem> {
        let failed = |error: SystemException| Problem::of_system_exception(&error);
        let (mut all, iterator) = context.list_async(CHUNK).await.map_err(failed)?;
        let Some(iterator) = iterator else {
            all.truncate(most);
            return Ok(all);
        };
        while all.len() < most {
            let (goes_on, more) = iterator.next_n_async(CHUNK).await.map_err(failed)?;
            all.extend(more);
            if !goes_on {
                break;
            }
        }
        // The iterator ends by itself later.
        _ = iterator.destroy_async().await;
        all.truncate(most);
        Ok(all)
    }
}

/// The interface of an object: of the IDL files, or of a repository.
fn describe(orb: &Orb, object: &ObjectRef, idl: Option<&Descriptions>) -> Result<InterfaceDescription, Problem> {
    let failed = |exception: &SystemException| Problem::of_system_exception(exception);
    if let Some(idl) = idl {
        if let Ok(interface) = idl.interface(object.type_id()) {
            return Ok(interface);
        }
        let id = object.repository_id().map_err(|exception| failed(&exception))?;
        return idl.interface(&id).map_err(|error| {
            Problem::new(StatusCode::BAD_GATEWAY, "the interface of the object is not known").caused_by(&error)
        });
    }
    let interface = repository::interface_of(orb, object).map_err(|exception| match exception.kind() {
        SystemExceptionKind::IntfRepos => {
            Problem::new(StatusCode::BAD_GATEWAY, "the interface of the object is not known").caused_by(&exception)
        }
        _ => failed(&exception),
    })?;
    // Without documentation the object is served all the same.
    let documentation = repository::repository_of(orb, object)
        .and_then(|repository| repository::documentation(&repository, &interface));
    Ok(match documentation {
        Ok(documentation) => interface.with_documentation(&documentation),
        Err(_) => interface,
    })
}

fn not_found(name: &str) -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "there is no such object").detail(format!("no object is served as `{name}`"))
}
