//! From directives to the services that shall run.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::catalogue::Catalogue;
use crate::plugin::{FileStamp, find_library};
use crate::svc_conf::{Directive, DirectiveKind, Dynamic, Location, Origin, Static, StreamDirective, StreamHead};
use crate::{ConfigureError, Problem, ServiceKind};

/// A service that shall run.
#[derive(Clone, Debug)]
pub(crate) struct Definition {
    pub(crate) name: String,
    pub(crate) kind: ServiceKind,
    pub(crate) source: Source,
    pub(crate) parameters: String,
    pub(crate) is_suspended: bool,
    /// The modules of a stream, from the head to the tail.
    pub(crate) modules: Vec<ModuleDefinition>,
    /// Whether files define it; otherwise a command does, and files do not remove it.
    pub(crate) is_of_files: bool,
    pub(crate) origin: Origin,
}

#[derive(Clone, Debug)]
pub(crate) struct ModuleDefinition {
    pub(crate) name: String,
    pub(crate) source: Source,
    pub(crate) parameters: String,
    pub(crate) is_suspended: bool,
    pub(crate) origin: Origin,
}

/// The factory of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// Of the program, by its name in the catalogue.
    Program(String),
    /// A stream without a factory.
    PlainStream,
    /// Of a shared library.
    Library { file: PathBuf, stamp: FileStamp, location: Location },
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program(_) | Self::PlainStream => f.write_str("static"),
            Self::Library { file, location, .. } => {
                let parentheses = if location.is_function { "()" } else { "" };
                write!(f, "{}:{}{parentheses}", file.display(), location.symbol)
            }
        }
    }
}

impl Definition {
    /// Whether a service with the one definition need not be replaced for the other.
    pub(crate) fn is_same_service(&self, other: &Self) -> bool {
        self.kind == other.kind && self.source == other.source && self.parameters == other.parameters
    }
}

impl ModuleDefinition {
    pub(crate) fn is_same_module(&self, other: &Self) -> bool {
        self.source == other.source && self.parameters == other.parameters
    }
}

/// Applies directives to a list of services that shall run. All problems are reported.
pub(crate) struct Planner<'a> {
    pub(crate) catalogue: &'a Catalogue,
    /// Folders of libraries, after that of the directive's file.
    pub(crate) folders: &'a [PathBuf],
    pub(crate) is_of_files: bool,
    pub(crate) definitions: Vec<Definition>,
    pub(crate) problems: Vec<Problem>,
}

