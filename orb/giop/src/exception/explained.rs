//! The explanation and the cause of a system exception, for people on this side.

use std::{error::Error, sync::Arc};

/// An explanation and a cause, if there are any. Without any it is one word.
#[derive(Clone, Debug)]
pub(super) struct Detail(Option<Box<Content>>);

#[derive(Clone, Debug, Default)]
struct Content {
    text: Option<String>,
    /// The explanation that may be sent.
    public_text: Option<String>,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

impl Detail {
    pub(super) const NONE: Self = Self(None);
    pub(super) const IS_KEPT: bool = true;

    #[inline]
    pub(super) fn set_text(&mut self, text: impl FnOnce() -> String) {
        self.put_text(text());
    }

    #[cold]
    fn put_text(&mut self, text: String) {
        self.0.get_or_insert_default().text = Some(text);
    }

    #[inline]
    pub(super) fn set_public_text(&mut self, text: impl FnOnce() -> String) {
        self.put_public_text(text());
    }

    #[cold]
    fn put_public_text(&mut self, text: String) {
        self.0.get_or_insert_default().public_text = Some(text);
    }

    pub(super) fn set_source(&mut self, source: impl Error + Send + Sync + 'static) {
        self.put_source(Arc::new(source));
    }

    fn put_source(&mut self, source: Arc<dyn Error + Send + Sync>) {
        self.0.get_or_insert_default().source = Some(source);
    }

    pub(super) fn text(&self) -> Option<&str> {
        self.0.as_ref()?.text.as_deref()
    }

    pub(super) fn public_text(&self) -> Option<&str> {
        self.0.as_ref()?.public_text.as_deref()
    }

    pub(super) fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&**self.0.as_ref()?.source.as_ref()?)
    }
}
