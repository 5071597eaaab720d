//! The administrators and proxies of a channel, as far as their changes agree.

use spandrel::net::sync::Arc;

use crate::admin::Admin;
use crate::kind::Side;
use crate::member::MemberCell;
use crate::proxy::Proxy;

/// An administrator or a proxy.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Member<'m> {
    Admin(&'m Admin),
    Proxy(&'m Arc<Proxy>),
}

impl<'m> Member<'m> {
    pub(crate) fn cell(self) -> &'m MemberCell {
        match self {
            Self::Admin(admin) => &admin.state,
            Self::Proxy(proxy) => &proxy.state,
        }
    }

    pub(crate) fn side(self) -> Side {
        match self {
            Self::Admin(admin) => admin.side,
            Self::Proxy(proxy) => proxy.kind.side,
        }
    }
}
