//! The directives of `svc.conf`, as values.

use std::fmt;
use std::path::PathBuf;

/// A place in a file. Lines and columns (in characters) count from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// The line, from 1 on.
    pub line: u32,
    /// The column in characters, from 1 on.
    pub column: u32,
}

/// A directive and the place where it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directive {
    /// The change that it asks for, with its operands.
    pub kind: DirectiveKind,
    /// The place of its first word.
    pub origin: Origin,
}

/// The file, the line and the column at which a directive begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The file; empty for a directive that came from elsewhere, such as the command line.
    pub file: PathBuf,
    /// The line and the column in the file.
    pub position: Position,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Position { line, column } = self.position;
        if self.file.as_os_str().is_empty() {
            return write!(f, "directive, column {column}");
        }
        write!(f, "{}:{line}:{column}", self.file.display())
    }
}

/// The content of a directive of ACE's language (`Svc_Conf.y` of ACE).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DirectiveKind {
    /// `dynamic NAME TYPE * LIBRARY:FACTORY() [active|inactive] ["PARAMETERS"]`: links a service and initializes it.
    Dynamic(Dynamic),
    /// `static NAME ["PARAMETERS"]`: initializes a service that the program contains.
    Static(Static),
    /// `suspend NAME`, of a running service.
    Suspend(String),
    /// `resume NAME`, of a suspended service.
    Resume(String),
    /// `remove NAME`: finalizes a service and unlinks it.
    Remove(String),
    /// `stream …`: a stream and its modules.
    Stream(StreamDirective),
}

/// A service of a shared library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dynamic {
    /// The name of the service in this process.
    pub name: String,
    /// Service, module or stream.
    pub kind: ServiceKind,
    /// The function or variable that makes it, and its library.
    pub location: Location,
    /// Whether it runs at once; suspended otherwise.
    pub is_active: bool,
    /// The parameters in one text, empty without any.
    pub parameters: String,
}

/// A service that the program contains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Static {
    /// The name under which the program offers it.
    pub name: String,
    /// The parameters in one text, empty without any.
    pub parameters: String,
}

/// The kind that a directive states for its service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServiceKind {
    /// `Service_Object`: a service of its own.
    ServiceObject,
    /// `Module`: a layer of a stream.
    Module,
    /// `STREAM`: modules on top of each other.
    Stream,
}

impl ServiceKind {
    /// The keyword in a directive, e.g. `Service_Object`.
    #[must_use]
    pub fn keyword(self) -> &'static str {
        match self {
            Self::ServiceObject => "Service_Object",
            Self::Module => "Module",
            Self::Stream => "STREAM",
        }
    }
}

/// The library and the symbol of a factory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The library, with or without the prefix and the extension of the system's libraries; `None` for the program
    /// itself.
    pub library: Option<String>,
    /// The name of the function, or of the variable.
    pub symbol: String,
    /// Whether it is a function, written with `()`.
    pub is_function: bool,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parentheses = if self.is_function { "()" } else { "" };
        write!(f, "{}:{}{parentheses}", self.library.as_deref().unwrap_or_default(), self.symbol)
    }
}

/// A stream and changes of its modules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamDirective {
    /// The stream that the directives concern.
    pub head: StreamHead,
    /// The directives between the braces: `dynamic` and `static` push a module below the head, the others are for a
    /// module of that name.
    pub modules: Vec<Directive>,
}

/// The stream that a [`StreamDirective`] makes or changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamHead {
    /// A new stream of a shared library.
    Dynamic(Dynamic),
    /// A new stream that the program contains.
    Static(Static),
    /// A stream that exists.
    Existing(String),
}

impl StreamHead {
    /// The name by which further directives refer to the stream.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Dynamic(dynamic) => &dynamic.name,
            Self::Static(directive) => &directive.name,
            Self::Existing(name) => name,
        }
    }
}
