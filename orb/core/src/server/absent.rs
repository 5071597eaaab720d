//! What generated code names of the server where there is none.

use std::{convert::Infallible, marker::PhantomData};

use spandrel_cdr::engine::Value;
use spandrel_giop::SystemException;

use crate::{Replied, UserException};

/// A request that waits for its answer. Without the feature `server` there are none.
#[derive(Debug)]
pub struct ServerCall<'m> {
    none: Infallible,
    message: PhantomData<&'m ()>,
}

impl ServerCall<'_> {
    /// Answers with an exception that the operation raises.
    ///
    /// # Errors
    /// None: there are no calls.
    pub fn user_exception<X: UserException>(self, _exception: &X) -> Result<Replied, SystemException> {
        let Self { none, message: PhantomData } = self;
        match none {}
    }

    /// As above.
    pub(crate) fn raise(self, _repository_id: &str, _members: &Value<'_>) -> Result<Replied, SystemException> {
        let Self { none, message: PhantomData } = self;
        match none {}
    }
}
