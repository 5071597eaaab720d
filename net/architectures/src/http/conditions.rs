//! The preconditions of a request (RFC 9110, 13).

use std::time::SystemTime;

use super::response::Status;

/// The preconditions of a request. `If-Range` is none: it belongs to the range.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conditions {
    /// `If-Match`, with the tags that permit the request.
    pub matches: Option<Tags>,
    /// `If-None-Match`, with the tags that make the answer 304 (Not Modified).
    pub none_match: Option<Tags>,
    /// `If-Modified-Since`, ignored if the date is invalid.
    pub modified_since: Option<Date>,
    /// `If-Unmodified-Since`, ignored if the date is invalid.
    pub unmodified_since: Option<Date>,
}

/// The value of `If-Match` or `If-None-Match`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tags {
    /// `*`: any present file.
    Any,
    /// Entity tags. We send none, so a file has none of them, neither by the strong comparison nor by the weak one
    /// (RFC 9110, 8.8.3.2).
    Listed,
}

/// The value of a field that has one date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Date {
    /// A date in a form of RFC 9110.
    Valid(SystemTime),
    /// No date, or more than one.
    Invalid,
}

impl Tags {
    /// Takes a field. Several of them are one list (RFC 9110, 5.3), which does not contain `*`.
    pub(super) fn add(tags: &mut Option<Self>, value: &str) {
        *tags = Some(if tags.is_none() && value == "*" { Self::Any } else { Self::Listed });
    }
}

impl Date {
    /// Adds the value of a header field; a second one makes the date invalid.
    pub(super) fn add(date: &mut Option<Self>, value: &str) {
        let valid = httpdate::parse_http_date(value).ok().filter(|_| date.is_none());
        *date = Some(valid.map_or(Self::Invalid, Self::Valid));
    }

    /// The date, if it is valid.
    pub(super) fn valid(self) -> Option<SystemTime> {
        match self {
            Self::Valid(date) => Some(date),
            Self::Invalid => None,
        }
    }
}

impl Conditions {
    /// The status of the response to a GET or HEAD of a file instead of the file: none if all conditions hold. The file
    /// exists, since conditions are ignored otherwise (RFC 9110, 13.2.1).
    pub(super) fn status(&self, modified: Option<SystemTime>) -> Option<Status> {
        // A file without a date, and a field without a valid one, are ignored (13.1.3, 13.1.4).
        let is_after = |date: Option<Date>| Some(modified? > date.and_then(Date::valid)?);
        // The order is that of 13.2.2.
        let has_failed = match self.matches {
            Some(tags) => tags == Tags::Listed,                    // step 1
            None => is_after(self.unmodified_since) == Some(true), // step 2
        };
        let is_unmodified = match self.none_match {
            Some(tags) => tags == Tags::Any,                      // step 3
            None => is_after(self.modified_since) == Some(false), // step 4
        };
        if has_failed { Some(Status::PreconditionFailed) } else { is_unmodified.then_some(Status::NotModified) }
    }
}
