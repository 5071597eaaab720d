//! The codes of the errors of paper 004, table 3.1, and the kinds that programs compare instead of them.

use std::io::{Error, ErrorKind};

use rustix::io::Errno;

#[test]
fn the_same_kind_stands_for_the_codes_of_all_systems() {
    let kinds = [
        (Errno::WOULDBLOCK, ErrorKind::WouldBlock),
        (Errno::ADDRINUSE, ErrorKind::AddrInUse),
        (Errno::ADDRNOTAVAIL, ErrorKind::AddrNotAvailable),
        (Errno::TIMEDOUT, ErrorKind::TimedOut),
        (Errno::CONNREFUSED, ErrorKind::ConnectionRefused),
        (Errno::CONNRESET, ErrorKind::ConnectionReset),
        (Errno::CONNABORTED, ErrorKind::ConnectionAborted),
        (Errno::NOTCONN, ErrorKind::NotConnected),
        (Errno::HOSTUNREACH, ErrorKind::HostUnreachable),
        (Errno::NETUNREACH, ErrorKind::NetworkUnreachable),
        (Errno::INVAL, ErrorKind::InvalidInput),
    ];
    for (code, kind) in kinds {
        let number = code.raw_os_error();
        assert_eq!(Error::from_raw_os_error(number).kind(), kind, "{code}");
        // Those of Winsock are the ones of BSD plus 10000.
        assert_eq!(number > 10_000, cfg!(windows), "{code}");
    }
}

/// Winsock 2 has no calls that a signal interrupts, and the standard library no kind for the code of Winsock 1.1.
#[cfg(unix)]
#[test]
fn the_code_of_an_interrupted_call_has_a_kind_where_there_are_signals() {
    assert_eq!(Error::from_raw_os_error(Errno::INTR.raw_os_error()).kind(), ErrorKind::Interrupted);
}
