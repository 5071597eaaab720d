//! System exceptions without explanation and cause: both are dropped where they would be kept.

use std::error::Error;

/// No explanation and no cause.
#[derive(Clone, Debug)]
pub(super) struct Detail;

impl Detail {
    pub(super) const NONE: Self = Self;
    pub(super) const IS_KEPT: bool = false;

    #[inline]
    pub(super) fn set_text(&mut self, text: impl FnOnce() -> String) {
        drop(text);
    }

    #[inline]
    pub(super) fn set_public_text(&mut self, text: impl FnOnce() -> String) {
        drop(text);
    }

    #[inline]
    pub(super) fn set_source(&mut self, source: impl Error + Send + Sync + 'static) {
        drop(source);
    }

    pub(super) fn text(&self) -> Option<&str> {
        None
    }

    pub(super) fn public_text(&self) -> Option<&str> {
        None
    }

    pub(super) fn source(&self) -> Option<&(dyn Error + 'static)> {
        None
    }
}
