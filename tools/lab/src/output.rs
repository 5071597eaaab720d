//! Folders into which experiments write results.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::LabError;

/// The default output folder: below a build folder if the current directory has one, which is where generated
/// files belong in a source tree, otherwise in the current directory under a descriptive name.
#[must_use]
pub fn default_directory(experiment: &str) -> PathBuf {
    if Path::new("Cargo.toml").is_file() {
        Path::new("target").join(experiment)
    } else {
        PathBuf::from(format!("spandrel-{experiment}"))
    }
}

/// A folder of results, created when needed.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    files: Vec<PathBuf>,
}

impl Directory {
    /// Creates the folder with its parents, if it does not exist.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn create(path: &Path) -> Result<Self, LabError> {
        fs::create_dir_all(path).map_err(|cause| LabError::Write { path: path.to_owned(), cause })?;
        Ok(Self { path: path.to_owned(), files: Vec::new() })
    }

    /// Writes a file into it, or over an earlier one.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&mut self, name: &str, content: &str) -> Result<(), LabError> {
        let path = self.path.join(name);
        fs::write(&path, content).map_err(|cause| LabError::Write { path: path.clone(), cause })?;
        self.files.push(path);
        Ok(())
    }

    /// Writes a value as indented JSON with a line end.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write_json(&mut self, name: &str, value: &impl Serialize) -> Result<(), LabError> {
        let not_json = |cause: serde_json::Error| LabError::Write { path: self.path.join(name), cause: cause.into() };
        let text = serde_json::to_string_pretty(value).map_err(not_json)?;
        self.write(name, &(text + "\n"))
    }

    /// The folder as it was named.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The files written so far, in order.
    #[must_use]
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }
}
