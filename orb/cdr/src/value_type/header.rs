//! The header of a value: codebase URL and repository ids (9.3.4.1, 9.3.4.2).

use std::sync::Arc;

use super::{HAS_CODEBASE, ID_LIST, INDIRECTION, IS_CHUNKED, SINGLE_ID, TYPE_INFORMATION, VALUE_TAG};
use crate::decoder::values::Ids;
use crate::{CdrError, Decoder};

/// The part of a value between its tag and its state.
#[derive(Clone, Debug)]
pub(super) struct Header {
    /// Its repository ids, most derived first; empty if it is of its position's type.
    pub(super) ids: Ids,
    pub(super) is_chunked: bool,
}

impl Decoder<'_> {
    /// Reads the header after a value tag. The codebase URL is ignored: no code is loaded.
    pub(super) fn value_header(&mut self, tag: u32) -> Result<Header, CdrError> {
        let flags = tag - VALUE_TAG;
        if flags > (HAS_CODEBASE | TYPE_INFORMATION | IS_CHUNKED) {
            return Err(CdrError::Malformed("a value tag has unknown bits"));
        }
        if flags & HAS_CODEBASE != 0 {
            self.shared_string()?;
        }
        let ids = match flags & TYPE_INFORMATION {
            0 => Arc::default(),
            SINGLE_ID => [self.shared_string()?].into(),
            ID_LIST => self.id_list()?,
            _ => return Err(CdrError::Malformed("a value tag has an unknown form of type information")),
        };
        Ok(Header { ids, is_chunked: flags & IS_CHUNKED != 0 })
    }

    /// Reads the offset of an indirection, and returns its target: an earlier position.
    pub(super) fn indirection_target(&mut self) -> Result<usize, CdrError> {
        let offset = self.i32()?;
        let here = self.position() - 4;
        // The mark is directly before the offset; the target must end before it.
        let back = usize::try_from(-i64::from(offset)).ok().filter(|&back| back > 4);
        back.and_then(|back| here.checked_sub(back)).ok_or(CdrError::Malformed("an indirection does not lead back"))
    }

    /// Records the target of an indirection of a repository id or a type code.
    pub(crate) fn record_indirection_target(&mut self, target: usize) {
        let earliest_target = &mut self.read_values().earliest_target;
        *earliest_target = Some(earliest_target.map_or(target, |earliest_target| earliest_target.min(target)));
    }

    fn shared_string(&mut self) -> Result<Arc<str>, CdrError> {
        let view = self.view();
        let len = self.u32()?;
        let at = self.position() - 4;
        if len == INDIRECTION {
            let target = self.indirection_target()?;
            self.record_indirection_target(target);
            let string = self.read_values().strings.get(&target).cloned();
            return string.ok_or(CdrError::Malformed("an indirection does not lead to a repository id"));
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
            self.record_indirection_target(target);
            let list = self.read_values().lists.get(&target).cloned();
            return list.ok_or(CdrError::Malformed("an indirection does not lead to a list of repository ids"));
        }
        self.restore(view);
        // An empty id may have a length without octets.
        let len = self.sequence_len(4)?;
        let ids: Ids = (0..len).map(|_| self.shared_string()).collect::<Result<_, _>>()?;
        self.read_values().lists.insert(at, Arc::clone(&ids));
        Ok(ids)
    }
}
