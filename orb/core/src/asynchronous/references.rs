//! References from URLs and names, without blocking a thread while a naming service is called.

use spandrel_cdr::{Decode, Ior};
use spandrel_giop::SystemException;

use crate::{
    ObjectRef, Orb,
    corbaname::{Resolution, ResolveError},
    references::UrlPath,
};

impl Orb {
    /// As [`string_to_object`](Self::string_to_object), asynchronously. Only a `corbaname:` with a name after `#`
    /// waits.
    ///
    /// # Errors
    /// As [`string_to_object`](Self::string_to_object).
    pub fn string_to_object_async(
        &self,
        text: &str,
    ) -> impl Future<Output = Result<ObjectRef, SystemException>> + Send + 'static + use<> {
        let path = if self.settings().parses_urls {
            self.check_not_destroyed().and_then(|()| self.check_process()).and_then(|()| self.locate_url(text))
        } else {
            self.string_to_object(text).map(UrlPath::to)
        };
        async move { resolve(path?).await }
    }

    /// As [`resolve_initial_references`](Self::resolve_initial_references), asynchronously.
    ///
    /// # Errors
    /// As [`resolve_initial_references`](Self::resolve_initial_references).
    pub fn resolve_initial_references_async(
        &self,
        name: &str,
    ) -> impl Future<Output = Result<ObjectRef, SystemException>> + Send + 'static + use<> {
        let path = self.locate_initial(name);
        async move { resolve(path?).await }
    }
}

/// Calls the naming services of a path.
async fn resolve(path: UrlPath) -> Result<ObjectRef, SystemException> {
    let mut object = path.object;
    for name in &path.names {
        let mut resolution = Resolution::new(object, name);
        object = loop {
            let reply = {
                let (context, operation, encode) = resolution.request();
                context.invoke_async::<Ior, ResolveError>(operation, encode, Ior::decode)
            };
            if let Some(object) = resolution.accept(reply.await)? {
                break object;
            }
        };
    }
    Ok(object)
}
