//! The configurator: applies directives and files to the services of a process (`ACE_Service_Config`; paper 002, 2.5.3).

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use spandrel_reactor::Registry;
use spandrel_sync::{Arc, Mutex};

use crate::apply::Application;
use crate::catalogue::Catalogue;
use crate::changes::{Changes, ConfigureError, Problem};
use crate::plan::{Definition, Planner, Source};
use crate::shared::{Shared, State};
use crate::svc_conf::{self, Configuration, Directive, Origin};
use crate::{Options, ServiceRepository, StreamSupport};

/// The time that each method of a service may take, unless [`Configurator::call_timeout`] sets another one.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);

/// Links services into a process and out of it.
///
/// Cheap to clone. Its methods wait for the methods of services, and are therefore not for threads of the reactor. One change
/// is made at a time.
#[derive(Clone)]
pub struct Configurator(Arc<Shared>);

impl Configurator {
    /// A configurator without services. Handlers of services are registered with `registry`.
    #[must_use]
    pub fn new(registry: &Registry, catalogue: Catalogue) -> Self {
        Self(Arc::new(Shared {
            registry: registry.clone(),
            catalogue,
            streams: None,
            repository: ServiceRepository::default(),
            folders: crate::plugin::standard_folders(),
            call_timeout: CALL_TIMEOUT,
            state: Mutex::new(State::default()),
        }))
    }

    /// Sets the implementation of streams. Without it, `stream` directives are refused. To be called before the first
    /// directive.
    #[must_use]
    pub fn streams(self, streams: impl StreamSupport + 'static) -> Self {
        self.with(|shared| shared.streams = Some(Arc::new(streams)))
    }

    /// Sets the time that each method of a service may take: 10 seconds without it. To be called before the first directive.
    #[must_use]
    pub fn call_timeout(self, timeout: Duration) -> Self {
        self.with(|shared| shared.call_timeout = timeout)
    }

    /// Changes what is fixed once the configurator is shared.
    fn with(self, change: impl FnOnce(&mut Shared)) -> Self {
        let mut shared = Arc::try_unwrap(self.0).unwrap_or_else(|shared| Shared {
            registry: shared.registry.clone(),
            catalogue: shared.catalogue.clone(),
            streams: shared.streams.clone(),
            repository: shared.repository.clone(),
            folders: shared.folders.clone(),
            call_timeout: shared.call_timeout,
            state: Mutex::new(State::default()),
        });
        change(&mut shared);
        Self(Arc::new(shared))
    }

    /// The table of the running services, by name.
    #[must_use]
    pub fn repository(&self) -> &ServiceRepository {
        &self.0.repository
    }

    /// The registry of the reactor on which services register handlers.
    #[must_use]
    pub fn registry(&self) -> &Registry {
        &self.0.registry
    }

    /// The files of the present configuration, those that are included as well.
    #[must_use]
    pub fn files(&self) -> Vec<PathBuf> {
        self.0.state.lock().files.clone()
    }

    /// The files and the libraries of the present configuration.
    pub(crate) fn watched_files(&self) -> Vec<PathBuf> {
        let mut files = self.files();
        for record in self.0.repository.records() {
            let sources = record.definition.modules.iter().map(|module| &module.source);
            files.extend(sources.chain([&record.definition.source]).filter_map(|source| match source {
                Source::Library { file, .. } => Some(file.clone()),
                Source::Program(_) | Source::PlainStream => None,
            }));
        }
        files
    }

    /// Starts the services of the command line's options in the order of `ACE_Service_Gestalt::open_i`: those that the program
    /// starts by itself (`-y`), those of the files (`-f`), or of `svc.conf` in the current folder if there is one, then
    /// those of the directives (`-S`), which may suspend or remove services of the files. Reading the files again does not
    /// repeat the directives.
    ///
    /// # Errors
    /// [`ConfigureError`].
    pub fn open(&self, options: &Options) -> Result<Changes, ConfigureError> {
        let mut directives = Vec::new();
        if options.starts_static_services {
            for (name, parameters) in self.0.catalogue.started() {
                let kind = svc_conf::DirectiveKind::Static(svc_conf::Static {
                    name: name.clone(),
                    parameters: parameters.clone(),
                });
                directives.push(Directive { kind, origin: Origin::default() });
            }
        }
        let of_command_line = options.directives.iter().map(|text| svc_conf::parse(text));
        let of_command_line = of_command_line.collect::<Result<Vec<_>, _>>()?.concat();
        let mut changes = self.process(&directives)?;
        let files = options.configuration_files();
        if !files.is_empty() {
            changes.append(self.configure(&files)?);
        }
        changes.append(self.process(&of_command_line)?);
        Ok(changes)
    }

    /// Carries directives out, all or none.
    ///
    /// # Errors
    /// [`ConfigureError`].
    pub fn process(&self, directives: &[Directive]) -> Result<Changes, ConfigureError> {
        let mut state = self.0.state.lock();
        let present = self.definitions();
        let desired = self.plan(present, false, directives)?;
        Application::new(&self.0, &mut state).apply(desired)
    }

    /// Carries the directives of a text out, all or none.
    ///
    /// # Errors
    /// [`ConfigureError`].
    pub fn process_text(&self, text: &str) -> Result<Changes, ConfigureError> {
        self.process(&svc_conf::parse(text)?)
    }

