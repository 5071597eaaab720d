//! The format of the bulk connection, as values: version 1.
//!
//! All numbers are big-endian. The party that opens the connection sends a greeting of 52 octets ([`Greeting`]):
//!
//! | octets | content |
//! | --- | --- |
//! | 8 | magic: `53 50 42 55 4c 4b 0d 0a` (`SPBULK` and a line end) |
//! | 1 | version: 1 |
//! | 1 | role of the sender of this greeting: 1 receives the data, 2 sends it |
//! | 2 | flags: bit 0 if it takes an open file in place of the octets (UNIX-domain sockets), bit 1 if it uses the connection again for a further transfer; other bits are zero |
//! | 32 | token |
//! | 8 | offset: the octets that it has already, if it receives; else zero |
//!
//! The other party sends an answer of 28 octets ([`Answer`]):
//!
//! | octets | content |
//! | --- | --- |
//! | 8 | magic, as above |
//! | 1 | version: 1 |
//! | 1 | status: 0 if accepted; else refused, an ERROR frame follows, and then the end |
//! | 2 | zero |
//! | 8 | offset at which the data goes on: that of the greeting, or the octets that this party has already |
//! | 8 | length of all the data, or 2^64 - 1 if unknown |
//!
//! Then both send frames: a header of 8 octets ([`FrameHeader`]: 1 octet kind, 3 octets zero, 4 octets length of the
//! payload) and the payload.
//!
//! | kind | name | sender | payload |
//! | --- | --- | --- | --- |
//! | 1 | DATA | sending party | 1 to 16,777,216 octets of the data |
//! | 2 | END | sending party | 8 octets: length of all the data; 1: 0 without, 1 with checksum; 3: zero; 4: checksum ([`End`]) |
//! | 3 | DONE | receiving party | as END, always with the checksum of what it has received; the transfer is complete |
//! | 4 | ERROR | both | 2 octets code ([`ErrorCode`]), then at most 512 octets of UTF-8: the sender gives up |
//! | 5 | CANCEL | both | at most 512 octets of UTF-8: the sender has cancelled the transfer |
//! | 6 | FILE | sending party | 8 octets: length of all the data. One octet with an open file follows (`SCM_RIGHTS`), then END |
//!
//! The checksum is CRC-32 (IEEE 802.3, as in gzip) of all the data from its first octet on, also after a connection
//! that resumed. DATA is bounded by the length of the answer; a party that sends more breaks the protocol.
//!
//! After DONE the connection ends, unless the greeting has bit 1 of the flags. Then the same party may send another greeting
//! with the token of another offer, within the time for which the other party waits ([`BulkLimits::reuse`]). A greeting
//! that is not answered, because the connection has ended meanwhile, is sent again over a new one.
//!
//! This module has neither sockets nor clocks.
//!
//! [`BulkLimits::reuse`]: crate::BulkLimits::reuse

use std::fmt;

/// The first octets of each side. The line end reveals a transfer that translates line ends.
pub const MAGIC: [u8; 8] = *b"SPBULK\r\n";
/// The version in greetings and answers. Others are refused.
pub const VERSION: u8 = 1;
/// The length of a token, by which the side that opens the connection proves that it has the offer.
pub const TOKEN_OCTETS: usize = 32;
/// The length of the first message of the side that dials.
pub const GREETING_OCTETS: usize = 52;
/// The length of the reply to a greeting.
pub const ANSWER_OCTETS: usize = 28;
/// The octets of a frame's header.
pub const HEADER_OCTETS: usize = 8;
/// The payload of END and DONE in octets.
pub const END_OCTETS: usize = 16;
/// The most octets of one DATA frame.
pub const MAX_DATA: u32 = 16 << 20;
/// The most octets of text in ERROR and CANCEL frames.
pub const MAX_TEXT: usize = 512;
/// The longest payload of frames other than DATA.
pub const MAX_CONTROL: usize = MAX_TEXT + 2;
/// The length of data whose end is not known in advance.
pub const UNKNOWN_LENGTH: u64 = u64::MAX;

/// The flag of a party that takes an open file in place of the octets.
const TAKES_FILES: u16 = 1;
/// The flag of a party that uses the connection again for a further transfer.
const REUSES: u16 = 2;

/// The secret that opens one connection.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Token(pub [u8; TOKEN_OCTETS]);

