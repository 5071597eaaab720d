//! Flow specifications: the texts by which parties name flows, protocols and addresses.
//!
//! A forward entry is `flow\direction\format\flow protocol\carrier=address`, as a control or the connecting party sends
//! it; a reverse entry is `flow\carrier=address\flow protocol`, as the other party answers. Parts may be empty, and
//! trailing ones absent. An address is `host:port`, with `;port` for the control connection of RTP, and `;token=` with
//! 64 hexadecimal digits for the token that opens the flow.

use std::fmt;
use std::net::SocketAddr;

use crate::imports::{TOKEN_OCTETS, Token};

/// The most octets of one entry.
pub const MAX_ENTRY: usize = 1_024;
/// The most octets of the name of a flow.
pub const MAX_NAME: usize = 128;
/// The most entries of one specification.
pub const MAX_FLOWS: usize = 64;
/// The option of an address that has the token.
const TOKEN: &str = "token=";

/// The direction of a flow between the parties of a stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Direction {
    /// From the A party to the B party: `in`.
    In,
    /// From the B party to the A party: `out`.
    Out,
}

/// The protocol under a flow, in the spelling of flow specifications.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Carrier {
    /// `TCP`: octets in order.
    Tcp,
    /// `UDP`: one frame in each datagram.
    Udp,
    /// `RTP/UDP`: RTP and RTCP by UDP (RFC 3550).
    RtpUdp,
    /// `TLS`: octets in order, inside of TLS by TCP.
    Tls,
}

impl Carrier {
    /// All carriers, in the order of preference of flows that name none.
    pub const ALL: [Self; 4] = [Self::RtpUdp, Self::Udp, Self::Tcp, Self::Tls];

    fn parse(text: &str) -> Option<Self> {
        let name = |carrier: &Self| carrier.to_string().eq_ignore_ascii_case(text);
        Self::ALL.into_iter().find(name).or_else(|| text.eq_ignore_ascii_case("RTP").then_some(Self::RtpUdp))
    }

    /// Whether one packet can be lost without the others.
    #[must_use]
    pub fn is_datagram(self) -> bool {
        !matches!(self, Self::Tcp | Self::Tls)
    }
}

impl fmt::Display for Carrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
            Self::RtpUdp => "RTP/UDP",
            Self::Tls => "TLS",
        })
    }
}

/// The protocol of frames inside of a carrier.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum FlowProtocol {
    /// None: the frames as they are.
    #[default]
    None,
    /// `SFP:1.0`: the Simple Flow Protocol.
    Sfp {
        /// The frames that the sender may send without further credit (`:credit=N`). `None` without flow control.
        credit: Option<u32>,
    },
    /// `RTP`, with the carrier `RTP/UDP`.
    Rtp,
}

impl FlowProtocol {
    /// The protocol in this text, as `use_flow_protocol` has it. `None` if it is unknown, or has an unknown version.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(':');
        let name = parts.next()?;
        if name.is_empty() || name.eq_ignore_ascii_case("RTP") {
            let plain = if name.is_empty() { Self::None } else { Self::Rtp };
            return parts.next().is_none().then_some(plain);
        }
        if !name.eq_ignore_ascii_case("SFP") {
            return None;
        }
        match (parts.next(), parts.next(), parts.next()) {
            (None | Some("1.0"), None, None) => Some(Self::Sfp { credit: None }),
            (Some("1.0"), Some(credit), None) => {
                let credit = credit.strip_prefix("credit=")?.parse().ok().filter(|credit| *credit > 0)?;
                Some(Self::Sfp { credit: Some(credit) })
            }
            _ => None,
        }
    }
}

impl fmt::Display for FlowProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => Ok(()),
            Self::Sfp { credit: None } => f.write_str("SFP:1.0"),
            Self::Sfp { credit: Some(credit) } => write!(f, "SFP:1.0:credit={credit}"),
            Self::Rtp => f.write_str("RTP"),
        }
    }
}

/// The address at which one party of a flow sends or receives frames, as specifications exchange it.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowAddress {
    /// The protocol that carries the flow.
    pub carrier: Carrier,
    /// The IP address and port of the frames; RTCP has a port of its own.
    pub data: SocketAddr,
    /// The port of RTCP at the same host. `None` for the port after that of the frames.
    pub control_port: Option<u16>,
    /// The token that the sender of the flow shows.
    pub token: Option<Token>,
}

impl FlowAddress {
    /// The address at which the party gets the reports of RTCP.
    #[must_use]
    pub fn control(&self) -> SocketAddr {
        SocketAddr::new(self.data.ip(), self.control_port.unwrap_or(self.data.port().wrapping_add(1)))
    }

