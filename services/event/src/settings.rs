//! The settings of a channel: omniEvents' criteria.

use std::time::Duration;

use spandrel::services::cos_life_cycle::generic_factory::CreateObjectError;
use spandrel::services::cos_life_cycle::{CannotMeetCriteria, InvalidCriteria, Nvp};
use spandrel::types::Any;

/// The most events that the criterion `MaxQueueLength` may name.
const MAX_QUEUE_LENGTH: u32 = 1_000_000;
/// The longest name of a channel, and the longest `FilterId`, in octets.
const MAX_TEXT: usize = 1_024;

/// The criteria with which a channel is created, and the limits that take the place of the service's.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ChannelSettings {
    /// The name, which is the object key in URLs as well: `corbaloc::HOST:11169/NAME` (`InsName`). Without one the service
    /// gives it a number.
    pub name: Option<String>,
    /// The events in the queue of each consumer (`MaxQueueLength`), in place of the limit of the service.
    pub max_queue_length: Option<u32>,
    /// The pull suppliers' proxies (`MaxNumProxies`), in place of the limit of the service.
    pub max_proxies: Option<u32>,
    /// The time between two calls of a pull supplier that had no event (`PullRetryPeriod_ms`; default 1 second).
    pub pull_interval: Option<Duration>,
    /// The repository id of the type that events must have (`FilterId`). Others are dropped.
    pub filter: Option<String>,
    /// The cycle of omniEvents in nanoseconds (`CyclePeriod_ns`). It is kept and has no effect: events are sent at once.
    pub cycle_period: Option<u32>,
}

impl ChannelSettings {
    /// Reads the settings from these criteria. If two have the same name, the second counts.
    ///
    /// # Errors
    /// `InvalidCriteria` for unknown names and for values of other types; `CannotMeetCriteria` for values out of range.
    pub fn from_criteria(criteria: &[Nvp]) -> Result<Self, CreateObjectError> {
        let (mut settings, mut invalid, mut unmet) = (Self::default(), Vec::new(), Vec::new());
        for criterion in criteria {
            let number = || number(&criterion.value);
            let outcome = match &*criterion.name {
                "CyclePeriod_ns" => assign(&mut settings.cycle_period, number(), |_| true),
                "MaxQueueLength" => {
                    assign(&mut settings.max_queue_length, number(), |n| (1..=MAX_QUEUE_LENGTH).contains(n))
                }
                "MaxNumProxies" => assign(&mut settings.max_proxies, number(), |n| *n > 0),
                "PullRetryPeriod_ms" => {
                    let interval = number().map(|ms| Duration::from_millis(ms.into()));
                    assign(&mut settings.pull_interval, interval, |interval| !interval.is_zero())
                }
                "InsName" => assign(&mut settings.name, text(&criterion.value), |name| is_name(name)),
                "FilterId" => assign(&mut settings.filter, text(&criterion.value), |id| id.len() <= MAX_TEXT),
                _ => Err(CriterionError::Invalid),
            };
            match outcome {
                Ok(()) => {}
                Err(CriterionError::Invalid) => invalid.push(criterion.clone()),
                Err(CriterionError::Unmet) => unmet.push(criterion.clone()),
            }
        }
        if !invalid.is_empty() {
            return Err(InvalidCriteria { invalid_criteria: invalid }.into());
        }
        if !unmet.is_empty() {
            return Err(CannotMeetCriteria { unmet_criteria: unmet }.into());
        }
        Ok(settings)
    }
}

/// Whether a text can be the name of a channel: not empty, printable, without the separator of object ids.
pub(crate) fn is_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= MAX_TEXT && !name.chars().any(|c| c.is_control() || c == '/')
}

enum CriterionError {
    Invalid,
    Unmet,
}

fn assign<T>(setting: &mut Option<T>, value: Option<T>, fits: impl Fn(&T) -> bool) -> Result<(), CriterionError> {
    let value = value.ok_or(CriterionError::Invalid)?;
    if !fits(&value) {
        return Err(CriterionError::Unmet);
    }
    *setting = Some(value);
    Ok(())
}

/// An integer of any type. omniEvents documents `long`, and its clients send `unsigned long`.
fn number(value: &Any) -> Option<u32> {
    let signed = || value.extract::<i32>().ok().and_then(|number| u32::try_from(number).ok());
    let wide = || value.extract::<u64>().ok().and_then(|number| u32::try_from(number).ok());
    let narrow = || value.extract::<u16>().ok().map(u32::from);
    value.extract::<u32>().ok().or_else(signed).or_else(wide).or_else(narrow)
}

fn text(value: &Any) -> Option<String> {
    value.extract::<String>().ok()
}
