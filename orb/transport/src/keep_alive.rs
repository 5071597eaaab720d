//! TCP keep-alive: detection of unreachable peers, such as a host that was switched off.

use std::{io, str::FromStr, time::Duration};

use spandrel_ipc::inet;

/// The schedule of the system's probes of a silent TCP peer. A call with a deadline ends at that deadline in
/// any case.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum KeepAlive {
    /// No probes: the loss of a peer is noticed only when data is sent to it.
    Off,
    /// The system's configuration; on Linux after two hours.
    #[default]
    System,
    /// The first probe comes after `idle`, further ones after `interval` each. After `count` unanswered
    /// probes the connection is closed. Unacknowledged data ends the connection after the same time, where
    /// the system supports that (Linux: `TCP_USER_TIMEOUT`). The resolution is one second.
    Probes {
        /// The silence before the first probe.
        idle: Duration,
        /// The time from one probe to the next.
        interval: Duration,
        /// Number of unanswered probes that closes the connection.
        count: u32,
    },
}

const SECOND: Duration = Duration::from_secs(1);

impl KeepAlive {
    /// Probes after `idle`, and three times at intervals of a third of it; each at least a second.
    #[must_use]
    pub fn after(idle: Duration) -> Self {
        Self::Probes { idle: idle.max(SECOND), interval: (idle / 3).max(SECOND), count: 3 }
    }

    /// Sets the options of TCP keep-alive on a connected stream.
    ///
    /// # Errors
    /// The errors of the system.
    pub fn apply(&self, stream: &inet::Stream) -> io::Result<()> {
        let Self::Probes { idle, interval, count } = *self else {
            return stream.set_keep_alive(*self == Self::System);
        };
        let probes = inet::KeepAlive { idle: Some(idle), interval: Some(interval), count: Some(count) };
        stream.set_keep_alive_probes(&probes)?;
        #[cfg(target_os = "linux")]
        stream.set_user_timeout(Some(idle + interval * count))?;
        Ok(())
    }
}

/// The spelling of options: `off`, `system`, or seconds `idle[:interval[:count]]`.
impl FromStr for KeepAlive {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "off" => return Ok(Self::Off),
            "system" => return Ok(Self::System),
            _ => {}
        }
        let mut numbers =
            text.split(':').map(|number| number.parse().ok().filter(|number: &u32| *number > 0).ok_or(()));
        let seconds = |number: u32| Duration::from_secs(number.into());
        let Self::Probes { idle, mut interval, mut count } = Self::after(seconds(numbers.next().ok_or(())??)) else {
            return Err(());
        };
        if let Some(number) = numbers.next() {
            interval = seconds(number?);
        }
        if let Some(number) = numbers.next() {
            count = number?;
        }
        if numbers.next().is_some() { Err(()) } else { Ok(Self::Probes { idle, interval, count }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probes(idle: u64, interval: u64, count: u32) -> Result<KeepAlive, ()> {
        Ok(KeepAlive::Probes { idle: Duration::from_secs(idle), interval: Duration::from_secs(interval), count })
    }

    #[test]
    fn its_spelling_is_parsed() {
        assert_eq!("off".parse(), Ok(KeepAlive::Off));
        assert_eq!("system".parse(), Ok(KeepAlive::System));
        assert_eq!("30".parse(), probes(30, 10, 3));
        assert_eq!("1".parse(), probes(1, 1, 3));
        assert_eq!("30:5".parse(), probes(30, 5, 3));
        assert_eq!("30:5:2".parse(), probes(30, 5, 2));
        for text in ["", "0", "-1", "30:", "30:0", "30:5:0", "30:5:2:1", "ten"] {
            assert_eq!(text.parse::<KeepAlive>(), Err(()), "{text}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_socket_options_are_set() {
        let acceptor = inet::Acceptor::open(&inet::Addr::loopback(0)).unwrap();
        let stream = inet::Connector::new().open(&acceptor.local_addr().unwrap()).unwrap();
        KeepAlive::after(Duration::from_secs(30)).apply(&stream).unwrap();
        assert!(stream.keep_alive().unwrap());
        assert_eq!(stream.keep_alive_probes().unwrap().interval, Some(Duration::from_secs(10)));
        assert_eq!(stream.user_timeout().unwrap(), Some(Duration::from_secs(60)));
        KeepAlive::Off.apply(&stream).unwrap();
        assert!(!stream.keep_alive().unwrap());
    }
}
