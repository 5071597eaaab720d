//! The link from one message block to the next, safe for chains of any length.

use crate::MessageBlock;

/// What follows a message block in its chain. Dropping and cloning go along the chain without recursion, so that a
/// long chain does not overflow the stack.
#[derive(Default)]
pub(crate) struct Next(pub(crate) Option<Box<MessageBlock>>);

impl Clone for Next {
    fn clone(&self) -> Self {
        let mut first = Self::default();
        let mut end = &mut first;
        let mut link = self.0.as_deref();
        while let Some(block) = link {
            end = &mut end.0.insert(Box::new(block.first())).next;
            link = block.next();
        }
        first
    }
}

impl Drop for Next {
    fn drop(&mut self) {
        let mut link = self.0.take();
        while let Some(mut block) = link {
            link = block.next.0.take();
        }
    }
}
