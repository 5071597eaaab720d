//! Trace contexts as values: the contents of `traceparent` and `tracestate`
//! (<https://www.w3.org/TR/trace-context/>, sections 3.2 and 3.3).
//!
//! Parsing is strict, since unknown values must not be passed on (3.2.2.3, 3.3.1.4). A malformed parent makes
//! the whole context void; a malformed state is left out.

use std::{
    collections::hash_map::RandomState,
    fmt,
    hash::{BuildHasher, Hasher},
    process,
    str::FromStr,
};

use spandrel_sync::thread_local;

/// The longest `tracestate` that is kept: each system has to pass on so much (3.3.1.5).
pub const MAX_STATE: usize = 512;
/// The most members of a `tracestate` (3.3.1.1).
const MAX_MEMBERS: usize = 32;
/// The length of a `traceparent` of the version that is written.
const PARENT_LEN: usize = 55;
/// The flags of version 00: the caller records this trace; the trace's id is random.
const KNOWN_FLAGS: u8 = SAMPLED | RANDOM;
const SAMPLED: u8 = 1;
const RANDOM: u8 = 2;

/// The position of a request in a distributed trace.
///
/// ```
/// # mod diagnostics { pub use spandrel_orb::diagnostics::*; }
/// use diagnostics::TraceContext; // of spandrel
///
/// // From the header of an HTTP request; calls of this thread are part of its trace while the scope exists.
/// let received = TraceContext::parse("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "vendor=1")?;
/// let scope = received.child().enter();
/// assert_eq!(TraceContext::current().expect("the thread is in a trace").trace_id(), received.trace_id());
/// drop(scope);
/// assert_eq!(TraceContext::current(), None);
/// # Ok::<(), diagnostics::TraceContextError>(())
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TraceContext {
    trace_id: [u8; 16],
    span_id: [u8; 8],
    flags: u8,
    state: String,
}

/// The error for a text that is no `traceparent`.
#[derive(Clone, Eq, PartialEq, thiserror::Error)]
#[error(
    "`{0}` is no traceparent: expected `00-`, 32 and 16 hexadecimal digits that are not all zero, and two for flags"
)]
pub struct TraceContextError(String);
spandrel_error::debug_as_report!(TraceContextError);

impl TraceContext {
    /// The begin of a new trace; `is_sampled`: it is recorded.
    #[must_use]
    pub fn root(is_sampled: bool) -> Self {
        let flags = RANDOM | if is_sampled { SAMPLED } else { 0 };
        Self { trace_id: random_trace_id(), span_id: random_span_id(), flags, state: String::new() }
    }

    /// A context of these parts; `None` if an id is all zero.
    #[must_use]
    pub fn new(trace_id: [u8; 16], span_id: [u8; 8], is_sampled: bool) -> Option<Self> {
        let is_known = trace_id != [0; 16] && span_id != [0; 8];
        is_known.then(|| Self { trace_id, span_id, flags: u8::from(is_sampled), state: String::new() })
    }

    /// Parses `traceparent` and `tracestate`; the latter is left out if it is malformed or too long.
    ///
    /// # Errors
    /// If `traceparent` is malformed.
    pub fn parse(traceparent: &str, tracestate: &str) -> Result<Self, TraceContextError> {
        let mut context = Self::from_str(traceparent)?;
        if is_state(tracestate) {
            context.state = tracestate.to_owned();
        }
        Ok(context)
    }

    /// Replaces the `tracestate`, unless the new one is malformed or too long.
    #[must_use]
    pub fn with_state(self, tracestate: &str) -> Self {
        let state = if is_state(tracestate) { tracestate.to_owned() } else { self.state };
        Self { state, ..self }
    }

    /// A child in the same trace, with a new span id.
    #[must_use]
    pub fn child(&self) -> Self {
        Self { span_id: random_span_id(), ..self.clone() }
    }

    /// The trace id, common to all spans of the trace.
    #[must_use]
    pub fn trace_id(&self) -> [u8; 16] {
        self.trace_id
    }