impl fmt::Debug for Token {
    /// Logs do not get the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

/// The reason why received octets are not those of this protocol.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// The peer speaks another protocol.
    #[error("the peer does not speak the bulk protocol: its first octets are {0:02x?}")]
    Magic([u8; 8]),
    /// The peer speaks another version of this protocol.
    #[error("the peer speaks version {0} of the bulk protocol, and this side version 1")]
    Version(u8),
    /// The role is neither 1 nor 2.
    #[error("a bulk connection has the roles 1 and 2, not {0}")]
    Role(u8),
    /// Octets or bits that must be zero are not.
    #[error("reserved octets are not zero")]
    Reserved,
    /// The kind of a frame is unknown.
    #[error("there is no frame of kind {0}")]
    Kind(u8),
    /// The payload of a frame is too long, or has another length than its kind.
    #[error("a frame of kind {kind} has no {length} octets")]
    Length {
        /// The number of the kind.
        kind: u8,
        /// The length in the header.
        length: u32,
    },
    /// The kind of a checksum is unknown.
    #[error("there is no checksum of kind {0}")]
    Checksum(u8),
    /// A frame came at a point of the transfer where it has no meaning.
    #[error("the peer sent a frame {0} where none may come")]
    Unexpected(FrameKind),
    /// The data is longer than announced or allowed.
    #[error("the peer sends more than the {limit} octets that were announced or are allowed")]
    TooLong {
        /// The announced or allowed length.
        limit: u64,
    },
    /// An offset or a length contradicts what is known.
    #[error("the peer names the {what} {received}, but it is {expected}")]
    Contradiction {
        /// The name of the quantity.
        what: &'static str,
        /// The value that the peer sent.
        received: u64,
        /// The value at this side.
        expected: u64,
    },
}
spandrel_error::debug_as_report!(WireError);

/// The part of a party in the transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The data flows to this party.
    Receives,
    /// The data comes from this party.
    Sends,
}

/// The first message of the party that opened the connection: its role and the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Greeting {
    /// The direction of the data, as the greeting party sees it.
    pub role: Role,
    /// Whether that party takes an open file in place of the octets.
    pub takes_files: bool,
    /// Whether that party uses the connection again for a further transfer.
    pub reuses: bool,
    /// The secret by which the other party finds the offer.
    pub token: Token,
    /// The octets that the greeting party has from earlier connections of the transfer.
    pub offset: u64,
}

impl Greeting {
    /// Encodes the magic, the version, and the fields in big-endian order.
    #[must_use]
    pub fn encode(&self) -> [u8; GREETING_OCTETS] {
        let mut octets = [0; GREETING_OCTETS];
        octets[..8].copy_from_slice(&MAGIC);
        octets[8] = VERSION;
        octets[9] = if self.role == Role::Receives { 1 } else { 2 };
        let flag = |is_set: bool, flag: u16| if is_set { flag } else { 0 };
        let flags = flag(self.takes_files, TAKES_FILES) | flag(self.reuses, REUSES);
        octets[10..12].copy_from_slice(&flags.to_be_bytes());
        octets[12..44].copy_from_slice(&self.token.0);
        octets[44..].copy_from_slice(&self.offset.to_be_bytes());
        octets
    }

    /// Decodes and checks a greeting.
    ///
    /// # Errors
    /// [`WireError`] if they are no greeting of this version.
    pub fn decode(octets: &[u8; GREETING_OCTETS]) -> Result<Self, WireError> {
        check_start(octets)?;
        let role = match octets[9] {
            1 => Role::Receives,
            2 => Role::Sends,
            other => return Err(WireError::Role(other)),
        };
        let flags = u16::from_be_bytes(part(&octets[10..12]));
        if flags & !(TAKES_FILES | REUSES) != 0 {
            return Err(WireError::Reserved);
        }
        let offset = u64::from_be_bytes(part(&octets[44..]));
        let (takes_files, reuses) = (flags & TAKES_FILES != 0, flags & REUSES != 0);
        Ok(Self { role, takes_files, reuses, token: Token(part(&octets[12..44])), offset })
    }
}

/// The answer of the party that listened: the rest of the data that will flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Zero if the token was accepted. Otherwise an ERROR frame with the reason follows.
    pub status: u8,
    /// The offset at which the data goes on.
    pub offset: u64,
    /// The length of all the data, or [`UNKNOWN_LENGTH`].
    pub length: u64,
}

impl Answer {
    /// Encodes the magic, the version, and the fields in big-endian order.
    #[must_use]
    pub fn encode(&self) -> [u8; ANSWER_OCTETS] {
        let mut octets = [0; ANSWER_OCTETS];
        octets[..8].copy_from_slice(&MAGIC);
        octets[8] = VERSION;
        octets[9] = self.status;
        octets[12..20].copy_from_slice(&self.offset.to_be_bytes());
        octets[20..].copy_from_slice(&self.length.to_be_bytes());
        octets
    }

