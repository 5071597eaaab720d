//! The services of a process.

use std::any::Any;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use spandrel_metrics::{Families, Kind, escape_label, write_header, write_sample};
use spandrel_reactor::HandlerId;
use spandrel_sync::atomic::{AtomicBool, Ordering};
use spandrel_sync::{Arc, Mutex, RwLock};

use crate::plan::Definition;
use crate::plugin::{Library, LibraryUse};
use crate::{ServiceKind, ServiceObject, StreamObject, lifecycle};

/// The time that a service may take for its [`info`](crate::SharedObject::info).
const INFO_TIME: Duration = Duration::from_secs(1);

/// A linked service, or a stream.
pub(crate) struct Record {
    pub(crate) definition: Definition,
    pub(crate) object: Object,
    /// The handlers that `init` has registered.
    pub(crate) handlers: Vec<HandlerId>,
    /// The services that `init` has found.
    pub(crate) dependencies: Vec<String>,
    pub(crate) is_suspended: AtomicBool,
    pub(crate) library: Option<Arc<Library>>,
    /// The libraries of the stream's modules, by module.
    pub(crate) module_libraries: Mutex<Vec<(String, Arc<Library>)>>,
}

#[derive(Clone)]
pub(crate) enum Object {
    Service(Arc<dyn ServiceObject>),
    Stream(Arc<dyn StreamObject>),
}

impl Object {
    pub(crate) fn service(&self) -> Arc<dyn ServiceObject> {
        match self {
            Self::Service(service) => Arc::clone(service),
            Self::Stream(stream) => Arc::clone(stream) as Arc<dyn ServiceObject>,
        }
    }

    pub(crate) fn any(&self) -> Arc<dyn Any + Send + Sync> {
        match self {
            Self::Service(service) => Arc::clone(service) as _,
            Self::Stream(stream) => Arc::clone(stream) as _,
        }
    }

    pub(crate) fn kind(&self) -> ServiceKind {
        match self {
            Self::Service(_) => ServiceKind::ServiceObject,
            Self::Stream(_) => ServiceKind::Stream,
        }
    }
}

impl Record {
    pub(crate) fn name(&self) -> &str {
        &self.definition.name
    }

    /// Its library and those of its modules.
    pub(crate) fn libraries(&self) -> Vec<LibraryUse> {
        let modules = self.module_libraries.lock();
        self.library.iter().chain(modules.iter().map(|(_, library)| library)).map(Library::usage).collect()
    }

    pub(crate) fn is_suspended(&self) -> bool {
        self.is_suspended.load(Ordering::SeqCst)
    }
}

/// The services of a process, in the order in which they were linked (`ACE_Service_Repository`; paper 002, 2.5.2).
///
/// Cheap to clone: all clones are one repository.
#[derive(Clone, Default)]
pub struct ServiceRepository(Arc<Shared>);

#[derive(Default)]
struct Shared {
    records: RwLock<Vec<Arc<Record>>>,
    /// Libraries of removed services that are still in use.
    kept: Mutex<Vec<LibraryUse>>,
}

/// A linked service as administration shows it, at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceStatus {
    /// The name by which directives refer to it.
    pub name: String,
    /// Service, module or stream.
    pub kind: ServiceKind,
    /// Its factory: the words of its directive after its name and type; `static` for one that the program contains.
    pub source: String,
    /// The parameters of its directive in one text.
    pub parameters: String,
    /// Whether it is suspended: linked, but not running.
    pub is_suspended: bool,
    /// The modules of a stream, from the head to the tail.
    pub modules: Vec<String>,
}

/// A library that is still mapped, because something in it has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptLibrary {
    /// The file that directives name. A copy of it is mapped, so that the file itself can be replaced.
    pub file: PathBuf,
    /// The number of its threads, handlers, calls and objects that have not ended.
    pub users: usize,
}