    /// The span id: the sender's, in a received context.
    #[must_use]
    pub fn span_id(&self) -> [u8; 8] {
        self.span_id
    }

    /// Whether the sender records the trace.
    #[must_use]
    pub fn is_sampled(&self) -> bool {
        self.flags & SAMPLED != 0
    }

    /// The `tracestate`; empty if there is none.
    #[must_use]
    pub fn state(&self) -> &str {
        &self.state
    }
}

/// Writes a `traceparent` of version 00.
impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("00-")?;
        self.trace_id.iter().try_for_each(|octet| write!(f, "{octet:02x}"))?;
        f.write_str("-")?;
        self.span_id.iter().try_for_each(|octet| write!(f, "{octet:02x}"))?;
        write!(f, "-{:02x}", self.flags)
    }
}

/// Parses a `traceparent`. Later versions are read as far as version 00 is known (3.2.4).
impl FromStr for TraceContext {
    type Err = TraceContextError;

    fn from_str(text: &str) -> Result<Self, TraceContextError> {
        read_parent(text.as_bytes()).ok_or_else(|| TraceContextError(text.chars().take(2 * PARENT_LEN).collect()))
    }
}

fn read_parent(text: &[u8]) -> Option<TraceContext> {
    let (known, further) = text.split_at_checked(PARENT_LEN)?;
    let [version]: [u8; 1] = octets(&known[..2])?;
    let goes_on = match version {
        0xff => false,
        0 => further.is_empty(),
        _ => further.is_empty() || further[0] == b'-',
    };
    if !goes_on || [known[2], known[35], known[52]] != *b"---" {
        return None;
    }
    let (trace_id, span_id) = (octets(&known[3..35])?, octets(&known[36..52])?);
    let [flags]: [u8; 1] = octets(&known[53..55])?;
    let context = TraceContext { trace_id, span_id, flags: flags & KNOWN_FLAGS, state: String::new() };
    (trace_id != [0; 16] && span_id != [0; 8]).then_some(context)
}

