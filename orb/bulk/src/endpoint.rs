//! The text form of bulk endpoints.

use std::{fmt, path::PathBuf};

use spandrel_transport::Address;

/// An address at which a party listens for bulk connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    /// `tcp://host:port`, in clear.
    Tcp(String, u16),
    /// `tls://host:port`, with certificates of both parties.
    Tls(String, u16),
    /// `unix:/path`, for parties on one machine.
    Unix(PathBuf),
    /// `shm:/path` of the socket that passes the memory, for parties on one machine with Linux.
    Shm(PathBuf),
}

impl Endpoint {
    /// The endpoint in this text; `None` for other texts, such as those of later versions.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        for (scheme, local) in [("unix:", Self::Unix as fn(PathBuf) -> Self), ("shm:", Self::Shm)] {
            if let Some(path) = text.strip_prefix(scheme) {
                return path.starts_with('/').then(|| local(path.into()));
            }
        }
        let (scheme, rest) = text.split_once("://")?;
        let address = Address::new("tcp", rest);
        let (host, port) = address.host_and_port()?;
        if host.is_empty() || port == 0 {
            return None;
        }
        match scheme {
            "tcp" => Some(Self::Tcp(host.to_owned(), port)),
            "tls" => Some(Self::Tls(host.to_owned(), port)),
            _ => None,
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(host, port) => write!(f, "tcp://{}", Address::at_port("tcp", host, *port).address()),
            Self::Tls(host, port) => write!(f, "tls://{}", Address::at_port("tls", host, *port).address()),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Shm(path) => write!(f, "shm:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_have_a_text_form() {
        for (text, expected) in [
            ("tcp://127.0.0.1:9", Some(Endpoint::Tcp("127.0.0.1".to_owned(), 9))),
            ("tls://[::1]:65535", Some(Endpoint::Tls("::1".to_owned(), 65535))),
            ("unix:/run/x y", Some(Endpoint::Unix("/run/x y".into()))),
            ("unix:x", None),
            ("shm:/run/x y", Some(Endpoint::Shm("/run/x y".into()))),
            ("shm:x", None),
            ("tcp://:1", None),
            ("tcp://a:0", None),
            ("tcp://a:65536", None),
            ("tcp:a:1", None),
            ("quic://a:1", None),
            ("", None),
        ] {
            assert_eq!(Endpoint::parse(text), expected, "{text}");
            assert!(expected.is_none_or(|endpoint| endpoint.to_string() == text), "{text}");
        }
    }
}
