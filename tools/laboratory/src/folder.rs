//! Folders of results: a file for each point, written whole or not at all.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use spandrel_lab::machine::Machine;

use crate::point::Point;
use crate::series::{Measured, Series};

/// The format of the files; other ones are refused.
const FORMAT: &str = "spandrel-lab point 1";
/// The format of files about failures.
const FAILURE_FORMAT: &str = "spandrel-lab failure 1";
/// The longest file that is read.
const MAX_OCTETS: u64 = 16 << 20;
/// The most files of a folder.
const MAX_FILES: usize = 10_000;
/// The end of the name of a file that is not complete.
const UNFINISHED: &str = ".unfinished";
/// The end of the name of a file that tells why a point failed.
const FAILED: &str = ".failed";

/// The choice between the papers' parameters and a few short runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// The parameters of the papers, within the bounds of time.
    Full,
    /// Two rounds with few calls and octets: for tests.
    Short,
}

/// The measurement of one point, as its file has it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PointResult {
    /// The format of the file.
    format: String,
    /// The point that was measured, with its parameters.
    pub point: Point,
    /// The choice between the papers' parameters and a few short runs.
    pub form: Form,
    /// The machine and program of the measurement.
    pub machine: Machine,
    /// The end of the measurement, in seconds since 1970 (UTC).
    pub ended: u64,
    /// The duration of the measurement in seconds.
    pub seconds: f64,
    /// The way in which a bound of time has cut the measurement; absent if it is complete.
    pub cut: Option<String>,
    /// Contenders that were not measured, each with the reason.
    pub absent: Vec<(String, String)>,
    /// The values of all contenders, by round.
    pub series: Vec<Series>,
}

/// The last attempt to measure a point, which failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FailedPoint {
    format: String,
    point: Point,
    /// The end of the attempt, in seconds since 1970 (UTC).
    ended: u64,
    /// The error of the experiment in one line.
    reason: String,
}

/// A folder that cannot be used.
#[derive(Debug)]
pub enum FolderError {
    /// A call of the operating system failed.
    Io {
        /// The attempted action, in words that follow "cannot".
        action: String,
        /// The reason of the system.
        cause: io::Error,
    },
    /// A file is not a result of this program.
    File {
        /// The file that is refused.
        path: PathBuf,
        /// The reason in one line.
        reason: String,
    },
}

impl std::fmt::Display for FolderError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Io { action, cause } => write!(f, "cannot {action}: {cause}"),
            Self::File { path, reason } => {
                write!(f, "cannot use {}: {reason}; remove it, or name another folder", path.display())
            }
        }
    }
}

impl std::error::Error for FolderError {}

/// The results and failures that lie in a folder, by the points of the inventory.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    results: BTreeMap<String, PointResult>,
    failures: BTreeMap<String, FailedPoint>,
}

impl Folder {
    /// Opens a folder with results, and checks all of its files.
    ///
    /// # Errors
    /// If the folder does not exist, or has a file that is damaged or not a result of this program.
    pub fn open(path: &Path) -> Result<Self, FolderError> {
        let io = |cause| FolderError::Io { action: format!("read the folder {}", path.display()), cause };
        let (mut results, mut failures) = (BTreeMap::new(), BTreeMap::new());
        let entries = fs::read_dir(path).map_err(io)?;
        for (number, entry) in entries.enumerate() {
            let file = entry.map_err(io)?.path();
            let refuse = |reason: &str| Err(FolderError::File { path: file.clone(), reason: reason.to_owned() });
            if number >= MAX_FILES {
                return refuse("the folder has too many files");
            }
            let Some(name) = file.file_name().and_then(|name| name.to_str()) else {
                return refuse("its name is not a point's");
            };
            if name.ends_with(UNFINISHED) {
                continue; // a run was killed while it wrote this file
            }
            if name.ends_with(FAILED) {
                let failure = FailedPoint::read(&file)?;
                if failure_name(&failure.point) != name {
                    return refuse("its name is not that of its point");
                }
                failures.insert(failure.point.to_string(), failure);
                continue;
            }
            let result = PointResult::read(&file)?;
            if result.point.file_name() != name {
                return refuse("its name is not that of its point");
            }
            results.insert(result.point.to_string(), result);
        }
        // A run was killed between a result and the removal of the failure before it.
        failures.retain(|point, _| !results.contains_key(point));
        Ok(Self { path: path.to_owned(), results, failures })
    }

    /// Creates the folder if needed, and opens it for a run of this form.
    ///
    /// # Errors
    /// As [`open`](Self::open), and if results of another form are there.
    pub fn create(path: &Path, form: Form) -> Result<Self, FolderError> {
        let io = |cause| FolderError::Io { action: format!("create the folder {}", path.display()), cause };
        fs::create_dir_all(path).map_err(io)?;
        let folder = Self::open(path)?;
        match folder.results.values().find(|result| result.form != form) {
            Some(other) => Err(FolderError::File {
                path: path.join(other.point.file_name()),
                reason: "it is of a run in the other form (--short or not)".to_owned(),
            }),
            None => Ok(folder),
        }
    }

