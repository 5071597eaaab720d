//! The time in which an ORB's own certificates are valid (RFC 5280, 4.1.2.5), and warnings before it ends.

use std::time::{SystemTime, UNIX_EPOCH};

use rustls_pki_types::CertificateDer;

use crate::der::{SEQUENCE, contents, element};

const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
/// `[0] EXPLICIT`, the tag of a certificate's version.
const VERSION: u8 = 0xa0;

const SECONDS_PER_DAY: i64 = 86_400;
/// The days before the end from which the ORB warns.
const WARNED_DAYS: i64 = 30;

/// The first and the last second of a certificate, since 1970.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Validity {
    begin: i64,
    end: i64,
}

/// Logs a warning for each certificate of a chain that is not valid now, or will not be within 30 days. `source` names
/// where they are from.
pub(crate) fn warn_of_expiry(chain: &[CertificateDer<'_>], source: &str) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs() as i64);
    for (index, certificate) in chain.iter().enumerate() {
        let Some(problem) = validity(certificate).and_then(|validity| problem(validity, now)) else { continue };
        tracing::warn!(certificates = source, number = index + 1, "{problem}");
    }
}

fn problem(Validity { begin, end }: Validity, now: i64) -> Option<String> {
    let days = |seconds: i64| match seconds / SECONDS_PER_DAY {
        1 => "1 day".to_owned(),
        days => format!("{days} days"),
    };
    if now > end {
        return Some(format!("the certificate expired {} ago: peers refuse it", days(now - end)));
    }
    if now < begin {
        return Some(format!("the certificate is not valid before {} have passed: peers refuse it", days(begin - now)));
    }
    (end - now < WARNED_DAYS * SECONDS_PER_DAY).then(|| format!("the certificate expires in {}", days(end - now)))
}

/// The validity of a certificate; `None` if it is malformed, which the handshake reports.
fn validity(mut certificate: &[u8]) -> Option<Validity> {
    let mut signed = contents(&mut certificate, SEQUENCE)?;
    let mut fields = contents(&mut signed, SEQUENCE)?;
    if fields.first() == Some(&VERSION) {
        element(&mut fields)?;
    }
    // The serial number, the algorithm of the signature and the issuer.
    for _ in 0..3 {
        element(&mut fields)?;
    }
    let mut times = contents(&mut fields, SEQUENCE)?;
    Some(Validity { begin: time(&mut times)?, end: time(&mut times)? })
}

/// Takes a time from the front, in seconds since 1970.
fn time(input: &mut &[u8]) -> Option<i64> {
    let (tag, text) = element(input)?;
    let text = text.strip_suffix(b"Z")?;
    let (year, rest) = match tag {
        UTC_TIME => {
            let (year, rest) = number(text, 2)?;
            (if year < 50 { 2000 + year } else { 1900 + year }, rest)
        }
        GENERALIZED_TIME => number(text, 4)?,
        _ => return None,
    };
    let (month, rest) = number(rest, 2)?;
    let (day, rest) = number(rest, 2)?;
    let (hour, rest) = number(rest, 2)?;
    let (minute, rest) = number(rest, 2)?;
    let (second, rest) = number(rest, 2)?;
    let is_time = (1..=12).contains(&month) && (1..=31).contains(&day) && hour < 24 && minute < 60 && second < 60;
    if !is_time || !rest.is_empty() {
        return None;
    }
    Some(days_since_1970(year, month, day) * SECONDS_PER_DAY + hour * 3600 + minute * 60 + second)
}

/// Takes a number of so many decimal digits from the front.
fn number(text: &[u8], digits: usize) -> Option<(i64, &[u8])> {
    let (number, rest) = text.split_at_checked(digits)?;
    let value = number
        .iter()
        .try_fold(0, |value, digit| digit.is_ascii_digit().then(|| value * 10 + i64::from(digit - b'0')))?;
    Some((value, rest))
}

/// The days from 1970-01-01 to a date of the Gregorian calendar.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    // Years that begin in March have their leap day at the end, and months with a regular number of days.
    let year = if month <= 2 { year - 1 } else { year };
    let month_from_march = (month + 9) % 12;
    let days_of_years = year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    let days_of_months = (153 * month_from_march + 2) / 5;
    const TO_1970: i64 = 719_468;
    days_of_years + days_of_months + day - 1 - TO_1970
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time_of(tag: u8, text: &str) -> Option<i64> {
        let octets = [&[tag, text.len() as u8], text.as_bytes()].concat();
        time(&mut &octets[..])
    }

    #[test]
    fn times_are_read_in_both_forms() {
        for (tag, text, expected) in [
            (UTC_TIME, "700101000000Z", Some(0)),
            (UTC_TIME, "000229235959Z", Some(951_868_799)),
            (UTC_TIME, "491231235959Z", Some(2_524_607_999)),
            (GENERALIZED_TIME, "20500101000000Z", Some(2_524_608_000)),
            (GENERALIZED_TIME, "20261129094500Z", Some(1_795_945_500)),
            (GENERALIZED_TIME, "99991231235959Z", Some(253_402_300_799)),
            (GENERALIZED_TIME, "20261329094500Z", None),
            (UTC_TIME, "000229235959", None),
            (UTC_TIME, "0002292359Z", None),
            (UTC_TIME, "00022923595xZ", None),
            (0x0c, "000229235959Z", None),
        ] {
            assert_eq!(time_of(tag, text), expected, "{text}");
        }
    }

    #[test]
    fn certificates_are_reported_from_thirty_days_before_their_end() {
        let day = SECONDS_PER_DAY;
        let at = |begin, end| problem(Validity { begin: begin * day, end: end * day }, 100 * day).unwrap_or_default();
        assert_eq!(at(0, 131), "");
        assert_eq!(at(0, 130), "");
        assert_eq!(at(0, 129), "the certificate expires in 29 days");
        assert_eq!(at(0, 99), "the certificate expired 1 day ago: peers refuse it");
        assert_eq!(at(102, 400), "the certificate is not valid before 2 days have passed: peers refuse it");
    }

    #[test]
    fn malformed_certificates_have_no_validity() {
        for octets in [&b""[..], &[SEQUENCE, 0], &[SEQUENCE, 2, SEQUENCE, 0], &[SEQUENCE, 4, SEQUENCE, 2, VERSION, 0]] {
            assert_eq!(validity(octets), None);
        }
    }
}
