//! The cache of request headers that a reference has sent (request caching, paper 003).
//!
//! Most references are called with few operations many times. The common part of their requests (key,
//! operation, the same contexts or none) is then one copy. It never changes, since a reference's profile does
//! not: there is no invalidation, and no lock.

use std::sync::OnceLock;

use spandrel_giop::{CompleteHeader, RequestTemplate, ServiceContext};

/// The number of operations whose headers are cached: those that are called first.
const MAX_OPERATIONS: usize = 4;
/// Operations with longer names are not cached.
const MAX_NAME_OCTETS: usize = 64;

/// The headers of one profile's requests.
#[derive(Debug, Default)]
pub(crate) struct RequestCache(OnceLock<Box<CachedHeaders>>);

/// A header, and the link to the next.
#[derive(Debug)]
struct CachedHeaders {
    operation: Box<str>,
    header: CompleteHeader,
    next: RequestCache,
}

impl RequestCache {
    /// Returns the header of requests for this operation; `None` if it is not cached. `contexts` returns the
    /// contexts that are always sent with it.
    #[inline]
    pub(crate) fn header(
        &self,
        template: &RequestTemplate,
        operation: &str,
        contexts: impl Fn() -> Vec<ServiceContext>,
    ) -> Option<&CompleteHeader> {
        let mut cell = self;
        for _ in 0..MAX_OPERATIONS {
            let cached = match cell.0.get() {
                Some(cached) => cached,
                None => cell.insert(template, operation, &contexts())?,
            };
            if *cached.operation == *operation {
                return Some(&cached.header);
            }
            cell = &cached.next;
        }
        None
    }

    /// Caches the header here, unless another thread has just cached another.
    #[cold]
    fn insert(
        &self,
        template: &RequestTemplate,
        operation: &str,
        contexts: &[ServiceContext],
    ) -> Option<&CachedHeaders> {
        // The encoding of other text is left to each request.
        if operation.len() > MAX_NAME_OCTETS || !operation.is_ascii() {
            return None;
        }
        let header = template.complete(operation, contexts).ok()?;
        let cached = CachedHeaders { operation: operation.into(), header, next: Self::default() };
        Some(self.0.get_or_init(|| Box::new(cached)))
    }
}

#[cfg(test)]
mod tests {
    use spandrel_cdr::{Encoder, Wire};
    use spandrel_giop::ResponseFlags;

    use super::*;

    fn template() -> RequestTemplate {
        RequestTemplate::new(Wire::default(), b"key")
    }

    fn encoded(begin: impl FnOnce(&mut Encoder<'_>) -> spandrel_giop::Body) -> Vec<u8> {
        let mut out = Encoder::new(Wire::default());
        let body = begin(&mut out);
        out.u32(7);
        body.end(&mut out).unwrap();
        out.to_vec()
    }

    #[test]
    fn each_operation_has_its_own_header_and_few_are_kept() {
        let (template, cache) = (template(), RequestCache::default());
        for round in 1..4 {
            for operation in ["a", "b", "_get_a", "", "fifth", "sixth"] {
                let expected = encoded(|out| template.begin(out, round, ResponseFlags::TWO_WAY, operation, &[]));
                match cache.header(&template, operation, Vec::new) {
                    Some(header) => {
                        assert_eq!(encoded(|out| header.begin(out, round, ResponseFlags::TWO_WAY)), expected);
                    }
                    None => assert!(["fifth", "sixth"].contains(&operation)),
                }
            }
        }
    }

    #[test]
    fn requests_with_other_names_are_not_cached() {
        let (template, cache) = (template(), RequestCache::default());
        for operation in ["\u{e9}", "nul\0", &"long".repeat(20)] {
            assert!(cache.header(&template, operation, Vec::new).is_none(), "{operation}");
        }
        assert!(cache.0.get().is_none());
    }
}