    /// The results of a point; `None` if it was not measured, or failed.
    #[must_use]
    pub fn result(&self, point: &Point) -> Option<&PointResult> {
        self.results.get(&point.to_string())
    }

    /// All results in the order of their names.
    pub fn results(&self) -> impl Iterator<Item = &PointResult> {
        self.results.values()
    }

    /// The folder as it was named.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The reason why the last attempt to measure a point failed, if it did.
    #[must_use]
    pub fn failure(&self, point: &Point) -> Option<&str> {
        self.failures.get(&point.to_string()).map(|failure| failure.reason.as_str())
    }

    /// Adds a result: the file appears with its whole content, and a failure of the point is removed.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn add(&mut self, result: PointResult) -> Result<(), FolderError> {
        let name = result.point.to_string();
        self.write(&result.point.file_name(), &result)?;
        if self.failures.remove(&name).is_some() {
            let file = self.path.join(failure_name(&result.point));
            let io = |cause| FolderError::Io { action: format!("remove {}", file.display()), cause };
            fs::remove_file(&file).map_err(io)?;
        }
        self.results.insert(name, result);
        Ok(())
    }

    /// Records that a point failed, so that reports show it and the next run measures all others first.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn add_failure(&mut self, point: &Point, reason: &str) -> Result<(), FolderError> {
        let reason = reason.replace(['\n', '\r'], " ");
        let failure =
            FailedPoint { format: FAILURE_FORMAT.to_owned(), point: point.clone(), ended: seconds_now(), reason };
        self.write(&failure_name(point), &failure)?;
        self.failures.insert(point.to_string(), failure);
        Ok(())
    }

    fn write(&self, name: &str, value: &impl Serialize) -> Result<(), FolderError> {
        let file = self.path.join(name);
        let unfinished = self.path.join(format!("{name}{UNFINISHED}"));
        let write = || {
            let text = serde_json::to_string_pretty(value).map_err(io::Error::other)? + "\n";
            let mut new = File::create(&unfinished)?;
            new.write_all(text.as_bytes())?;
            new.sync_all()?;
            fs::rename(&unfinished, &file)
        };
        write().map_err(|cause| FolderError::Io { action: format!("write {}", file.display()), cause })
    }
}

/// The name of the file about a point's failure.
fn failure_name(point: &Point) -> String {
    point.file_name() + FAILED
}

fn seconds_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// The value of a JSON file of bounded length.
fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, FolderError> {
    let refuse = |reason: String| FolderError::File { path: path.to_owned(), reason };
    let io = |cause| FolderError::Io { action: format!("read {}", path.display()), cause };
    let mut text = String::new();
    let read = File::open(path).map_err(io)?.take(MAX_OCTETS + 1).read_to_string(&mut text);
    match read {
        Ok(octets) if octets as u64 > MAX_OCTETS => return Err(refuse("it is too long for a result".to_owned())),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::InvalidData => return Err(refuse("it is not text".to_owned())),
        Err(error) => return Err(io(error)),
    }
    serde_json::from_str(&text).map_err(|error| refuse(format!("not a result: {error}")))
}

impl FailedPoint {
    fn read(path: &Path) -> Result<Self, FolderError> {
        let failure: Self = read_json(path)?;
        if failure.format != FAILURE_FORMAT {
            let reason = format!("its format is not `{FAILURE_FORMAT}`");
            return Err(FolderError::File { path: path.to_owned(), reason });
        }
        Ok(failure)
    }
}

impl PointResult {
    /// The results of a measurement that ended now.
    pub(crate) fn new(point: Point, form: Form, machine: Machine, time: Duration, measured: Measured) -> Self {
        let Measured { series, absent, cut } = measured;
        Self {
            format: FORMAT.to_owned(),
            point,
            form,
            machine,
            ended: seconds_now(),
            seconds: time.as_secs_f64(),
            cut,
            absent,
            series,
        }
    }

    fn read(path: &Path) -> Result<Self, FolderError> {
        let refuse = |reason: String| FolderError::File { path: path.to_owned(), reason };
        let result: Self = read_json(path)?;
        let is_number = |series: &Series| series.values.iter().all(|value| value.is_finite());
        if result.format != FORMAT {
            return Err(refuse(format!("its format is not `{FORMAT}`")));
        }
        if !result.series.iter().all(is_number) || !result.seconds.is_finite() {
            return Err(refuse("it has a value that is no number".to_owned()));
        }
        Ok(result)
    }
}
