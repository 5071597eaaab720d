//! Common parts of several commands: printing of output and errors, and shared options.

use std::ffi::OsStr;
use std::fmt::Display;
use std::io::{self, IsTerminal as _};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use anyhow::Context as _;
use clap::ValueEnum;
use spandrel::dynamic::{Descriptions, describe_file};
use spandrel::net::error::output;
use spandrel::net::transport::Address;
use spandrel_lab::output::{Directory, default_directory};
use spandrel_lab::placement::{Placement, cores};
use spandrel_measure::units::{Octets, UnitError, parse_sizes};

/// The same as [`output::print`], with its error as `anyhow::Error`.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    Ok(output::print(text)?)
}

/// Whether text on standard error may have colours: on a terminal, unless the environment has `NO_COLOR`
/// (<https://no-color.org>).
pub(crate) fn is_coloured() -> bool {
    permits_colours(io::stderr().is_terminal(), std::env::var_os("NO_COLOR").as_deref())
}

fn permits_colours(is_terminal: bool, no_color: Option<&OsStr>) -> bool {
    is_terminal && no_color.is_none_or(OsStr::is_empty)
}

/// Prints an error in one line, and its causes below it. A cause that ends the line above is not repeated,
/// since some errors include the text of their source. Further lines of a text, which may be a peer's, are indented.
pub(crate) fn print_error(error: &anyhow::Error) {
    let shown = |text: &str| without_numbers(text).trim_end().replace('\n', "\n    ");
    let mut text = format!("error: {}\n", shown(&error.to_string()));
    for cause in error.chain().skip(1).map(|cause| shown(&cause.to_string())) {
        if !text.trim_end().ends_with(&cause) {
            text.push_str(&format!("  cause: {cause}\n"));
        }
    }
    output::remark(&text);
}

/// A text without the numbers of the system's errors, as in `(os error 2)`: the words before say the same.
fn without_numbers(text: &str) -> String {
    const BEFORE: &str = " (os error ";
    let mut parts = text.split(BEFORE);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| match part.split_once(')') {
        Some((number, rest)) if number.parse::<i32>().is_ok() => text + rest,
        _ => text + BEFORE + part,
    })
}

/// The declarations of an IDL file.
pub(crate) fn read_idl(file: &Path, include: &[PathBuf]) -> anyhow::Result<Descriptions> {
    if let Err(error) = std::fs::File::open(file) {
        return Err(unreadable(file, &error));
    }
    describe_file(file, include.iter().cloned()).with_context(|| format!("cannot use the IDL file {}", file.display()))
}

/// The error of a file that cannot be read, in one line.
pub(crate) fn unreadable(file: &Path, error: &io::Error) -> anyhow::Error {
    anyhow::anyhow!("cannot read {}: {}", file.display(), without_numbers(&error.to_string()))
}

/// A parser of whole numbers, for arguments.
pub(crate) fn whole<N: FromStr + PartialOrd + Display>(
    range: RangeInclusive<N>,
) -> impl Fn(&str) -> Result<N, String> + Clone + Send + Sync + 'static
where
    RangeInclusive<N>: Clone + Send + Sync + 'static,
{
    move |text| {
        let number = text.trim().parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| format!("expected a whole number from {} to {}", range.start(), range.end()))
    }
}

/// Parses the address of a listener, as a host and a port.
pub(crate) fn host_and_port(text: &str) -> Result<String, String> {
    let address = Address::new("iiop", text);
    address
        .host_and_port()
        .map(|_| text.to_owned())
        .ok_or_else(|| "expected host:port, such as 127.0.0.1:5001".to_owned())
}

/// A parser of numbers above zero, with or without a fraction. `expected` describes them for errors.
pub(crate) fn above_zero(
    expected: &'static str,
) -> impl Fn(&str) -> Result<f64, String> + Clone + Send + Sync + 'static {
    move |text| {
        let number = text.trim().parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0);
        number.ok_or_else(|| format!("expected {expected}"))
    }
}

/// The form in which a time is written, for errors.
const TIME: &str = "seconds, or a number with ms, s or min, such as 30s";

/// Parses a time such as `1.5`, `500ms`, `30s` or `2min`; a number without a unit is one of seconds.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    let units = [("ms", 0.001), ("min", 60.0), ("s", 1.0)];
    let split = units.iter().find_map(|(unit, seconds)| text.strip_suffix(unit).map(|number| (number, *seconds)));
    let (number, seconds) = split.unwrap_or((text, 1.0));
    let number = number.trim().parse::<f64>().ok();
    let time = number.and_then(|number| Duration::try_from_secs_f64(number * seconds).ok());
    time.ok_or_else(|| format!("expected {TIME}"))
}

/// As [`time`], above zero.
pub(crate) fn positive_time(text: &str) -> Result<Duration, String> {
    let time = time(text).ok().filter(|time| !time.is_zero());
    time.ok_or_else(|| format!("expected a time above zero: {TIME}"))
}

/// An error of usage, for which the exit code is 2.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(crate) struct UsageError(anyhow::Error);

