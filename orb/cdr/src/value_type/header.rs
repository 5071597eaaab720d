//! What stands before a value's state: where its code may be had, and which types it has (9.3.4.1, 9.3.4.2).

use std::sync::Arc;

use super::{HAS_CODEBASE, ID_LIST, INDIRECTION, IS_CHUNKED, SINGLE_ID, TYPE_INFORMATION, VALUE_TAG};
use crate::decoder::values::Ids;
use crate::{CdrError, Decoder};

/// A value's header.
#[derive(Clone, Debug)]
pub(super) struct Header {
    /// Its repository ids, most derived first; none if it is of the type that its position has.
    pub(super) ids: Ids,
    pub(super) is_chunked: bool,
}

impl Decoder<'_> {
    /// Reads what follows a value tag. The octets of the codebase URL mean nothing here: no code is loaded.
    pub(super) fn value_header(&mut self, tag: u32) -> Result<Header, CdrError> {
        let flags = tag - VALUE_TAG;
        if flags > (HAS_CODEBASE | TYPE_INFORMATION | IS_CHUNKED) {
            return Err(CdrError::Malformed("a value tag with bits that mean nothing"));
        }
        if flags & HAS_CODEBASE != 0 {
            self.shared_string()?;
        }
        let ids = match flags & TYPE_INFORMATION {
            0 => Arc::default(),
            SINGLE_ID => [self.shared_string()?].into(),
            ID_LIST => self.id_list()?,
            _ => return Err(CdrError::Malformed("a value tag with type information of no known form")),
        };
        Ok(Header { ids, is_chunked: flags & IS_CHUNKED != 0 })
    }

    /// Reads the offset of an indirection, and returns what position it means: an earlier one.
    pub(super) fn indirection_target(&mut self) -> Result<usize, CdrError> {
        let offset = self.i32()?;
        let here = self.position() - 4;
        // The mark stands right before the offset; what is meant must end before it.
        let back = usize::try_from(-i64::from(offset)).ok().filter(|&back| back > 4);
        back.and_then(|back| here.checked_sub(back))
            .ok_or(CdrError::Malformed("an indirection that does not lead back"))
    }

    /// Notes that an indirection of a repository id or a type code leads to a position.
    pub(crate) fn note_reach(&mut self, target: usize) {
        let reach = &mut self.read_values().reach;
        *reach = Some(reach.map_or(target, |reach| reach.min(target)));
    }

    fn shared_string(&mut self) -> Result<Arc<str>, CdrError> {
        let view = self.view();
        let len = self.u32()?;
        let at = self.position() - 4;
        if len == INDIRECTION {
            let target = self.indirection_target()?;
            self.note_reach(target);
            let known = self.read_values().strings.get(&target).cloned();
            return known.ok_or(CdrError::Malformed("an indirection to where no repository id stands"));
        }
        self.restore(view);
        let text: Arc<str> = self.str()?.into();
        self.read_values().strings.insert(at, Arc::clone(&text));
        Ok(text)
    }

    fn id_list(&mut self) -> Result<Ids, CdrError> {
        let view = self.view();
        let len = self.u32()?;
        let at = self.position() - 4;
        if len == INDIRECTION {
            let target = self.indirection_target()?;
            self.note_reach(target);
            let known = self.read_values().lists.get(&target).cloned();
            return known.ok_or(CdrError::Malformed("an indirection to where no list of repository ids stands"));
        }
        self.restore(view);
        // An empty id may have no octets but its length.
        let len = self.sequence_len(4)?;
        let ids: Ids = (0..len).map(|_| self.shared_string()).collect::<Result<_, _>>()?;
        self.read_values().lists.insert(at, Arc::clone(&ids));
        Ok(ids)
    }
}
