//! Daytime (RFC 867): sends the time as text, and closes the connection. The text is that of RFC 3339, in UTC.

use std::io;
use std::time::{SystemTime, UNIX_EPOCH};

use spandrel::net::ipc::Family;
use spandrel::net::reactor::{Peer, ServiceHandler};
use spandrel_configurator::ServiceObject;

use crate::small_service::SmallService;

struct Daytime;

impl<F: Family> ServiceHandler<F> for Daytime {
    fn open(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
        peer.put(text(SystemTime::now()).as_bytes())?;
        peer.close();
        Ok(())
    }

    fn handle_input(&mut self, peer: &mut Peer<'_, F>) -> io::Result<()> {
        peer.recv(&mut [0; 64]).map(drop)
    }
}

/// The time as `2026-11-25T12:34:56Z`, with an end of line.
fn text(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let (year, month, day) = date(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z\r\n")
}

/// Year, month and day of a number of days since 1970-01-01.
fn date(days: u64) -> (u64, u64, u64) {
    let is_leap = |year: u64| year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
    let (mut year, mut day) = (1970, days);
    while day >= 365 + u64::from(is_leap(year)) {
        day -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while day >= lengths[month] {
        day -= lengths[month];
        month += 1;
    }
    (year, month as u64 + 1, day + 1)
}

/// The service; its port is 13.
pub(crate) fn service() -> impl ServiceObject {
    SmallService::new("daytime", 13, || Daytime, Some(|_| Some(text(SystemTime::now()).into_bytes())))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn times_are_texts_of_rfc_3339() {
        let at = |seconds| text(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "1970-01-01T00:00:00Z\r\n");
        assert_eq!(at(951_782_399), "2000-02-28T23:59:59Z\r\n");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00Z\r\n");
        assert_eq!(at(1_795_651_199), "2026-11-25T23:59:59Z\r\n");
        assert_eq!(at(4_107_542_400), "2100-03-01T00:00:00Z\r\n");
    }
}
