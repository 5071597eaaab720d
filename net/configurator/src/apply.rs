//! From the services that run to those that shall run.

use std::any::Any;

use spandrel_reactor::{HandlerId, Registry};
use spandrel_sync::atomic::{AtomicBool, Ordering};
use spandrel_sync::{Arc, Mutex};

use crate::catalogue::Factory;
use crate::lifecycle::{call, call_simply};
use crate::plan::{Definition, ModuleDefinition, Source};
use crate::plugin::{ForeignFactory, Library, make};
use crate::repository::{Object, Record};
use crate::service_object::Process;
use crate::shared::{Shared, State};
use crate::svc_conf::arguments;
use crate::{Changes, ConfigureError, Problem, ServiceContext, ServiceKind, StreamObject};

/// The process that services of this program see.
struct ThisProcess {
    registry: Registry,
    /// The services that are linked at this point of the change.
    records: Vec<Arc<Record>>,
    /// The names of those that were found.
    found: Mutex<Vec<String>>,
}

impl Process for ThisProcess {
    fn registry(&self) -> &Registry {
        &self.registry
    }

    fn find(&self, name: &str) -> Option<Arc<dyn Any + Send + Sync>> {
        let record = self.records.iter().find(|record| record.name() == name)?;
        let mut found = self.found.lock();
        if !found.iter().any(|other| other == name) {
            found.push(name.to_owned());
        }
        Some(record.object.any())
    }
}

/// A module of a stream that is not in it yet.
struct MadeModule {
    module: Box<dyn Any + Send>,
    library: Option<Arc<Library>>,
}

/// One change of the services of a process.
pub(crate) struct Application<'a> {
    shared: &'a Shared,
    state: &'a mut State,
    /// Services that were made before anything was changed, by their names.
    made: Vec<(String, Object, Option<Arc<Library>>)>,
    /// Modules, by the names of their streams and their own.
    made_modules: Vec<(String, String, MadeModule)>,
    /// The services that are linked at this point: those that were there, and new ones.
    linked: Vec<Arc<Record>>,
}

impl<'a> Application<'a> {
    pub(crate) fn new(shared: &'a Shared, state: &'a mut State) -> Self {
        Self { shared, state, made: Vec::new(), made_modules: Vec::new(), linked: shared.repository.records() }
    }

    /// Makes these services run and no others.
    pub(crate) fn apply(mut self, desired: Vec<Definition>) -> Result<Changes, ConfigureError> {
        let present = self.shared.repository.records();
        let unchanged = |definition: &Definition| {
            present
                .iter()
                .find(|record| record.definition.is_same_service(definition) && record.name() == definition.name)
        };
        // Factories are called before anything is changed: so a missing library or symbol touches no service.
        let mut problems = Vec::new();
        for definition in desired.iter().filter(|definition| unchanged(definition).is_none()) {
            match self.make(definition, None) {
                Ok((object, library)) => self.made.push((definition.name.clone(), object, library)),
                Err(text) => problems.push(Problem { origin: definition.origin.clone(), text }),
            }
        }
        for definition in &desired {
            let before = present.iter().find(|record| record.name() == definition.name);
            for module in &definition.modules {
                let is_new = before.is_none_or(|record| {
                    !record
                        .definition
                        .modules
                        .iter()
                        .any(|other| other.name == module.name && other.is_same_module(module))
                });
                if !is_new {
                    continue;
                }
                match self.make_module(module) {
                    Ok(made) => self.made_modules.push((definition.name.clone(), module.name.clone(), made)),
                    Err(text) => problems.push(Problem { origin: module.origin.clone(), text }),
                }
            }
        }
        if !problems.is_empty() {
            return Err(ConfigureError::Directives(problems));
        }
        let (mut kept, mut stopping): (Vec<_>, Vec<_>) = present.iter().cloned().partition(|record| {
            desired.iter().any(|other| other.name == record.name() && record.definition.is_same_service(other))
        });
        // Services that depend on others end with them, and are linked again.
        while let Some(at) = kept.iter().position(|record| depends_on(record, &stopping)) {
            stopping.push(kept.remove(at));
        }
        stopping.sort_by_key(|record| present.iter().position(|other| Arc::ptr_eq(other, record)));
        let mut changes = Changes::default();
        let mut started = self.start_new(&desired, &present, &stopping, &mut changes)?;
        let changed_streams = self.change_streams(&desired, &kept, &started, &stopping, &mut changes)?;
        self.commit(&desired, &kept, &mut started, changed_streams, &mut changes);
        Ok(changes)
    }