    /// The address in `carrier=host:port;…`.
    ///
    /// # Errors
    /// A text that is not of this form, or has a host name instead of an IP address.
    pub fn parse(text: &str) -> Result<Self, FlowSpecError> {
        let wrong = || FlowSpecError::Address(shown(text));
        let (carrier, address) = text.split_once('=').ok_or_else(wrong)?;
        let carrier = Carrier::parse(carrier).ok_or_else(|| FlowSpecError::Carrier(shown(carrier)))?;
        let mut parts = address.split(';');
        let data: SocketAddr = parts.next().and_then(|data| data.parse().ok()).ok_or_else(wrong)?;
        if data.port() == 0 {
            return Err(wrong());
        }
        let (mut control_port, mut token) = (None, None);
        for part in parts {
            match part.strip_prefix(TOKEN) {
                Some(digits) if token.is_none() => token = Some(parse_token(digits).ok_or(FlowSpecError::Token)?),
                None if control_port.is_none() && token.is_none() => {
                    control_port = Some(part.parse().ok().filter(|port| *port != 0).ok_or_else(wrong)?);
                }
                _ => return Err(wrong()),
            }
        }
        Ok(Self { carrier, data, control_port, token })
    }

    /// Whether the address is that of a multicast group.
    #[must_use]
    pub fn is_multicast(&self) -> bool {
        self.data.ip().is_multicast()
    }
}

impl fmt::Display for FlowAddress {
    /// With the token: for the other party alone, not for logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.carrier, self.data)?;
        if let Some(port) = self.control_port {
            write!(f, ";{port}")?;
        }
        if let Some(Token(octets)) = &self.token {
            f.write_str(";token=")?;
            octets.iter().try_for_each(|octet| write!(f, "{octet:02x}"))?;
        }
        Ok(())
    }
}

fn parse_token(digits: &str) -> Option<Token> {
    let mut octets = [0; TOKEN_OCTETS];
    if digits.len() != 2 * TOKEN_OCTETS || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    for (octet, pair) in octets.iter_mut().zip(digits.as_bytes().chunks(2)) {
        *octet = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(Token(octets))
}

/// One entry of a flow specification: the wish of a party for one flow, or its answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowEntry {
    /// The name by which both parties know the flow.
    pub name: String,
    /// The direction between the A and the B party, if the entry has one.
    pub direction: Option<Direction>,
    /// The format of the frames, such as `MPEG`. Empty for any.
    pub format: String,
    /// The protocol of frames inside of the carrier.
    pub protocol: FlowProtocol,
    /// The carrier of an entry without an address.
    pub carrier: Option<Carrier>,
    /// The address of the party that sent the entry.
    pub address: Option<FlowAddress>,
}

impl FlowEntry {
    /// An entry that gives only the flow's name.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    /// Parses `flow\direction\format\flow protocol\carrier=address`. Parts at the end may be missing.
    ///
    /// # Errors
    /// A text that is not of this form.
    pub fn parse(text: &str) -> Result<Self, FlowSpecError> {
        let mut parts = bounded_parts(text)?;
        let name = parse_name(parts.next())?;
        let direction = match parts.next().unwrap_or_default() {
            "" => None,
            text if text.eq_ignore_ascii_case("in") => Some(Direction::In),
            text if text.eq_ignore_ascii_case("out") => Some(Direction::Out),
            other => return Err(FlowSpecError::Direction(shown(other))),
        };
        let format = parts.next().unwrap_or_default().to_owned();
        let protocol = parse_protocol(parts.next().unwrap_or_default())?;
        let mut entry = Self { name, direction, format, protocol, ..Self::default() };
        entry.set_address(parts.next().unwrap_or_default())?;
        // A sixth part has the address of the other party, which is known from the connection.
        if parts.nth(1).is_some() { Err(FlowSpecError::Parts) } else { Ok(entry) }
    }

    /// The entry in `flow\carrier=address\flow protocol`, or in a forward entry, which some parties answer as well.
    ///
    /// # Errors
    /// A text that is of neither form.
    pub fn parse_reverse(text: &str) -> Result<Self, FlowSpecError> {
        let mut parts = bounded_parts(text)?;
        let name = parse_name(parts.next())?;
        let second = parts.next().unwrap_or_default();
        if !second.contains('=') && (Carrier::parse(second).is_none()) && !second.is_empty() {
            return Self::parse(text);
        }
        let protocol = parts.next().unwrap_or_default();
        if parts.next().is_some() {
            return Self::parse(text);
        }
        let mut entry = Self { name, protocol: parse_protocol(protocol)?, ..Self::default() };
        entry.set_address(second)?;
        Ok(entry)
    }

