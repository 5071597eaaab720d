//! Options of the protocol: GIOP versions, byte order, fragments, limits of messages.

use spandrel_cdr::{ByteOrder, GiopVersion};
use spandrel_giop::AddressingDisposition;

use crate::OrbBuilder;

impl OrbBuilder {
    /// The newest GIOP version of requests (default 1.2).
    #[must_use]
    pub fn giop_version(mut self, version: GiopVersion) -> Self {
        self.settings.wire.version = version;
        self
    }

    /// The byte order of sent messages (default: this machine's). Received messages may have either order.
    #[must_use]
    pub fn byte_order(mut self, order: ByteOrder) -> Self {
        self.settings.wire.order = order;
        self.server_mut().order = order;
        self
    }

    /// How requests address their object (default: by its key; `omniORB` calls it `giopTargetAddressMode`). A
    /// server may ask for another addressing disposition, and gets it. Before GIOP 1.2 there is only the key.
    #[must_use]
    pub fn target_addressing(mut self, addressing: AddressingDisposition) -> Self {
        self.settings.wire.addressing = addressing;
        self
    }

    /// The maximum size of a received message, in octets (default 64 MiB).
    #[must_use]
    pub fn max_message(mut self, octets: usize) -> Self {
        self.client.max_message = octets;
        self.server_mut().max_message = octets;
        self
    }

    /// The maximum size of a sent message in octets, headers included. Longer messages are sent in fragments
    /// of at most this size (at least 64). The default `None` sends no fragments: nearly all ORBs accept
    /// whole messages, and fragments would only cost time.
    ///
    /// Requests, replies and, since GIOP 1.2, LocateRequest and LocateReply can be fragmented. GIOP 1.0 has
    /// no fragments. In GIOP 1.1 only messages with long runs of octets, text or numbers of at most four
    /// octets are fragmented. Received fragments are always accepted (9.4.9).
    #[must_use]
    pub fn fragment_size(mut self, octets: Option<usize>) -> Self {
        let octets = fragment_size(octets);
        self.client.fragment_sizes.set(octets);
        self.server_mut().fragment_size = octets;
        self
    }

    /// The [maximum size](Self::fragment_size) of requests to one peer, named by its host, or host and port:
    /// `host`, `host:2809`, `[::1]:2809`. A peer of another family than TCP is named by its address.
    #[must_use]
    pub fn fragment_size_for(mut self, peer: impl Into<String>, octets: Option<usize>) -> Self {
        self.client.fragment_sizes.set_for(peer.into(), fragment_size(octets));
        self
    }

    /// The maximum number of service contexts in a message (default 256). A request with more is answered
    /// with IMP_LIMIT. With the feature `details`, a call whose reply has more ends in IMP_LIMIT.
    #[must_use]
    pub fn max_service_contexts(mut self, count: usize) -> Self {
        self.settings.context_limits.count = count;
        self.server_mut().context_limits.count = count;
        self
    }

    /// The maximum size of all service contexts of a message, in octets (default 1 MiB). A request with more
    /// is answered with IMP_LIMIT. With the feature `details`, a call whose reply has more ends in IMP_LIMIT.
    #[must_use]
    pub fn max_service_context_octets(mut self, octets: usize) -> Self {
        self.settings.context_limits.octets = octets;
        self.server_mut().context_limits.octets = octets;
        self
    }

    /// Whether a reply with an exception carries the whole text that describes its cause (default: no, since the text
    /// may be confidential), and not only its [public part](spandrel_giop::SystemException::public_detail).
    /// The standard context `ExceptionDetailMessage` carries it. Clients always read
    /// the texts of other servers.
    #[must_use]
    pub fn exception_details(mut self, are_sent: bool) -> Self {
        self.server_mut().sends_exception_details = are_sent;
        self
    }

    /// The maximum nesting depth of received values (default 64).
    #[must_use]
    pub fn max_nesting(mut self, depth: u16) -> Self {
        self.settings.wire.limits.nesting = depth;
        self.server_mut().limits.nesting = depth;
        self
    }

    /// The maximum nesting depth of value types in each other's state, sent or received (default 256). A
    /// linked list is as deep as it is long, and each level takes one to four KiB of a thread's stack.
    #[must_use]
    pub fn max_value_nesting(mut self, depth: u16) -> Self {
        self.settings.wire.limits.value_nesting = depth;
        self.server_mut().limits.value_nesting = depth;
        self
    }

    /// The maximum number of values in a received message (default 262,144).
    #[must_use]
    pub fn max_values(mut self, count: u32) -> Self {
        self.settings.wire.limits.values = count;
        self.server_mut().limits.values = count;
        self
    }

    /// The memory that the decoded values of a message may take beyond its octets: this multiple of its length
    /// (default 32), and 1 MiB (`-ORBMaxDecodedFactor`). A server charges it to the client as well.
    #[must_use]
    pub fn max_decoded_factor(mut self, factor: u32) -> Self {
        self.settings.wire.limits.decoded_factor = factor;
        self.server_mut().limits.decoded_factor = factor;
        self
    }
}

fn fragment_size(octets: Option<usize>) -> usize {
    octets.map_or(usize::MAX, |octets| octets.max(spandrel_giop::MIN_FRAGMENT))
}