    /// Links what is new, and unlinks what is gone.
    fn start_new(
        &mut self,
        desired: &[Definition],
        present: &[Arc<Record>],
        stopping: &[Arc<Record>],
        changes: &mut Changes,
    ) -> Result<Vec<Arc<Record>>, ConfigureError> {
        let is_present = |name: &str| present.iter().any(|record| record.name() == name);
        let mut started: Vec<Arc<Record>> = Vec::new();
        // First those that need nothing of the services that end.
        let mut has_failed = false;
        for definition in desired.iter().filter(|definition| !is_present(&definition.name)) {
            match self.link(definition) {
                Ok(record) if depends_on(&record, stopping) => {
                    // It has found a service that ends.
                    self.unlink(&record, changes);
                    has_failed = true;
                    break;
                }
                Ok(record) => started.push(record),
                Err(_) if !stopping.is_empty() => {
                    has_failed = true;
                    break; // it and the following ones are tried again below
                }
                Err(text) => {
                    self.unlink_all(&started, changes);
                    return Err(problem(definition, text));
                }
            }
        }
        if !has_failed && stopping.is_empty() {
            return self.begin(started, &[], changes);
        }
        for record in stopping.iter().rev() {
            self.unlink(record, changes);
            let is_replaced = desired.iter().any(|definition| definition.name == record.name());
            if is_replaced { &mut changes.replaced } else { &mut changes.removed }.push(record.name().to_owned());
        }
        changes.replaced.reverse();
        changes.removed.reverse();
        for definition in desired {
            let is_done = started.iter().any(|record| record.name() == definition.name)
                || present.iter().any(|record| {
                    record.name() == definition.name && !stopping.iter().any(|other| Arc::ptr_eq(record, other))
                });
            if is_done {
                continue;
            }
            match self.link(definition) {
                Ok(record) => started.push(record),
                Err(text) => {
                    self.unlink_all(&started, changes);
                    let mut text = text;
                    self.restart(stopping, &mut text);
                    return Err(problem(definition, text));
                }
            }
        }
        self.begin(started, stopping, changes)
    }

    /// Lets linked services begin, all or none.
    fn begin(
        &mut self,
        started: Vec<Arc<Record>>,
        stopped: &[Arc<Record>],
        changes: &mut Changes,
    ) -> Result<Vec<Arc<Record>>, ConfigureError> {
        for record in &started {
            if record.definition.is_suspended {
                continue;
            }
            if let Err(mut text) = self.resume(record) {
                self.unlink_all(&started, changes);
                self.restart(stopped, &mut text);
                return Err(problem(&record.definition, text));
            }
        }
        Ok(started)
    }

    /// After a failure: links services again that were unlinked for the change.
    fn restart(&mut self, stopped: &[Arc<Record>], text: &mut String) {
        let mut records = self.shared.repository.records();
        for old in stopped {
            let definition = Definition { is_suspended: old.is_suspended(), ..old.definition.clone() };
            let linked = self.link_with(&definition, old.library.clone()).and_then(|record| {
                if !definition.is_suspended {
                    self.resume(&record)?;
                }
                Ok(record)
            });
            let index = records.iter().position(|record| Arc::ptr_eq(record, old));
            match (linked, index) {
                (Ok(record), Some(index)) => records[index] = record,
                (Ok(_), None) => {}
                (Err(error), index) => {
                    index.map(|index| records.remove(index));
                    text.push_str(&format!(
                        "; the service `{}`, which ran before, cannot run again: {error}",
                        old.name()
                    ));
                }
            }
        }
        self.shared.repository.set_records(records);
    }