/// An error of usage with this text.
pub(crate) fn usage(text: impl Display) -> anyhow::Error {
    as_usage(anyhow::anyhow!("{text}"))
}

/// The error, as one of usage.
pub(crate) fn as_usage(error: anyhow::Error) -> anyhow::Error {
    UsageError(error).into()
}

/// The least similarity of a name that is suggested for another one.
const SIMILAR: f64 = 0.55;

/// `: did you mean …?`, if one of the names is similar.
pub(crate) fn did_you_mean<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> String {
    let (name, mut best) = (name.to_lowercase(), (SIMILAR, None));
    for candidate in known {
        let similarity = strsim::normalized_damerau_levenshtein(&name, &candidate.to_lowercase());
        if similarity > best.0 {
            best = (similarity, Some(candidate));
        }
    }
    best.1.map_or_else(String::new, |best| format!(": did you mean `{best}`?"))
}

/// Buffer sizes in one item of an option: a size or a range.
#[derive(Clone, Debug)]
pub(crate) struct Sizes(pub(crate) Vec<Octets>);

impl FromStr for Sizes {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        parse_sizes(text).map(Self)
    }
}

/// The placement of the two processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlacementArg {
    /// Both on one core: the pure cost
    One,
    /// Each on a core of its own: the realistic case
    Two,
    /// Not pinned
    Free,
}

impl From<PlacementArg> for Placement {
    fn from(arg: PlacementArg) -> Self {
        match arg {
            PlacementArg::One => Self::One,
            PlacementArg::Two => Self::Two,
            PlacementArg::Free => Self::Free,
        }
    }
}

/// The most realistic placement that this machine can pin to.
pub(crate) fn best_placement() -> Placement {
    match cores().len() {
        0 => Placement::Free,
        1 => Placement::One,
        _ => Placement::Two,
    }
}

/// The placements that this machine can pin to, each measured separately.
pub(crate) fn pinned_placements() -> Vec<Placement> {
    match cores().len() {
        0 => vec![Placement::Free],
        1 => vec![Placement::One],
        _ => vec![Placement::One, Placement::Two],
    }
}

/// Opens the given folder of results, or the default one.
pub(crate) fn results_directory(given: Option<&Path>, experiment: &str) -> anyhow::Result<Directory> {
    let path = given.map_or_else(|| default_directory(experiment), PathBuf::from);
    Ok(Directory::create(&path)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_color_forbids_colours() {
        assert!(permits_colours(true, None) && permits_colours(true, Some(OsStr::new(""))));
        assert!(!permits_colours(true, Some(OsStr::new("1"))) && !permits_colours(false, None));
    }

    #[test]
    fn numbers_are_parsed_with_the_expected_range() {
        let port = whole(1..=u16::MAX);
        assert_eq!(port("2809"), Ok(2809));
        for invalid in ["", "0", "x", "-1", "1.5", "65536", "99999999999999999999999"] {
            assert_eq!(port(invalid), Err("expected a whole number from 1 to 65535".to_owned()), "{invalid}");
        }
        assert_eq!(host_and_port("[::1]:0"), Ok("[::1]:0".to_owned()));
        for invalid in ["", "x", "x:", "127.0.0.1:x", "127.0.0.1:65536"] {
            assert!(host_and_port(invalid).is_err(), "{invalid}");
        }
        let rate = above_zero("a number of calls");
        assert_eq!(rate("0.5"), Ok(0.5));
        for invalid in ["", "0", "x", "-1", "inf", "nan"] {
            assert_eq!(rate(invalid), Err("expected a number of calls".to_owned()), "{invalid}");
        }
    }

    #[test]
    fn a_time_has_a_unit() {
        for (text, millis) in [("30s", 30_000), ("500ms", 500), ("2min", 120_000), ("1.5", 1500), ("0.5 s", 500)] {
            assert_eq!(positive_time(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "s", "-1s", "fast", "1h", "inf", "nan", "1e30"] {
            assert!(time(text).is_err() && positive_time(text).is_err(), "{text}");
        }
        assert_eq!(time("0"), Ok(Duration::ZERO));
        assert!(positive_time("0ms").is_err());
    }

    #[test]
    fn a_similar_name_is_suggested() {
        let operations = ["deposit", "withdraw", "owner"];
        let suggested = |name: &str| did_you_mean(name, operations.into_iter());
        assert_eq!(suggested("desposit"), ": did you mean `deposit`?");
        assert_eq!(suggested("Owner"), ": did you mean `owner`?");
        assert_eq!(suggested("balance"), "");
    }

    #[test]
    fn errors_of_the_system_are_printed_without_numbers() {
        let error = io::Error::from_raw_os_error(2).to_string();
        assert_eq!(
            without_numbers(&format!("a: {error}; b: {error}")),
            format!("a: {0}; b: {0}", &error[..error.len() - 13])
        );
        for text in ["why", "why (os error x)", "why (os error 2", ""] {
            assert_eq!(without_numbers(text), text);
        }
    }
}