impl ServiceRepository {
    /// The services that are linked, suspended ones included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.records.read().len()
    }

    /// Whether no service is linked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The service with this name, if it has the type `S`.
    #[must_use]
    pub fn find<S: ServiceObject>(&self, name: &str) -> Option<Arc<S>> {
        self.record(name)?.object.any().downcast().ok()
    }

    /// The states of all services at this moment, in the order in which they were linked.
    pub fn iter(&self) -> ServiceRepositoryIterator {
        ServiceRepositoryIterator { records: self.records().into_iter() }
    }

    /// The state of the service with this name, at this moment; `None` if none is linked.
    #[must_use]
    pub fn status(&self, name: &str) -> Option<ServiceStatus> {
        self.record(name).map(|record| status(&record))
    }

    /// A service's own description; `None` if there is no such service. A service that panics or does not answer within a
    /// second is described by an error.
    #[must_use]
    pub fn info(&self, name: &str) -> Option<String> {
        let service = self.record(name)?.object.service();
        let info = lifecycle::call(name, "info", INFO_TIME, move || Ok(service.info()), drop);
        Some(info.unwrap_or_else(|error| format!("cannot be asked: {error}")))
    }

    /// The numbers of all services in Prometheus' text exposition format 0.0.4. Each series has the name of its service as the
    /// label `service`. A service that panics or does not answer within a second has `spandrel_service_answers` 0.
    #[must_use]
    pub fn render_metrics(&self) -> String {
        let (mut active, mut answers, mut families) = (String::new(), String::new(), Families::default());
        write_header(&mut active, "spandrel_service_active", "Whether the service is not suspended.", Kind::Gauge);
        write_header(
            &mut answers,
            "spandrel_service_answers",
            "Whether the service has told its numbers.",
            Kind::Gauge,
        );
        for record in self.records() {
            let (name, service) = (record.name(), record.object.service());
            let metrics = lifecycle::call(name, "metrics", INFO_TIME, move || Ok(service.metrics()), drop);
            let labels = format!("service=\"{}\",kind=\"{}\"", escape_label(name), record.object.kind().keyword());
            write_sample(&mut active, "spandrel_service_active", &labels, u8::from(!record.is_suspended()));
            let labels = format!("service=\"{}\"", escape_label(name));
            write_sample(&mut answers, "spandrel_service_answers", &labels, u8::from(metrics.is_ok()));
            families.add(&metrics.unwrap_or_default(), Some(("service", name)));
        }
        active + &answers + &families.to_string()
    }

    /// Libraries of removed services that are still mapped, and that no present service uses.
    #[must_use]
    pub fn kept_libraries(&self) -> Vec<KeptLibrary> {
        let records = self.records();
        let used: Vec<LibraryUse> = records.iter().flat_map(|record| record.libraries()).collect();
        let mut libraries = self.0.kept.lock();
        libraries.retain(|library| library.users() > 0);
        let unused = libraries.iter().filter(|library| !used.iter().any(|other| other.is_same(library)));
        unused.map(|library| KeptLibrary { file: library.file().to_owned(), users: library.users() }).collect()
    }

    pub(crate) fn keep_library(&self, library: LibraryUse) {
        let mut libraries = self.0.kept.lock();
        libraries.retain(|other| other.users() > 0);
        if !libraries.iter().any(|other| other.is_same(&library)) {
            libraries.push(library);
        }
    }

    pub(crate) fn record(&self, name: &str) -> Option<Arc<Record>> {
        self.0.records.read().iter().find(|record| record.name() == name).cloned()
    }

    pub(crate) fn records(&self) -> Vec<Arc<Record>> {
        self.0.records.read().clone()
    }

    pub(crate) fn set_records(&self, records: Vec<Arc<Record>>) {
        *self.0.records.write() = records;
    }
}

fn status(record: &Record) -> ServiceStatus {
    ServiceStatus {
        name: record.name().to_owned(),
        kind: record.object.kind(),
        source: record.definition.source.to_string(),
        parameters: record.definition.parameters.clone(),
        is_suspended: record.is_suspended(),
        modules: match &record.object {
            Object::Service(_) => Vec::new(),
            Object::Stream(stream) => stream.modules(),
        },
    }
}

impl IntoIterator for &ServiceRepository {
    type Item = ServiceStatus;
    type IntoIter = ServiceRepositoryIterator;

    fn into_iter(self) -> ServiceRepositoryIterator {
        self.iter()
    }
}

impl fmt::Debug for ServiceRepository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.records().iter().map(|record| record.name().to_owned())).finish()
    }
}

/// The states of services (`ACE_Service_Repository_Iterator`). Changes of the repository do not change it.
pub struct ServiceRepositoryIterator {
    records: std::vec::IntoIter<Arc<Record>>,
}

impl Iterator for ServiceRepositoryIterator {
    type Item = ServiceStatus;

    fn next(&mut self) -> Option<ServiceStatus> {
        self.records.next().map(|record| status(&record))
    }
}

impl fmt::Debug for ServiceRepositoryIterator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceRepositoryIterator").field("left", &self.records.len()).finish()
    }
}