    /// Changes the modules of streams that stay. Returns the new records of changed streams.
    fn change_streams(
        &mut self,
        desired: &[Definition],
        kept: &[Arc<Record>],
        started: &[Arc<Record>],
        stopped: &[Arc<Record>],
        changes: &mut Changes,
    ) -> Result<Vec<Arc<Record>>, ConfigureError> {
        let mut done: Vec<(Arc<Record>, Vec<ModuleDefinition>)> = Vec::new();
        let mut failure = None;
        for record in kept {
            let Object::Stream(stream) = &record.object else { continue };
            let Some(definition) = desired.iter().find(|definition| definition.name == record.name()) else { continue };
            let before = &record.definition.modules;
            let is_same = before.len() == definition.modules.len()
                && before.iter().zip(&definition.modules).all(|(old, new)| {
                    old.name == new.name && old.is_same_module(new) && old.is_suspended == new.is_suspended
                });
            if is_same {
                continue;
            }
            done.push((Arc::clone(record), before.clone()));
            if let Err(text) = self.set_modules(record, stream, before, &definition.modules) {
                failure = Some(problem(definition, text));
                break;
            }
        }
        if let Some(mut error) = failure {
            for (record, before) in done.iter().rev() {
                if let Object::Stream(stream) = &record.object
                    && let Err(text) = self.set_modules(record, stream, &record.definition.modules, before)
                    && let ConfigureError::Directives(problems) = &mut error
                {
                    problems[0].text.push_str(&format!("; `{}` cannot have its former modules: {text}", record.name()));
                }
            }
            self.unlink_all(started, changes);
            if let ConfigureError::Directives(problems) = &mut error {
                self.restart(stopped, &mut problems[0].text);
            }
            return Err(error);
        }
        changes.streams = done.iter().map(|(record, _)| record.name().to_owned()).collect();
        Ok(done.into_iter().map(|(record, _)| record).collect())
    }

    /// Gives a stream its modules: from those of one list, as far as they are there, to those of another.
    fn set_modules(
        &mut self,
        record: &Record,
        stream: &Arc<dyn StreamObject>,
        before: &[ModuleDefinition],
        after: &[ModuleDefinition],
    ) -> Result<(), String> {
        let stays = |name: &str| {
            let old = before.iter().find(|module| module.name == name);
            old.zip(after.iter().find(|module| module.name == name)).is_some_and(|(old, new)| old.is_same_module(new))
        };
        for name in stream.modules() {
            if before.iter().any(|module| module.name == name) && !stays(&name) {
                self.call_stream(stream, "remove", {
                    let name = name.clone();
                    move |stream| stream.remove_module(&name)
                })?;
                let mut libraries = record.module_libraries.lock();
                for (_, library) in libraries.extract_if(.., |(module, _)| *module == name) {
                    self.shared.repository.keep_library(library.usage());
                }
            }
        }
        let mut above: Option<String> = None;
        for module in after {
            let (name, present) = (module.name.clone(), stream.modules());
            if !present.contains(&name) {
                let is_it = |made: &(String, String, MadeModule)| made.0 == record.name() && made.1 == name;
                let MadeModule { module: made, library } = match self.made_modules.iter().position(is_it) {
                    Some(at) => self.made_modules.swap_remove(at).2,
                    None => self.make_module(module)?,
                };
                let (place, arguments) = (above.clone(), arguments(&module.parameters));
                let process = self.process();
                self.call_stream(stream, "init", {
                    let name = name.clone();
                    move |stream| {
                        let context = ServiceContext::new(&name, &process);
                        stream.insert_module(&context, place.as_deref(), made, &arguments)
                    }
                })
                .map_err(|text| format!("the module `{name}`: {text}"))?;
                record.module_libraries.lock().extend(library.map(|library| (name.clone(), library)));
            }
            let was_suspended =
                before.iter().any(|old| old.name == module.name && old.is_suspended && present.contains(&name));
            if module.is_suspended != was_suspended {
                let (name, is_suspended) = (name.clone(), module.is_suspended);
                self.call_stream(stream, "suspend", move |stream| stream.set_module_suspended(&name, is_suspended))?;
            }
            above = Some(name);
        }
        Ok(())
    }

    fn call_stream(
        &self,
        stream: &Arc<dyn StreamObject>,
        method: &str,
        act: impl FnOnce(&dyn StreamObject) -> crate::ServiceResult + Send + 'static,
    ) -> Result<(), String> {
        let stream = Arc::clone(stream);
        call_simply("stream", method, self.shared.call_timeout, move || act(&*stream))
            .map_err(|error| error.to_string())
    }

