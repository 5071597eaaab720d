//! The laboratory: the figures and tables of the five papers, by name, beside the peers of today.
//!
//! [`Inventory`] has a row for each figure and table: whether it runs here, and by which points. A [`Point`] is one
//! measurement of an experiment of `spandrel-lab` or `spandrel-stacks`, shared by all rows that show it; `measure` carries
//! it out, and [`profile`] watches its processes with other programs. [`Folder`] keeps one file for each point, so that a run can be resumed. [`report`] shows the results of a folder
//! beside the ratios of the papers, and [`compare`] compares two folders.
//!
//! The experiments themselves are not here: this crate chooses their settings, and none of its figures is made up. They
//! need Linux.
#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod command_line;
pub mod compare;
mod events;
mod folder;
mod imaging;
mod inventory;
mod links;
mod measure;
mod media;
mod point;
pub mod profile;
pub mod report;
mod run;
mod series;
mod servers;

pub use folder::{Folder, FolderError, Form, PointResult};
pub use inventory::{Inventory, Measure, PaperRatio, Row, SelectError, State};
pub use point::{Link, Point};
pub use run::{RunOutcome, RunSettings, planned_time, run};
pub use series::{Series, Unit};