/// Decodes pairs of lower-case hexadecimal digits.
fn octets<const N: usize>(digits: &[u8]) -> Option<[u8; N]> {
    let digit = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let mut octets = [0; N];
    for (octet, pair) in octets.iter_mut().zip(digits.chunks_exact(2)) {
        *octet = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(octets)
}

/// Whether the text is a list of members with a key and a value each, without a repeated key (3.3.1).
fn is_state(text: &str) -> bool {
    if text.len() > MAX_STATE {
        return false;
    }
    let mut keys = Vec::new();
    for member in text.split(',').map(|member| member.trim_matches([' ', '\t'])) {
        if member.is_empty() {
            continue;
        }
        let Some((key, value)) = member.split_once('=') else { return false };
        if !is_key(key) || !is_value(value) || keys.contains(&key) || keys.len() == MAX_MEMBERS {
            return false;
        }
        keys.push(key);
    }
    true
}

/// `simple-key`, or `tenant@system` (3.3.1.3.1).
fn is_key(key: &str) -> bool {
    let is_part = |part: &str, longest: usize, may_begin_with_digit: bool| {
        let begins = part
            .bytes()
            .next()
            .is_some_and(|first| first.is_ascii_lowercase() || may_begin_with_digit && first.is_ascii_digit());
        let is_allowed = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || b"_-*/".contains(&c);
        begins && part.len() <= longest && part.bytes().all(is_allowed)
    };
    match key.split_once('@') {
        None => is_part(key, 256, false),
        Some((tenant, system)) => is_part(tenant, 241, true) && is_part(system, 14, false),
    }
}

/// Printable ASCII without comma and equals sign, not ending with a space (3.3.1.3.2).
fn is_value(value: &str) -> bool {
    let is_allowed = |c: u8| (0x20..=0x7e).contains(&c) && c != b',' && c != b'=';
    (1..=256).contains(&value.len()) && value.bytes().all(is_allowed) && !value.ends_with(' ')
}

thread_local! {
    /// For the random ids of traces and spans, which are never zero, and not secret. Keys from the system's random numbers, and the number of uses. A forked process has the same, and
    /// another process id.
    static SOURCE: (RandomState, std::cell::Cell<u64>) = (RandomState::new(), std::cell::Cell::new(0));
}

fn random_trace_id() -> [u8; 16] {
    let mut id = [0; 16];
    id[..8].copy_from_slice(&random_span_id());
    id[8..].copy_from_slice(&random_span_id());
    id
}

fn random_span_id() -> [u8; 8] {
    let number = SOURCE.with(|(keys, uses)| {
        uses.set(uses.get().wrapping_add(1));
        let mut hasher = keys.build_hasher();
        hasher.write_u64(uses.get());
        hasher.write_u32(process::id());
        hasher.finish()
    });
    number.max(1).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn the_example_of_the_specification_is_read_and_written() {
        let context: TraceContext = PARENT.parse().unwrap();
        assert_eq!(context.trace_id()[..2], [0x4b, 0xf9]);
        assert_eq!(context.span_id()[..2], [0x00, 0xf0]);
        assert!(context.is_sampled());
        assert_eq!(context.to_string(), PARENT);
    }

    #[test]
    fn malformed_headers_are_refused() {
        let flip = |at: usize, to: &str| format!("{}{to}{}", &PARENT[..at], &PARENT[at + to.len()..]);
        for (description, text) in [
            ("empty", String::new()),
            ("truncated", PARENT[..54].to_owned()),
            ("longer than version 00", format!("{PARENT}-00")),
            ("upper case", flip(3, "4BF9")),
            ("no hexadecimal digit", flip(10, "g")),
            ("a sign for a digit", flip(53, "+1")),
            ("version ff", flip(0, "ff")),
            ("another separator", flip(35, "_")),
            ("no trace", flip(3, &"0".repeat(32))),
            ("no span", flip(36, &"0".repeat(16))),
            ("text that is longer in UTF-8", flip(3, "ää")),
        ] {
            assert!(text.parse::<TraceContext>().is_err(), "{description}: {text}");
        }
    }

    #[test]
    fn later_versions_are_read_as_far_as_they_are_known() {
        let later = |rest: &str| format!("cc{}{rest}", &PARENT[2..]).parse::<TraceContext>();
        assert_eq!(later("").unwrap().to_string(), PARENT, "and written as version 00");
        assert!(later("-fields-of-a-later-version").is_ok());
        assert!(later(".fields").is_err());
        let flags = format!("{}ff", &PARENT[..53]).parse::<TraceContext>().unwrap();
        assert_eq!(flags.to_string()[53..], *"03", "unknown flags are zero");
    }

    #[test]
    fn tracestate_is_kept_or_dropped() {
        let state = |text: &str| TraceContext::parse(PARENT, text).unwrap().state().to_owned();
        for good in ["", "rojo=00f067aa0ba902b7", "congo=t61rcWkgMzE, rojo=00", "a=1,,b=2", "0t@sys=x", "a=b c"] {
            assert_eq!(state(good), good);
        }
        let many: String = (0..33).map(|key| format!("k{key}=v,")).collect();
        let long = format!("a={}", "x".repeat(257));
        let longer = format!("a={0},b={0}", "x".repeat(256));
        for bad in ["a", "=1", "A=1", "a=", "a=1,a=2", "1a=1", "a@=1", "a=b=c", "a=é", "a=\n", &many, &long, &longer] {
            assert_eq!(state(bad), "", "{bad}");
        }
    }

    #[test]
    fn a_child_has_the_same_trace_and_another_span() {
        let root = TraceContext::root(true).with_state("a=b");
        let child = root.child();
        assert_eq!((child.trace_id(), child.state(), child.is_sampled()), (root.trace_id(), "a=b", true));
        assert_ne!(child.span_id(), root.span_id());
        assert_ne!(TraceContext::root(false).trace_id(), root.trace_id());
        assert_eq!(root.to_string().parse::<TraceContext>().unwrap().trace_id(), root.trace_id());
    }
}