    /// Publishes the services, in the order of their definitions.
    fn commit(
        &mut self,
        desired: &[Definition],
        kept: &[Arc<Record>],
        started: &mut Vec<Arc<Record>>,
        changed_streams: Vec<Arc<Record>>,
        changes: &mut Changes,
    ) {
        let mut records = Vec::new();
        for definition in desired {
            if let Some(at) = started.iter().position(|record| record.name() == definition.name) {
                let record = started.remove(at);
                if !changes.replaced.contains(&definition.name) {
                    changes.added.push(definition.name.clone());
                }
                records.push(record);
                continue;
            }
            let Some(record) = kept.iter().find(|record| record.name() == definition.name) else { continue };
            if definition.is_suspended != record.is_suspended() {
                let outcome = if definition.is_suspended { self.suspend(record) } else { self.resume(record) };
                match outcome {
                    Ok(_) if definition.is_suspended => changes.suspended.push(definition.name.clone()),
                    Ok(_) => changes.resumed.push(definition.name.clone()),
                    Err(text) => changes.warnings.push(format!("the service `{}`: {text}", definition.name)),
                }
            }
            let is_changed = changed_streams.iter().any(|other| Arc::ptr_eq(other, record));
            let is_same = !is_changed
                && definition.is_of_files == record.definition.is_of_files
                && definition.origin == record.definition.origin;
            records.push(if is_same {
                Arc::clone(record)
            } else {
                Arc::new(Record {
                    definition: definition.clone(),
                    object: record.object.clone(),
                    handlers: record.handlers.clone(),
                    dependencies: record.dependencies.clone(),
                    is_suspended: AtomicBool::new(record.is_suspended()),
                    library: record.library.clone(),
                    module_libraries: Mutex::new(record.module_libraries.lock().clone()),
                })
            });
        }
        self.shared.repository.set_records(records);
    }

    /// Calls a factory. `library` is the mapped library of a service that is linked again.
    fn make(
        &mut self,
        definition: &Definition,
        library: Option<Arc<Library>>,
    ) -> Result<(Object, Option<Arc<Library>>), String> {
        match &definition.source {
            Source::PlainStream => {
                let streams = self.shared.streams.as_ref().ok_or("this program has no streams")?;
                Ok((Object::Stream(streams.make_stream(&definition.name)), None))
            }
            Source::Program(name) => match self.shared.catalogue.find(name) {
                Some(Factory::Service(make)) => Ok((Object::Service(make()), None)),
                Some(Factory::Stream(make)) => Ok((Object::Stream(make()), None)),
                _ => Err(format!("the program contains no service `{name}`")),
            },
            Source::Library { file, stamp, location } => {
                let library = match library {
                    Some(library) => library,
                    None => self.state.libraries.open(file, stamp)?,
                };
                match make(&library, location)? {
                    ForeignFactory::Service(make) if definition.kind == ServiceKind::ServiceObject => {
                        Ok((Object::Service(Arc::new(make)), Some(library)))
                    }
                    made => {
                        Err(format!("{location} makes a {}, no {}", made.kind().keyword(), definition.kind.keyword()))
                    }
                }
            }
        }
    }

    fn make_module(&mut self, definition: &ModuleDefinition) -> Result<MadeModule, String> {
        match &definition.source {
            Source::Program(name) => match self.shared.catalogue.find(name) {
                Some(Factory::Module(make)) => Ok(MadeModule { module: make(), library: None }),
                _ => Err(format!("the program contains no module `{name}`")),
            },
            Source::Library { file, stamp, location } => {
                let streams = self.shared.streams.clone().ok_or("this program has no streams")?;
                let library = self.state.libraries.open(file, stamp)?;
                match make(&library, location)? {
                    ForeignFactory::Module(module) => Ok(MadeModule {
                        module: streams.make_foreign_module(&definition.name, module),
                        library: Some(library),
                    }),
                    made => Err(format!("{location} makes a {}, no Module", made.kind().keyword())),
                }
            }
            Source::PlainStream => Err("a stream is no module".to_owned()),
        }
    }

    /// Makes a service and initializes it. It is suspended then.
    fn link(&mut self, definition: &Definition) -> Result<Arc<Record>, String> {
        self.link_with(definition, None)
    }

    fn link_with(&mut self, definition: &Definition, library: Option<Arc<Library>>) -> Result<Arc<Record>, String> {
        let made = self.made.iter().position(|(name, ..)| *name == definition.name).filter(|_| library.is_none());
        let (object, library) = match made {
            Some(at) => {
                let (_, object, library) = self.made.swap_remove(at);
                (object, library)
            }
            None => self.make(definition, library)?,
        };
        let (handlers, dependencies) = self.initialize(definition, &object)?;
        let record = Arc::new(Record {
            definition: definition.clone(),
            object,
            handlers,
            dependencies,
            is_suspended: AtomicBool::new(true),
            library,
            module_libraries: Mutex::new(Vec::new()),
        });
        if let Object::Stream(stream) = &record.object
            && let Err(text) = self.set_modules(&record, stream, &[], &definition.modules)
        {
            self.unlink(&record, &mut Changes::default());
            return Err(text);
        }
        self.linked.push(Arc::clone(&record));
        Ok(record)
    }