impl Planner<'_> {
    pub(crate) fn apply(&mut self, directives: &[Directive]) {
        for directive in directives {
            if let Err(text) = self.apply_one(directive) {
                self.problems.push(Problem { origin: directive.origin.clone(), text });
            }
        }
    }

    pub(crate) fn end(self) -> Result<Vec<Definition>, ConfigureError> {
        if self.problems.is_empty() { Ok(self.definitions) } else { Err(ConfigureError::Directives(self.problems)) }
    }

    fn apply_one(&mut self, directive: &Directive) -> Result<(), String> {
        let origin = &directive.origin;
        match &directive.kind {
            DirectiveKind::Dynamic(dynamic) => {
                if dynamic.kind == ServiceKind::Module {
                    return Err(format!("the module `{}` belongs between the braces of a `stream`", dynamic.name));
                }
                let definition = self.dynamic(dynamic, origin)?;
                self.put(definition);
            }
            DirectiveKind::Static(found) => {
                let definition = self.fixed(found, origin)?;
                if definition.kind == ServiceKind::Module {
                    return Err(format!("the module `{}` belongs between the braces of a `stream`", found.name));
                }
                self.put(definition);
            }
            DirectiveKind::Suspend(name) => self.of_name(name)?.is_suspended = true,
            DirectiveKind::Resume(name) => self.of_name(name)?.is_suspended = false,
            DirectiveKind::Remove(name) => {
                self.of_name(name)?;
                self.definitions.retain(|definition| definition.name != *name);
            }
            DirectiveKind::Stream(stream) => self.stream(stream, origin)?,
        }
        Ok(())
    }

    fn of_name(&mut self, name: &str) -> Result<&mut Definition, String> {
        let names: Vec<String> = self.definitions.iter().map(|definition| definition.name.clone()).collect();
        let found = self.definitions.iter_mut().find(|definition| definition.name == name);
        found.ok_or_else(|| format!("there is no service `{name}`{}", alternatives("the services are", &names)))
    }

    /// A definition takes the place of an earlier one.
    fn put(&mut self, definition: Definition) {
        match self.definitions.iter_mut().find(|other| other.name == definition.name) {
            Some(other) => *other = definition,
            None => self.definitions.push(definition),
        }
    }

    fn dynamic(&self, dynamic: &Dynamic, origin: &Origin) -> Result<Definition, String> {
        Ok(Definition {
            name: dynamic.name.clone(),
            kind: dynamic.kind,
            source: self.source(&dynamic.location, dynamic.kind, origin)?,
            parameters: dynamic.parameters.clone(),
            is_suspended: !dynamic.is_active,
            modules: Vec::new(),
            is_of_files: self.is_of_files,
            origin: origin.clone(),
        })
    }

    fn source(&self, location: &Location, kind: ServiceKind, origin: &Origin) -> Result<Source, String> {
        if let Some(name) = self.catalogue.of_function(&location.symbol, location.library.is_some()) {
            return self.of_program(name, kind);
        }
        let Some(library) = &location.library else {
            return Err(format!("the program has no factory `{}()`", location.symbol));
        };
        let folder = origin.file.parent().unwrap_or(Path::new(""));
        let (file, stamp) = find_library(library, folder, self.folders)?;
        Ok(Source::Library { file, stamp, location: location.clone() })
    }

    fn of_program(&self, name: &str, kind: ServiceKind) -> Result<Source, String> {
        match self.catalogue.find(name) {
            Some(factory) if factory.kind() == kind => Ok(Source::Program(name.to_owned())),
            Some(factory) => Err(format!("`{name}` is a {}, no {}", factory.kind().keyword(), kind.keyword())),
            None => Err(self.unknown(name)),
        }
    }

    fn unknown(&self, name: &str) -> String {
        let names: Vec<String> = self.catalogue.names().map(str::to_owned).collect();
        format!("the program contains no service `{name}`{}", alternatives("it contains", &names))
    }

    fn fixed(&self, found: &Static, origin: &Origin) -> Result<Definition, String> {
        let factory = self.catalogue.find(&found.name).ok_or_else(|| self.unknown(&found.name))?;
        Ok(Definition {
            name: found.name.clone(),
            kind: factory.kind(),
            source: Source::Program(found.name.clone()),
            parameters: found.parameters.clone(),
            is_suspended: false,
            modules: Vec::new(),
            is_of_files: self.is_of_files,
            origin: origin.clone(),
        })
    }

    fn stream(&mut self, stream: &StreamDirective, origin: &Origin) -> Result<(), String> {
        let mut definition = match &stream.head {
            StreamHead::Dynamic(dynamic) => self.dynamic(dynamic, origin)?,
            StreamHead::Static(found) if self.catalogue.find(&found.name).is_some() => self.fixed(found, origin)?,
            StreamHead::Static(found) => Definition {
                name: found.name.clone(),
                kind: ServiceKind::Stream,
                source: Source::PlainStream,
                parameters: found.parameters.clone(),
                is_suspended: false,
                modules: Vec::new(),
                is_of_files: self.is_of_files,
                origin: origin.clone(),
            },
            StreamHead::Existing(name) => self.of_name(name)?.clone(),
        };
        if definition.kind != ServiceKind::Stream {
            return Err(format!("`{}` is a {}, no STREAM", definition.name, definition.kind.keyword()));
        }
        for directive in &stream.modules {
            if let Err(text) = self.module(&mut definition, directive) {
                self.problems.push(Problem { origin: directive.origin.clone(), text });
            }
        }
        self.put(definition);
        Ok(())
    }

    fn module(&self, stream: &mut Definition, directive: &Directive) -> Result<(), String> {
        let names: Vec<String> = stream.modules.iter().map(|module| module.name.clone()).collect();
        let position = |name: &str| {
            names.iter().position(|other| other == name).ok_or_else(|| {
                let others = alternatives("its modules are", &names);
                format!("there is no module `{name}` in the stream `{}`{others}", stream.name)
            })
        };
        let (name, source, parameters, is_suspended) = match &directive.kind {
            DirectiveKind::Dynamic(dynamic) if dynamic.kind == ServiceKind::Module => {
                let source = self.source(&dynamic.location, ServiceKind::Module, &directive.origin)?;
                (&dynamic.name, source, &dynamic.parameters, !dynamic.is_active)
            }
            DirectiveKind::Dynamic(dynamic) => {
                return Err(format!("`{}` is a {}, no Module", dynamic.name, dynamic.kind.keyword()));
            }
            DirectiveKind::Static(found) => {
                (&found.name, self.of_program(&found.name, ServiceKind::Module)?, &found.parameters, false)
            }
            DirectiveKind::Suspend(name) => {
                let at = position(name)?;
                stream.modules[at].is_suspended = true;
                return Ok(());
            }
            DirectiveKind::Resume(name) => {
                let at = position(name)?;
                stream.modules[at].is_suspended = false;
                return Ok(());
            }
            DirectiveKind::Remove(name) => {
                let at = position(name)?;
                stream.modules.remove(at);
                return Ok(());
            }
            DirectiveKind::Stream(_) => return Err("a stream cannot contain a stream".to_owned()),
        };
        let module = ModuleDefinition {
            name: name.clone(),
            source,
            parameters: parameters.clone(),
            is_suspended,
            origin: directive.origin.clone(),
        };
        match names.iter().position(|other| other == name) {
            Some(at) => stream.modules[at] = module,
            None => stream.modules.insert(0, module), // pushed below the head
        }
        Ok(())
    }
}

fn alternatives(introduction: &str, names: &[String]) -> String {
    if names.is_empty() {
        return String::new();
    }
    let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    format!("; {introduction} {}", names.join(", "))
}
