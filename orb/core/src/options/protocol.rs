//! What is written and what is read: versions, fragments, and how much of everything a message may have.

use spandrel_cdr::{ByteOrder, GiopVersion};
use spandrel_giop::AddressingDisposition;

use crate::OrbBuilder;

impl OrbBuilder {
    /// The newest protocol version that requests are written in (default 1.2).
    #[must_use]
    pub fn giop_version(mut self, version: GiopVersion) -> Self {
        self.settings.wire.version = version;
        self
    }

    /// The order in which numbers are written (default: this machine's). What is read may have either.
    #[must_use]
    pub fn byte_order(mut self, order: ByteOrder) -> Self {
        self.settings.wire.order = order;
        #[cfg(feature = "server")]
        {
            self.server.order = order;
        }
        self
    }

    /// How requests say which object they are for (default: by its key; `omniORB` calls it `giopTargetAddressMode`). Servers may ask for
    /// another way, and get it. Before GIOP 1.2 there is only the key.
    #[must_use]
    pub fn target_addressing(mut self, addressing: AddressingDisposition) -> Self {
        self.settings.wire.addressing = addressing;
        self
    }

    /// The largest message that is accepted, in octets (default 64 MiB).
    #[must_use]
    pub fn max_message(mut self, octets: usize) -> Self {
        self.client.max_message = octets;
        #[cfg(feature = "server")]
        {
            self.server.max_message = octets;
        }
        self
    }

    /// Sends what is longer than so many octets in fragments of at most that length, headers included (default `None`: messages are
    /// sent whole, as nearly all ORBs take them, and cutting them would only cost; at least 64). Requests, replies and, since GIOP 1.2, what
    /// asks and says where objects are can be cut; GIOP 1.0 has no fragments, and in 1.1 only messages with long runs of octets, text or
    /// numbers of at most four octets are cut. Fragments that are received are always understood (9.4.9).
    #[must_use]
    pub fn fragment_size(mut self, octets: Option<usize>) -> Self {
        let octets = fragment_size(octets);
        self.client.fragment_sizes.set(octets);
        #[cfg(feature = "server")]
        {
            self.server.fragment_size = octets;
        }
        self
    }

    /// The same for requests to one peer, by its host, or host and port: `host`, `host:2809`, `[::1]:2809`; for another family than TCP by
    /// its address.
    #[must_use]
    pub fn fragment_size_for(mut self, peer: impl Into<String>, octets: Option<usize>) -> Self {
        self.client.fragment_sizes.set_for(peer.into(), fragment_size(octets));
        self
    }

    /// How many service contexts a message may have (default 256). A request that has more is answered with IMP_LIMIT; a call whose reply
    /// has more ends in that.
    #[must_use]
    #[cfg(any(feature = "details", feature = "server"))]
    pub fn max_service_contexts(mut self, count: usize) -> Self {
        #[cfg(feature = "details")]
        {
            self.settings.context_limits.count = count;
        }
        #[cfg(feature = "server")]
        {
            self.server.context_limits.count = count;
        }
        self
    }

    /// How many octets the service contexts of a message may have together (default one MiB). A request that has more is answered with
    /// IMP_LIMIT; a call whose reply has more ends in that.
    #[must_use]
    #[cfg(any(feature = "details", feature = "server"))]
    pub fn max_service_context_octets(mut self, octets: usize) -> Self {
        #[cfg(feature = "details")]
        {
            self.settings.context_limits.octets = octets;
        }
        #[cfg(feature = "server")]
        {
            self.server.context_limits.octets = octets;
        }
        self
    }

    /// Whether exceptions take along to their client what is known here of their cause, in words (default: they do not, since it may be
    /// nothing for strangers). The context is that of the standard (`ExceptionDetailMessage`); what other servers say in it is always read.
    #[must_use]
    #[cfg(feature = "server")]
    pub fn exception_details(mut self, are_sent: bool) -> Self {
        self.settings.serving.sends_exception_details = are_sent;
        self
    }

    /// How deep received values may nest (default 64).
    #[must_use]
    pub fn max_nesting(mut self, depth: u16) -> Self {
        self.settings.wire.limits.nesting = depth;
        #[cfg(feature = "server")]
        {
            self.server.limits.nesting = depth;
        }
        self
    }

    /// How deep values may nest in each other's state, sent or received (default 256). A list of values is as deep as it is long,
    /// and each level takes one to four KiB of a thread's stack.
    #[must_use]
    pub fn max_value_nesting(mut self, depth: u16) -> Self {
        self.settings.wire.limits.value_nesting = depth;
        #[cfg(feature = "server")]
        {
            self.server.limits.value_nesting = depth;
        }
        self
    }

    /// How many values a received message may have (default 262,144).
    #[must_use]
    pub fn max_values(mut self, count: u32) -> Self {
        self.settings.wire.limits.values = count;
        #[cfg(feature = "server")]
        {
            self.server.limits.values = count;
        }
        self
    }
}

fn fragment_size(octets: Option<usize>) -> usize {
    octets.map_or(usize::MAX, |octets| octets.max(spandrel_giop::MIN_FRAGMENT))
}