    /// Decodes and checks an answer.
    ///
    /// # Errors
    /// [`WireError`] if they are no answer of this version.
    pub fn decode(octets: &[u8; ANSWER_OCTETS]) -> Result<Self, WireError> {
        check_start(octets)?;
        if octets[10..12] != [0; 2] {
            return Err(WireError::Reserved);
        }
        let number = |range: std::ops::Range<usize>| u64::from_be_bytes(part(&octets[range]));
        Ok(Self { status: octets[9], offset: number(12..20), length: number(20..28) })
    }
}

/// The kind of a frame, which decides the meaning of its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs, reason = "the table of the module describes them")]
pub enum FrameKind {
    Data = 1,
    End = 2,
    Done = 3,
    Error = 4,
    Cancel = 5,
    File = 6,
}

impl FrameKind {
    fn from_number(number: u8) -> Option<Self> {
        let kinds = [Self::Data, Self::End, Self::Done, Self::Error, Self::Cancel, Self::File];
        kinds.into_iter().find(|kind| *kind as u8 == number)
    }

    fn allows(self, length: u32) -> bool {
        let octets = length as usize;
        match self {
            Self::Data => (1..=MAX_DATA).contains(&length),
            Self::End | Self::Done => octets == END_OCTETS,
            Self::Error => (2..=MAX_CONTROL).contains(&octets),
            Self::Cancel => octets <= MAX_TEXT,
            Self::File => octets == 8,
        }
    }
}

impl fmt::Display for FrameKind {
    /// The name in upper case, as in the format's description.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", format!("{self:?}").to_ascii_uppercase())
    }
}

/// The header of a frame, whose length fits its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHeader {
    kind: FrameKind,
    length: u32,
}

impl FrameHeader {
    /// A header, unless frames of this kind have no such length.
    ///
    /// # Errors
    /// [`WireError::Length`].
    pub fn new(kind: FrameKind, length: u32) -> Result<Self, WireError> {
        let fits = kind.allows(length);
        if fits { Ok(Self { kind, length }) } else { Err(WireError::Length { kind: kind as u8, length }) }
    }

    /// The kind that decides the meaning of the payload.
    #[must_use]
    pub fn kind(&self) -> FrameKind {
        self.kind
    }

    /// The octets of its payload.
    #[must_use]
    pub fn length(&self) -> u32 {
        self.length
    }

    /// Encodes kind and length in big-endian order.
    #[must_use]
    pub fn encode(&self) -> [u8; HEADER_OCTETS] {
        let length = self.length.to_be_bytes();
        [self.kind as u8, 0, 0, 0, length[0], length[1], length[2], length[3]]
    }

    /// Decodes a header, and checks that the length fits the kind.
    ///
    /// # Errors
    /// [`WireError`] if there is no such frame.
    pub fn decode(octets: &[u8; HEADER_OCTETS]) -> Result<Self, WireError> {
        let kind = FrameKind::from_number(octets[0]).ok_or(WireError::Kind(octets[0]))?;
        if octets[1..4] != [0; 3] {
            return Err(WireError::Reserved);
        }
        Self::new(kind, u32::from_be_bytes(part(&octets[4..])))
    }
}

/// The payload of END and DONE: what was sent, or received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// The octets of all data, from offset 0.
    pub length: u64,
    /// CRC-32 of all the data. A sender that has not read the octets itself has none.
    pub checksum: Option<u32>,
}

impl End {
    /// Encodes the payload of END or DONE.
    #[must_use]
    pub fn encode(&self) -> [u8; END_OCTETS] {
        let mut octets = [0; END_OCTETS];
        octets[..8].copy_from_slice(&self.length.to_be_bytes());
        octets[8] = self.checksum.is_some().into();
        octets[12..].copy_from_slice(&self.checksum.unwrap_or(0).to_be_bytes());
        octets
    }

    /// Decodes the payload of END or DONE.
    ///
    /// # Errors
    /// [`WireError`] for an unknown checksum.
    pub fn decode(octets: &[u8; END_OCTETS]) -> Result<Self, WireError> {
        let value = u32::from_be_bytes(part(&octets[12..]));
        let checksum = match octets[8] {
            0 if value == 0 => None,
            0 => return Err(WireError::Reserved),
            1 => Some(value),
            other => return Err(WireError::Checksum(other)),
        };
        if octets[9..12] != [0; 3] {
            return Err(WireError::Reserved);
        }
        Ok(Self { length: u64::from_be_bytes(part(&octets[..8])), checksum })
    }
}

