//! The results that the runner of each test program passes on to the task, which starts all of them through Cargo.

use std::env;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// The kind of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryKind {
    /// The number of tests that passed in a program.
    Passed,
    /// The name of a program that failed.
    Failed,
    /// A line for the user.
    Note,
}

impl EntryKind {
    const ALL: [(Self, &str); 3] = [(Self::Passed, "passed"), (Self::Failed, "failed"), (Self::Note, "note")];

    fn word(self) -> &'static str {
        Self::ALL.iter().find(|(kind, _)| *kind == self).map_or("note", |(_, word)| word)
    }
}

/// One result of a program: a line with a package, a word for the kind, and a text, separated by tabs.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) package: String,
    pub(crate) kind: EntryKind,
    pub(crate) text: String,
}

impl Entry {
    fn parse(line: &str) -> Option<Self> {
        let mut fields = line.splitn(3, '\t');
        let (package, word, text) = (fields.next()?, fields.next()?, fields.next()?);
        let (kind, _) = EntryKind::ALL.into_iter().find(|(_, other)| *other == word)?;
        Some(Self { package: package.to_owned(), kind, text: text.to_owned() })
    }
}

/// The file, for the task that reads it.
#[derive(Debug)]
pub(crate) struct Report {
    path: PathBuf,
}

impl Report {
    /// The environment variable that names the file to which results are appended.
    pub(crate) const VARIABLE: &str = "SPANDREL_WINE_REPORT";

    pub(crate) fn new(folder: &Path) -> Self {
        Self { path: folder.join("report") }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn clear(&self) -> Result<()> {
        fs::write(&self.path, "").with_context(|| self.path.display().to_string())
    }

    /// All results; an error for a line without the form of one.
    pub(crate) fn entries(&self) -> Result<Vec<Entry>> {
        let text = fs::read_to_string(&self.path).with_context(|| self.path.display().to_string())?;
        text.lines().map(|line| Entry::parse(line).with_context(|| format!("a malformed result: {line}"))).collect()
    }
}

/// Appends a result to the file of the task, if there is one.
pub(crate) fn add(package: &str, kind: EntryKind, text: &str) -> Result<()> {
    let Some(path) = env::var_os(Report::VARIABLE) else { return Ok(()) };
    let mut file = OpenOptions::new().append(true).create(true).open(path)?;
    Ok(writeln!(file, "{package}\t{}\t{text}", kind.word())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_has_a_package_a_kind_and_a_text() {
        let entry = Entry::parse("spandrel-ipc\tnote\tknown Wine fault: a\tb").unwrap();
        assert_eq!((entry.package.as_str(), entry.kind), ("spandrel-ipc", EntryKind::Note));
        assert_eq!(entry.text, "known Wine fault: a\tb");
        assert!(EntryKind::ALL.iter().all(|(kind, word)| kind.word() == *word));
        assert_eq!(Entry::parse("spandrel-ipc\tperhaps\t7"), None);
        assert_eq!(Entry::parse("spandrel-ipc passed 7"), None);
    }
}
