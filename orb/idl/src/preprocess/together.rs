//! Several files as one specification.
//!
//! The main file includes each of them. Each is preprocessed as if it were compiled alone: macros and `#pragma
//! once` end with it. The definitions of a file that an earlier one has included are dropped, while its
//! directives are obeyed.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::source::FileId;

/// The path of the main file.
pub(crate) const PATH: &str = "<files of one build>";

/// The text of a main file that includes these files in their order.
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

    /// Whether the definitions of a file exist already.
    pub(super) fn is_repeated(&self, file: FileId) -> bool {
        self.repeated.contains(&file)
    }

    /// Ends a file of the main file.
    pub(super) fn end_file(&mut self) {
        self.earlier.extend(self.current.drain(..));
    }
}