/// The codes of ERROR frames. Peers may send others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum ErrorCode {
    /// The token is unknown, used, expired, or belongs to another peer.
    Token = 1,
    /// The greeting is not of this protocol or version, or has the wrong role.
    Protocol = 2,
    /// The offset is beyond the data, or cannot be resumed at.
    Offset = 3,
    /// There are too many transfers at this time.
    Busy = 4,
    /// The checksum or the length is not that of the received octets.
    Corrupt = 5,
    /// The source or the destination of the octets has failed.
    Storage = 6,
    /// The peer was too slow.
    TimeOut = 7,
    /// The data is longer than the receiver takes.
    TooLong = 8,
}

impl ErrorCode {
    /// The code with this number in ERROR frames; `None` for others.
    #[must_use]
    pub fn from_number(number: u16) -> Option<Self> {
        use ErrorCode::{Busy, Corrupt, Offset, Protocol, Storage, TimeOut, Token, TooLong};
        let codes = [Token, Protocol, Offset, Busy, Corrupt, Storage, TimeOut, TooLong];
        codes.into_iter().find(|code| *code as u16 == number)
    }
}

/// An ERROR frame. A long text is cut at a character.
#[must_use]
pub fn error_frame(code: ErrorCode, text: &str) -> Vec<u8> {
    let code = (code as u16).to_be_bytes();
    control_frame(FrameKind::Error, &[&code[..], cut(text).as_bytes()].concat())
}

/// A CANCEL frame. A long text is cut at a character.
#[must_use]
pub fn cancel_frame(text: &str) -> Vec<u8> {
    control_frame(FrameKind::Cancel, cut(text).as_bytes())
}

/// A whole frame that is not DATA.
pub(crate) fn control_frame(kind: FrameKind, payload: &[u8]) -> Vec<u8> {
    let header = FrameHeader { kind, length: payload.len() as u32 };
    debug_assert!(kind.allows(header.length));
    [&header.encode()[..], payload].concat()
}

/// The code and the text in the payload of an ERROR frame.
#[must_use]
pub fn decode_error(payload: &[u8]) -> (u16, String) {
    let (code, text) = payload.split_at(payload.len().min(2));
    (<[u8; 2]>::try_from(code).map_or(0, u16::from_be_bytes), decode_text(text))
}

/// The text in the payload of a CANCEL frame. Octets that are not UTF-8 are replaced.
#[must_use]
pub fn decode_text(payload: &[u8]) -> String {
    String::from_utf8_lossy(payload).into_owned()
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_TEXT)]
}

fn check_start(octets: &[u8]) -> Result<(), WireError> {
    if octets[..8] != MAGIC {
        return Err(WireError::Magic(part(&octets[..8])));
    }
    if octets[8] == VERSION { Ok(()) } else { Err(WireError::Version(octets[8])) }
}

