//! Framing of text in lines.

use std::io;

use super::{FoundFrame, Framing, not_encodable, too_long};

/// Lines that end with a line feed, or a carriage return and a line feed; neither belongs to the content. The
/// last line of a stream may lack them. The content is not checked to be text.
#[derive(Clone, Debug)]
pub struct Lines {
    limit: usize,
    /// The first octets of the input, which contain no line feed.
    searched: usize,
}

impl Lines {
    /// Lines with a content of at most `limit` octets.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { limit, searched: 0 }
    }

    fn check(&self, content: usize) -> io::Result<()> {
        if content > self.limit { Err(too_long(format_args!("a line that is too long"), self.limit)) } else { Ok(()) }
    }
}

impl Framing for Lines {
    fn find(&mut self, input: &[u8]) -> io::Result<Option<FoundFrame>> {
        let Some(at) = input[self.searched..].iter().position(|octet| *octet == b'\n') else {
            self.searched = input.len();
            // A carriage return at the end may belong to the end of the line.
            self.check(input.strip_suffix(b"\r").unwrap_or(input).len())?;
            return Ok(None);
        };
        let end = self.searched + at;
        self.searched = 0;
        let line = &input[..end];
        let content = line.strip_suffix(b"\r").unwrap_or(line).len();
        self.check(content)?;
        Ok(Some(FoundFrame { content: 0..content, len: end + 1 }))
    }

    fn find_last(&mut self, input: &[u8]) -> io::Result<FoundFrame> {
        self.check(input.len())?;
        Ok(FoundFrame { content: 0..input.len(), len: input.len() })
    }

    fn encode(&self, content: &[u8]) -> io::Result<Vec<u8>> {
        if content.contains(&b'\n') || content.ends_with(b"\r") {
            return Err(not_encodable(format_args!("a line contains a line feed, or ends with a carriage return")));
        }
        if content.len() > self.limit {
            return Err(not_encodable(format_args!("{} octets, the limit is {}", content.len(), self.limit)));
        }
        Ok([content, b"\n"].concat())
    }
}