    fn set_address(&mut self, text: &str) -> Result<(), FlowSpecError> {
        if text.contains('=') {
            let address = FlowAddress::parse(text)?;
            self.carrier = Some(address.carrier);
            self.address = Some(address);
        } else if !text.is_empty() {
            self.carrier = Some(Carrier::parse(text).ok_or_else(|| FlowSpecError::Carrier(shown(text)))?);
        }
        Ok(())
    }

    fn address_text(&self) -> String {
        match (&self.address, self.carrier) {
            (Some(address), _) => address.to_string(),
            (None, Some(carrier)) => carrier.to_string(),
            (None, None) => String::new(),
        }
    }

    /// The text of the entry in the answer of the other party.
    #[must_use]
    pub fn to_reverse(&self) -> String {
        format!("{}\\{}\\{}", self.name, self.address_text(), self.protocol)
    }
}

impl fmt::Display for FlowEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let direction = self.direction.map_or("", |way| if way == Direction::In { "in" } else { "out" });
        write!(f, "{}\\{direction}\\{}\\{}\\{}", self.name, self.format, self.protocol, self.address_text())
    }
}

/// The entries of a specification. No two may be of the same flow.
///
/// # Errors
/// Too many entries, one that has another form, or two with one flow.
pub fn parse_flow_spec(entries: &[String]) -> Result<Vec<FlowEntry>, FlowSpecError> {
    parse_entries(entries, FlowEntry::parse)
}

/// As [`parse_flow_spec`], for the answer of the other party.
///
/// # Errors
/// As [`parse_flow_spec`].
pub fn parse_reverse_flow_spec(entries: &[String]) -> Result<Vec<FlowEntry>, FlowSpecError> {
    parse_entries(entries, FlowEntry::parse_reverse)
}

fn parse_entries(
    entries: &[String],
    parse: impl Fn(&str) -> Result<FlowEntry, FlowSpecError>,
) -> Result<Vec<FlowEntry>, FlowSpecError> {
    if entries.len() > MAX_FLOWS {
        return Err(FlowSpecError::Flows(entries.len()));
    }
    let mut flows: Vec<FlowEntry> = Vec::with_capacity(entries.len());
    for text in entries {
        let entry = parse(text)?;
        if flows.iter().any(|other| other.name == entry.name) {
            return Err(FlowSpecError::Twice(entry.name));
        }
        flows.push(entry);
    }
    Ok(flows)
}

fn bounded_parts(text: &str) -> Result<std::str::Split<'_, char>, FlowSpecError> {
    if text.len() > MAX_ENTRY { Err(FlowSpecError::Length(text.len())) } else { Ok(text.split('\\')) }
}

fn parse_name(text: Option<&str>) -> Result<String, FlowSpecError> {
    let name = text.unwrap_or_default();
    let is_valid = !name.is_empty() && name.len() <= MAX_NAME && !name.chars().any(char::is_control);
    if is_valid { Ok(name.to_owned()) } else { Err(FlowSpecError::Name(shown(name))) }
}

fn parse_protocol(text: &str) -> Result<FlowProtocol, FlowSpecError> {
    FlowProtocol::parse(text).ok_or_else(|| FlowSpecError::Protocol(shown(text)))
}

/// The beginning of a hostile text, without control characters.
pub(crate) fn shown(text: &str) -> String {
    shown_within(text, 64)
}

/// As [`shown`], with this many characters at most.
pub(crate) fn shown_within(text: &str, most: usize) -> String {
    text.chars().take(most).map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// The reason why a text is no flow specification.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FlowSpecError {
    /// The name is empty, too long or has control characters.
    #[error("`{0}` is no name of a flow: 1 to {MAX_NAME} octets without control characters")]
    Name(String),
    /// The direction is unknown.
    #[error("the direction of a flow is `in` or `out`, not `{0}`")]
    Direction(String),
    /// The flow protocol is unknown.
    #[error("the flow protocol `{0}` is unknown: `SFP:1.0`, `SFP:1.0:credit=N`, `RTP` or none")]
    Protocol(String),
    /// The carrier protocol is unknown.
    #[error("the carrier protocol `{0}` is unknown: TCP, TLS, UDP or RTP/UDP")]
    Carrier(String),
    /// The address has another form.
    #[error("`{0}` is no address of a flow: carrier=IP:port")]
    Address(String),
    /// The token is no token.
    #[error("the token of a flow has 64 hexadecimal digits")]
    Token,
    /// The entry has too many parts.
    #[error("a flow specification has at most six parts")]
    Parts,
    /// The entry is too long.
    #[error("an entry of a flow specification has at most {MAX_ENTRY} octets, not {0}")]
    Length(usize),
    /// The specification has too many flows.
    #[error("a flow specification has at most {MAX_FLOWS} flows, not {0}")]
    Flows(usize),
    /// A flow is named twice.
    #[error("the flow `{0}` is named twice")]
    Twice(String),
}