    /// Makes the services of files run, and no others but those of [`process`](Self::process): services that are defined as
    /// before are not touched. All or nothing: after an error, the services run that ran before.
    ///
    /// New services are linked before others are removed, as far as they do not need what these hold (such as a port). They
    /// begin together, when all of them are linked.
    ///
    /// # Errors
    /// [`ConfigureError`].
    pub fn configure(&self, files: &[PathBuf]) -> Result<Changes, ConfigureError> {
        let mut state = self.0.state.lock();
        self.configure_locked(&mut state, files.to_vec())
    }

    /// Reads the files of the last successful [`configure`](Self::configure) again.
    ///
    /// # Errors
    /// [`ConfigureError`].
    pub fn reconfigure(&self) -> Result<Changes, ConfigureError> {
        let mut state = self.0.state.lock();
        let sources = state.sources.clone();
        self.configure_locked(&mut state, sources)
    }

    fn configure_locked(&self, state: &mut State, sources: Vec<PathBuf>) -> Result<Changes, ConfigureError> {
        let mut all = Configuration::default();
        for file in &sources {
            let Configuration { directives, files } = svc_conf::read(file)?;
            all.directives.extend(directives);
            all.files.extend(files);
        }
        let mut definitions = self.definitions();
        // Services of the command line may need those of files: the ones after these stay after them.
        let first = definitions.iter().position(|definition| definition.is_of_files).unwrap_or(definitions.len());
        let after: Vec<String> =
            definitions[first..].iter().filter(|it| !it.is_of_files).map(|it| it.name.clone()).collect();
        definitions.retain(|definition| !definition.is_of_files);
        let mut desired = self.plan(definitions, true, &all.directives)?;
        desired.sort_by_key(|definition| !definition.is_of_files && after.contains(&definition.name));
        let changes = Application::new(&self.0, state).apply(desired)?;
        (state.files, state.sources) = (all.files, sources);
        Ok(changes)
    }

    /// The definitions of the present services.
    fn definitions(&self) -> Vec<Definition> {
        let definition = |record: &Arc<crate::repository::Record>| Definition {
            is_suspended: record.is_suspended(),
            ..record.definition.clone()
        };
        self.0.repository.records().iter().map(definition).collect()
    }

    fn plan(
        &self,
        definitions: Vec<Definition>,
        is_of_files: bool,
        directives: &[Directive],
    ) -> Result<Vec<Definition>, ConfigureError> {
        let mut planner = Planner {
            catalogue: &self.0.catalogue,
            folders: &self.0.folders,
            is_of_files,
            definitions,
            problems: Vec::new(),
        };
        planner.apply(directives);
        let definitions = planner.end()?;
        if self.0.streams.is_none()
            && let Some(stream) = definitions.iter().find(|stream| stream.source == Source::PlainStream)
        {
            let text = "this program has no streams".to_owned();
            return Err(ConfigureError::Directives(vec![Problem { origin: stream.origin.clone(), text }]));
        }
        Ok(definitions)
    }

    /// Suspends a service. False if it was suspended before.
    ///
    /// # Errors
    /// [`ConfigureError::NoService`]; [`ConfigureError::Service`], although it counts as suspended then.
    pub fn suspend(&self, name: &str) -> Result<bool, ConfigureError> {
        self.set_suspended(name, true)
    }

    /// Resumes a service. False if it ran before.
    ///
    /// # Errors
    /// [`ConfigureError::NoService`]; [`ConfigureError::Service`] if the service stays suspended.
    pub fn resume(&self, name: &str) -> Result<bool, ConfigureError> {
        self.set_suspended(name, false)
    }

    fn set_suspended(&self, name: &str, is_suspended: bool) -> Result<bool, ConfigureError> {
        let mut state = self.0.state.lock();
        let record = self.0.repository.record(name).ok_or_else(|| ConfigureError::NoService(name.to_owned()))?;
        let application = Application::new(&self.0, &mut state);
        let change = if is_suspended { "suspended" } else { "resumed" };
        let outcome = if is_suspended { application.suspend(&record) } else { application.resume(&record) };
        outcome.map_err(|reason| ConfigureError::Service { service: name.to_owned(), change, reason })
    }

    /// Suspends all services; returns the errors of those that failed.
    pub fn suspend_all(&self) -> Vec<ConfigureError> {
        self.for_all(|configurator, name| configurator.suspend(name))
    }

    /// Resumes all services; returns the errors of those that failed.
    pub fn resume_all(&self) -> Vec<ConfigureError> {
        self.for_all(|configurator, name| configurator.resume(name))
    }

    fn for_all(&self, change: impl Fn(&Self, &str) -> Result<bool, ConfigureError>) -> Vec<ConfigureError> {
        let records = self.0.repository.records();
        records.iter().filter_map(|record| change(self, record.name()).err()).collect()
    }

    /// Unlinks a service.
    ///
    /// # Errors
    /// [`ConfigureError::NoService`].
    pub fn remove(&self, name: &str) -> Result<Changes, ConfigureError> {
        let mut state = self.0.state.lock();
        let mut desired = self.definitions();
        let before = desired.len();
        desired.retain(|definition| definition.name != name);
        if desired.len() == before {
            return Err(ConfigureError::NoService(name.to_owned()));
        }
        Application::new(&self.0, &mut state).apply(desired)
    }

    /// Unlinks all services, the last one first. Returns the failures, which are also logged.
    pub fn close(&self) -> Vec<String> {
        let mut state = self.0.state.lock();
        match Application::new(&self.0, &mut state).apply(Vec::new()) {
            Ok(changes) => changes.warnings,
            Err(error) => vec![error.to_string()],
        }
    }
}

impl fmt::Debug for Configurator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Configurator").field("repository", &self.0.repository).finish_non_exhaustive()
    }
}
