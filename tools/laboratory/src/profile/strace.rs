//! Traces of `strace -f`: system calls with the octets that they moved.

use std::collections::BTreeMap;

/// The greatest size of a trace that is read.
pub(crate) const MAX_OCTETS: u64 = 512 << 20;

/// The calls of one system function, and the sum of their positive results.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Calls {
    /// The number of calls.
    pub count: f64,
    /// Octets that they moved, if they read or write.
    pub octets: f64,
}

/// The purpose of a system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Receives octets, or reads them.
    Read,
    /// Sends octets, or writes them.
    Write,
    /// Waits for input or for another thread, or wakes one up.
    Wait,
    /// System calls for anything else.
    Other,
}

impl Purpose {
    /// The purpose of the system call with this name.
    #[must_use]
    pub fn with(function: &str) -> Self {
        match function {
            "read" | "readv" | "recv" | "recvfrom" | "recvmsg" | "recvmmsg" => Self::Read,
            "write" | "writev" | "send" | "sendto" | "sendmsg" | "sendmmsg" => Self::Write,
            "poll" | "ppoll" | "select" | "pselect6" | "epoll_wait" | "epoll_pwait" | "epoll_pwait2" | "futex" => {
                Self::Wait
            }
            _ => Self::Other,
        }
    }
}

/// The system calls of a process by the name of their function.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace(pub BTreeMap<String, Calls>);

impl Trace {
    /// Reads the lines of a trace: a process ID, a call, and its result. A call that another thread interrupts comes in
    /// two lines, and counts with the second.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut trace = Self::default();
        for line in text.lines() {
            let call = line.trim_start().trim_start_matches(|letter: char| letter.is_ascii_digit()).trim_start();
            let Some((begin, result)) = call.rsplit_once(" = ") else { continue };
            let name = match begin.strip_prefix("<... ") {
                Some(rest) => rest.split(' ').next(),
                None => begin.split('(').next(),
            };
            let Some(name) = name.filter(|name| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'))
            else {
                continue;
            };
            let calls = trace.0.entry(name.to_owned()).or_default();
            calls.count += 1.0;
            let result: Option<u32> = result.split(' ').next().and_then(|result| result.parse().ok());
            if matches!(Purpose::with(name), Purpose::Read | Purpose::Write) {
                calls.octets += f64::from(result.unwrap_or(0));
            }
        }
        trace
    }

    /// The difference to the trace of a shorter run.
    #[must_use]
    pub fn minus(&self, shorter: &Self) -> Self {
        let beyond = self.0.iter().map(|(name, calls)| {
            let before = shorter.0.get(name).copied().unwrap_or_default();
            let (count, octets) = (calls.count - before.count, calls.octets - before.octets);
            (name.clone(), Calls { count: count.max(0.0), octets: octets.max(0.0) })
        });
        Self(beyond.collect())
    }

    /// The sum of all system calls for a purpose.
    #[must_use]
    pub fn calls(&self, purpose: Purpose) -> Calls {
        let own = self.0.iter().filter(|(name, _)| Purpose::with(name) == purpose);
        own.fold(Calls::default(), |sum, (_, calls)| Calls {
            count: sum.count + calls.count,
            octets: sum.octets + calls.octets,
        })
    }
}
