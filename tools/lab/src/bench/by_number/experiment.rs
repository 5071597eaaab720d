//! An experiment: its contenders, and the way in which one is run.

use std::fmt::Display;
use std::time::Duration;

use spandrel_measure::units::grouped;

use super::results::Figures;
use super::settings::Settings;
use crate::LabError;
use crate::peer::pair::Launch;
use crate::placement::Placement;

/// The longest processor time of an upcall in microseconds.
const MAX_WORK_MICROS: u32 = 1_000_000;

/// A series in which contenders are measured at several numbers, such as of connections.
pub trait Experiment {
    /// Clients and servers that are compared.
    type Contender: Copy + Display + PartialEq + Sync;
    /// The name of the experiment and of its files.
    const NAME: &str;
    /// The things that the number counts, as a word for texts.
    const UNIT: &str;
    /// The lowest number that settings may have.
    const LEAST: u32 = 1;
    /// The highest number that settings may have.
    const MOST: u32;
    /// The base of the ratios, unless it is left out.
    const BASE: Self::Contender;

    /// A number as tables and charts show it.
    #[must_use]
    fn label(number: u32) -> String {
        grouped(number.into())
    }

    /// Validates settings.
    ///
    /// # Errors
    /// If a list is empty, or a number out of range.
    fn check(settings: &Settings<Self::Contender>) -> Result<(), LabError> {
        let refuse = |reason: String| Err(LabError::Settings(reason));
        if settings.placements.is_empty() || settings.numbers.is_empty() || settings.contenders.is_empty() {
            return refuse("nothing to run: there must be a placement, a number and a contender".to_owned());
        }
        if settings.rounds == 0 || settings.run_millis == 0 || settings.limit_seconds == 0 {
            return refuse("nothing to run: rounds, milliseconds and the time limit must be above zero".to_owned());
        }
        if let Some(number) = settings.numbers.iter().find(|number| !(Self::LEAST..=Self::MOST).contains(*number)) {
            let (least, most) = (Self::LEAST, grouped(Self::MOST.into()));
            return refuse(format!("the number of {} must be between {least} and {most}, not {number}", Self::UNIT));
        }
        if settings.work_micros > MAX_WORK_MICROS {
            let most = grouped(MAX_WORK_MICROS.into());
            return refuse(format!("a servant computes for up to {most} µs, not {}", settings.work_micros));
        }
        Ok(())
    }

    /// Starts a contender's processes, each on its core; or returns the reason why it is absent.
    ///
    /// # Errors
    /// If a process fails.
    fn start(
        contender: Self::Contender,
        settings: &Settings<Self::Contender>,
        launch: Launch<'_>,
        placement: Placement,
    ) -> Result<Result<Box<dyn Subject>, String>, LabError>;
}

/// The running processes of a contender.
pub trait Subject: Send {
    /// Keeps that many calls in flight for a time, after a short warm-up; or returns the reason why this is
    /// not possible.
    ///
    /// # Errors
    /// If a call fails, or the server counted other calls than were made.
    fn run(&mut self, number: u32, time: Duration) -> Result<Result<Figures, String>, LabError>;
}