    fn process(&self) -> ThisProcess {
        ThisProcess {
            registry: self.shared.registry.clone(),
            records: self.linked.clone(),
            found: Mutex::new(Vec::new()),
        }
    }

    /// Calls `init`; returns the handlers that were registered, and the services that were found.
    fn initialize(&self, definition: &Definition, object: &Object) -> Result<(Vec<HandlerId>, Vec<String>), String> {
        let (service, name) = (object.service(), definition.name.clone());
        let process = self.process();
        let arguments = arguments(&definition.parameters);
        let (late_service, late_registry) = (Arc::clone(&service), self.shared.registry.clone());
        let init = move || {
            let held = process.registry.hold_registrations();
            let remove = |handlers: Vec<HandlerId>| {
                for handler in handlers {
                    process.registry.remove(handler);
                }
            };
            let initialized = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                service.init(&ServiceContext::new(&name, &process), &arguments)
            }));
            let handlers = held.end();
            match initialized {
                Ok(Ok(())) => Ok((handlers, std::mem::take(&mut *process.found.lock()))),
                Ok(Err(error)) => {
                    remove(handlers);
                    Err(error)
                }
                Err(panic) => {
                    remove(handlers);
                    std::panic::resume_unwind(panic)
                }
            }
        };
        // A service that is initialized too late is not wanted any more.
        let late = move |(handlers, _): (Vec<HandlerId>, _)| {
            _ = late_service.fini();
            for handler in handlers {
                late_registry.remove(handler);
            }
        };
        call(&definition.name, "init", self.shared.call_timeout, init, late).map_err(|error| error.to_string())
    }

    /// Stops the handlers of a service. False if it was suspended before.
    pub(crate) fn suspend(&self, record: &Record) -> Result<bool, String> {
        if record.is_suspended.swap(true, Ordering::SeqCst) {
            return Ok(false);
        }
        for handler in &record.handlers {
            self.shared.registry.suspend(*handler);
        }
        let service = record.object.service();
        let suspend = move || service.suspend();
        call_simply(record.name(), "suspend", self.shared.call_timeout, suspend).map_err(|error| error.to_string())?;
        Ok(true)
    }

    /// Lets the handlers of a service wait for their handles. False if it ran before.
    pub(crate) fn resume(&self, record: &Record) -> Result<bool, String> {
        if !record.is_suspended() {
            return Ok(false);
        }
        let service = record.object.service();
        let resume = move || service.resume();
        call_simply(record.name(), "resume", self.shared.call_timeout, resume).map_err(|error| error.to_string())?;
        record.is_suspended.store(false, Ordering::SeqCst);
        for handler in &record.handlers {
            self.shared.registry.resume(*handler);
        }
        Ok(true)
    }

    fn unlink_all(&mut self, records: &[Arc<Record>], changes: &mut Changes) {
        for record in records.iter().rev() {
            self.unlink(record, changes);
        }
    }

    /// Finalizes a service. Its object and its library go when the last reference to them does.
    fn unlink(&mut self, record: &Arc<Record>, changes: &mut Changes) {
        self.linked.retain(|other| !Arc::ptr_eq(other, record));
        let was_suspended = record.is_suspended();
        let mut warn = |text: String| {
            let text = format!("the service `{}`: {text}", record.name());
            tracing::warn!("{text}");
            changes.warnings.push(text);
        };
        if let Err(text) = self.suspend(record) {
            warn(text);
        }
        // So that a service that is linked again after a failure gets its former state.
        record.is_suspended.store(was_suspended, Ordering::SeqCst);
        let service = record.object.service();
        let fini = move || service.fini();
        if let Err(error) = call_simply(record.name(), "fini", self.shared.call_timeout, fini) {
            warn(error.to_string());
        }
        for handler in &record.handlers {
            self.shared.registry.remove(*handler);
        }
        for library in record.libraries() {
            self.shared.repository.keep_library(library);
        }
    }
}

/// Whether a service has found one of the others.
fn depends_on(record: &Record, others: &[Arc<Record>]) -> bool {
    record.dependencies.iter().any(|name| others.iter().any(|other| other.name() == name))
}

fn problem(definition: &Definition, text: String) -> ConfigureError {
    let text = format!("the service `{}`: {text}", definition.name);
    ConfigureError::Directives(vec![Problem { origin: definition.origin.clone(), text }])
}
