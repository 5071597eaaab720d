//! The end of a request's body in the chunked transfer coding (RFC 9112, 7.1).
//!
//! Bodies are discarded, so only the framing is decoded. It is taken literally: a line ends with CR LF, and a size has
//! hexadecimal digits only, so that no proxy before this server sees another end of the body.

use super::request::{BadRequest, MAX_BODY, MAX_HEAD};

/// The state behind the octets of the body that have been taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ChunkedBody {
    part: Part,
    /// The octets of the present line without its end; with trailers, those of all lines.
    line: usize,
    /// The last octet was the CR of a line's end.
    is_behind_cr: bool,
    /// All octets of chunks.
    content: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Part {
    /// The line of a size, of which this value has been read.
    Size(Size),
    /// So many octets of a chunk are left.
    Content(u64),
    /// The end of the line behind a chunk.
    ContentEnd,
    /// The trailer section; whether its present line has octets.
    Trailers { has_octets: bool },
    /// The body has ended.
    #[default]
    End,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Size {
    value: u64,
    has_digits: bool,
    /// Behind the size; what extensions say is ignored.
    is_in_extension: bool,
}

impl ChunkedBody {
    /// Before the first octet of a body.
    pub(super) fn begin() -> Self {
        Self { part: Part::Size(Size::default()), ..Self::default() }
    }

    /// Takes octets of the body from the beginning of `octets`. Returns their number, and whether the body has ended
    /// behind them; otherwise all were taken.
    ///
    /// # Errors
    /// [`BadRequest::Malformed`]; also if a line or the trailer section has more than [`MAX_HEAD`] octets, or the
    /// chunks more than [`MAX_BODY`].
    pub(super) fn take(&mut self, octets: &[u8]) -> Result<(usize, bool), BadRequest> {
        let mut at = 0;
        while at < octets.len() && self.part != Part::End {
            if let Part::Content(left) = &mut self.part {
                let chunk_part = (*left).min((octets.len() - at) as u64);
                *left -= chunk_part;
                at += usize::try_from(chunk_part).expect("a length of memory");
                if *left == 0 {
                    self.part = Part::ContentEnd;
                }
            } else {
                self.take_octet(octets[at])?;
                at += 1;
            }
        }
        Ok((at, self.part == Part::End))
    }

    /// Takes an octet of a line.
    fn take_octet(&mut self, octet: u8) -> Result<(), BadRequest> {
        if std::mem::take(&mut self.is_behind_cr) {
            return if octet == b'\n' { self.end_line() } else { Err(BadRequest::Malformed) };
        }
        if octet == b'\r' {
            self.is_behind_cr = true;
            return Ok(());
        }
        self.line += 1;
        if octet != b'\t' && octet.is_ascii_control() || self.line > MAX_HEAD {
            return Err(BadRequest::Malformed);
        }
        match &mut self.part {
            Part::Size(size) => size.take_octet(octet),
            Part::Trailers { has_octets } => {
                *has_octets = true;
                Ok(())
            }
            Part::Content(_) | Part::ContentEnd | Part::End => Err(BadRequest::Malformed),
        }
    }

    fn end_line(&mut self) -> Result<(), BadRequest> {
        self.part = match self.part {
            Part::Size(Size { has_digits: false, .. }) | Part::Content(_) | Part::End => {
                return Err(BadRequest::Malformed);
            }
            Part::Size(Size { value: 0, .. }) => Part::Trailers { has_octets: false },
            Part::Size(Size { value, .. }) => {
                self.content = self.content.saturating_add(value);
                if self.content > MAX_BODY {
                    return Err(BadRequest::Malformed);
                }
                Part::Content(value)
            }
            Part::ContentEnd => Part::Size(Size::default()),
            Part::Trailers { has_octets: true } => Part::Trailers { has_octets: false },
            Part::Trailers { has_octets: false } => Part::End,
        };
        if !matches!(self.part, Part::Trailers { .. }) {
            self.line = 0;
        }
        Ok(())
    }
}

impl Size {
    fn take_octet(&mut self, octet: u8) -> Result<(), BadRequest> {
        match char::from(octet).to_digit(16) {
            _ if self.is_in_extension => {}
            Some(digit) if self.value <= MAX_BODY => {
                self.value = self.value << 4 | u64::from(digit);
                self.has_digits = true;
            }
            None if self.has_digits && matches!(octet, b';' | b' ' | b'\t') => self.is_in_extension = true,
            _ => return Err(BadRequest::Malformed),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The octets taken in pieces of `size`, if the body ends with them.
    fn taken(body: &[u8], size: usize) -> Result<Option<usize>, BadRequest> {
        let (mut chunked, mut count) = (ChunkedBody::begin(), 0);
        for piece in body.chunks(size) {
            let (taken, has_ended) = chunked.take(piece)?;
            count += taken;
            if has_ended {
                return Ok(Some(count));
            }
            assert_eq!(taken, piece.len());
        }
        Ok(None)
    }

    #[test]
    fn a_body_ends_behind_its_trailers_however_it_is_cut() {
        let body = b"4\r\nWiki\r\n1a ; name=\"x\"\r\nabcdefghijklmnopqrstuvwxyz\r\n000\r\nX: y\r\nZ: 1\r\n\r\n";
        let with_more = [&body[..], b"GET / HTTP/1.1\r\n"].concat();
        for size in 1..=with_more.len() {
            assert_eq!(taken(&with_more, size), Ok(Some(body.len())), "pieces of {size}");
        }
        for len in 0..body.len() {
            assert_eq!(taken(&body[..len], 7), Ok(None), "cut after {len}");
        }
        assert_eq!(taken(b"0\r\n\r\n", 9), Ok(Some(5)));
    }

    #[test]
    fn bodies_that_can_be_read_in_two_ways_are_malformed() {
        for body in [
            "\r\n",
            "x\r\n",
            "-1\r\n",
            "+1\r\n",
            "0x1\r\n",
            " 1\r\n",
            "1\nx",
            "1\rx",
            "1;a\nb\r\n",
            ";a\r\n",
            "1\r\nxy\r\n",
            "1\r\nx\n",
            "ffffffffffffffff1\r\n",
            "100001\r\n",
            "0\r\nX: \0\r\n",
            "0\r\n\n",
        ] {
            assert_eq!(taken(body.as_bytes(), 3), Err(BadRequest::Malformed), "{body:?}");
        }
        let endless = [b"1;".to_vec(), vec![b'a'; MAX_HEAD]].concat();
        assert_eq!(taken(&endless, 1_000), Err(BadRequest::Malformed));
        let trailers = [b"0\r\n".to_vec(), b"X: yz\r\n".repeat(MAX_HEAD / 4)].concat();
        assert_eq!(taken(&trailers, 1_000), Err(BadRequest::Malformed));
        let half = [format!("{:x}\r\n", MAX_BODY / 2).into_bytes(), vec![0; 512 << 10], b"\r\n".to_vec()].concat();
        assert_eq!(taken(&half.repeat(2), 1_000), Ok(None));
        assert_eq!(taken(&[&half.repeat(2)[..], b"1\r\n"].concat(), 1_000), Err(BadRequest::Malformed));
    }
}
