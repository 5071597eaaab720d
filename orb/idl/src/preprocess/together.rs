//! Several files as one specification.
//!
//! The main file includes each of them. Each is preprocessed as if it were compiled alone: macros and `#pragma
//! once` end with it. The definitions of a file that an earlier one has included are dropped, while its
//! directives are obeyed.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::{EventKind, Preprocessor};
use crate::source::FileId;
use crate::token::Token;

/// The path of the main file.
pub(crate) const PATH: &str = "<files of one build>";

/// The text of the main file.
pub(crate) fn main_text(files: &[&Path]) -> String {
    files.iter().map(|file| format!("#include \"{}\"\n", file.display())).collect()
}

/// The files read so far.
#[derive(Debug, Default)]
pub(super) struct Together {
    /// Those that earlier files of the main file have included, and these themselves.
    earlier: HashSet<PathBuf>,
    /// Those of the current file of the main file.
    current: Vec<PathBuf>,
    /// Those whose definitions are dropped.
    repeated: HashSet<FileId>,
}

impl Together {
    /// For the main file at `path`, if that is the one of this module.
    pub(super) fn of_main(path: &Path) -> Option<Self> {
        (path == Path::new(PATH)).then(Self::default)
    }

    pub(super) fn open(&mut self, file: FileId, path: &Path) {
        if self.earlier.contains(path) {
            self.repeated.insert(file);
        } else {
            self.current.push(path.to_owned());
        }
    }
}

impl Preprocessor<'_> {
    /// Whether a token belongs to a definition that exists already.
    pub(super) fn is_repeated(&self, token: &Token) -> bool {
        self.together.as_ref().is_some_and(|together| together.repeated.contains(&token.span.file))
    }

    /// Whether an event belongs to a definition that exists already.
    pub(super) fn is_repeated_event(&self, kind: &EventKind) -> bool {
        let names_definition = matches!(kind, EventKind::Id { .. } | EventKind::Version { .. });
        let file = self.files.last().map(|file| file.file);
        let repeated = |file| self.together.as_ref().is_some_and(|together| together.repeated.contains(&file));
        names_definition && file.is_some_and(repeated)
    }

    /// Forgets what a file leaves behind, once only the main file is open.
    pub(super) fn end_file_of_build(&mut self) {
        let Some(together) = self.together.as_mut().filter(|_| self.files.len() == 1) else {
            return;
        };
        together.earlier.extend(together.current.drain(..));
        self.macros.clear();
        self.once.clear();
        self.predefine();
    }
}