/// An array of octets whose number the caller has chosen.
fn part<const N: usize>(octets: &[u8]) -> [u8; N] {
    octets.try_into().expect("the range has the length of the array")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn greetings_are_decoded_as_they_were(
            sends: bool,
            takes_files: bool,
            reuses: bool,
            token: [u8; 32],
            offset: u64,
        ) {
            let role = if sends { Role::Sends } else { Role::Receives };
            let greeting = Greeting { role, takes_files, reuses, token: Token(token), offset };
            prop_assert_eq!(Greeting::decode(&greeting.encode()), Ok(greeting));
        }

        #[test]
        fn answers_and_ends_are_decoded_as_they_were(status: u8, offset: u64, length: u64, checksum: Option<u32>) {
            let answer = Answer { status, offset, length };
            prop_assert_eq!(Answer::decode(&answer.encode()), Ok(answer));
            let end = End { length, checksum };
            prop_assert_eq!(End::decode(&end.encode()), Ok(end));
        }

        /// An accepted value has one form: encoded again, it is the same octets.
        #[test]
        fn any_octets_are_a_value_with_one_form_or_an_error(
            mut octets: [u8; GREETING_OCTETS],
            header: [u8; HEADER_OCTETS],
            small in 0_u8..9,
            has_start: bool,
        ) {
            if has_start {
                octets[..8].copy_from_slice(&MAGIC);
                octets[8..12].copy_from_slice(&[VERSION, small, 0, small / 2]);
            }
            if let Ok(greeting) = Greeting::decode(&octets) {
                prop_assert_eq!(greeting.encode(), octets);
            }
            let mut answer: [u8; ANSWER_OCTETS] = octets[..ANSWER_OCTETS].try_into().unwrap();
            answer[10..12].fill(small / 4);
            if let Ok(decoded) = Answer::decode(&answer) {
                prop_assert_eq!(decoded.encode(), answer);
            }
            let mut end: [u8; END_OCTETS] = octets[12..12 + END_OCTETS].try_into().unwrap();
            end[8..12].copy_from_slice(&[small, 0, 0, small / 8]);
            if let Ok(decoded) = End::decode(&end) {
                prop_assert_eq!(decoded.encode(), end);
            }
            for octets in [header, [small, 0, 0, 0, 0, 0, header[6] & 3, header[7]], [small, 0, 0, 0, 0, 0, 0, 16]] {
                if let Ok(decoded) = FrameHeader::decode(&octets) {
                    prop_assert_eq!(decoded.encode(), octets);
                    prop_assert!(decoded.length() <= MAX_DATA);
                    let is_data = decoded.kind() == FrameKind::Data;
                    prop_assert!(is_data || decoded.length() as usize <= MAX_CONTROL);
                }
            }
        }

        #[test]
        fn texts_of_frames_are_bounded_and_readable(text in ".{0,600}", payload: Vec<u8>) {
            let frame = error_frame(ErrorCode::Corrupt, &text);
            let header = FrameHeader::decode(frame[..HEADER_OCTETS].try_into().unwrap()).unwrap();
            prop_assert_eq!(header.length() as usize, frame.len() - HEADER_OCTETS);
            let (code, decoded) = decode_error(&frame[HEADER_OCTETS..]);
            prop_assert_eq!(ErrorCode::from_number(code), Some(ErrorCode::Corrupt));
            prop_assert!(text.starts_with(&decoded));
            prop_assert!(decoded.len() == text.len() || decoded.len() > MAX_TEXT - 4);
            prop_assert!(decode_error(&payload).1.len() <= 3 * payload.len());
        }
    }

    #[test]
    fn each_deviation_has_its_error() {
        let (role, token) = (Role::Receives, Token([7; 32]));
        let greeting = Greeting { role, takes_files: false, reuses: false, token, offset: 9 }.encode();
        let with = |index: usize, octet: u8| {
            let mut changed = greeting;
            changed[index] = octet;
            Greeting::decode(&changed).unwrap_err()
        };
        assert!(matches!(with(0, b'G'), WireError::Magic(_)));
        assert_eq!(with(8, 2), WireError::Version(2));
        assert_eq!(with(9, 3), WireError::Role(3));
        assert_eq!(with(10, 1), WireError::Reserved);
        assert_eq!(with(11, 4), WireError::Reserved);
        let header = |octets| FrameHeader::decode(&octets).unwrap_err();
        assert_eq!(header([9, 0, 0, 0, 0, 0, 0, 1]), WireError::Kind(9));
        assert_eq!(header([1, 1, 0, 0, 0, 0, 0, 1]), WireError::Reserved);
        assert_eq!(header([1, 0, 0, 0, 0, 0, 0, 0]), WireError::Length { kind: 1, length: 0 });
        assert_eq!(header([1, 0, 0, 0, 1, 0, 0, 1]), WireError::Length { kind: 1, length: MAX_DATA + 1 });
        assert_eq!(header([5, 0, 0, 0, 0, 0, 2, 1]), WireError::Length { kind: 5, length: 513 });
        let mut end = End { length: 5, checksum: None }.encode();
        end[15] = 1;
        assert_eq!(End::decode(&end), Err(WireError::Reserved), "a checksum that is said not to be there");
        end[8] = 2;
        assert_eq!(End::decode(&end), Err(WireError::Checksum(2)));
    }

    #[test]
    fn the_format_is_the_documented_one() {
        let token = Token([0xab; 32]);
        let greeting = Greeting { role: Role::Sends, takes_files: true, reuses: true, token, offset: 0x0102 };
        let mut expected = b"SPBULK\r\n\x01\x02\x00\x03".to_vec();
        expected.extend([0xab; 32]);
        expected.extend([0, 0, 0, 0, 0, 0, 1, 2]);
        assert_eq!(greeting.encode()[..], expected);
        assert_eq!(
            control_frame(FrameKind::End, &End { length: 3, checksum: Some(0x0a0b_0c0d) }.encode()),
            [2, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 3, 1, 0, 0, 0, 0x0a, 0x0b, 0x0c, 0x0d]
        );
        assert_eq!(cancel_frame("no"), [5, 0, 0, 0, 0, 0, 0, 2, b'n', b'o']);
        assert_eq!(format!("{:?}", Token([1; 32])), "Token(..)");
    }
}
