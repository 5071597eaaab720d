//! The authentication of callers: bearer tokens (RFC 6750) and client certificates.

use std::fmt;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use axum::extract::Request;
use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use spandrel::authorization::{Identity, ReceivedCredentials};
use spandrel::net::transport::Address;
use spandrel::ssliop::PeerIdentity;
use subtle::ConstantTimeEq as _;

use super::Peer;
use super::origin::refusal_of_other_origin;
use crate::problem::Problem;

/// The fewest characters of a token.
const MIN_TOKEN: usize = 16;
/// The most octets of a file of tokens.
const MAX_FILE: u64 = 1 << 20;

/// The secret tokens that clients show in the field `Authorization`, with the name that each stands for.
#[derive(Clone, Default)]
pub struct Tokens(Vec<(String, String)>);

/// The reason for which a text is no list of tokens.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The file cannot be read.
    #[error("cannot read the tokens in {file}")]
    Unreadable {
        /// The file of tokens.
        file: String,
        /// The error of the operating system.
        #[source]
        source: std::io::Error,
    },
    /// The file is readable by others than its owner and group.
    #[error("the tokens in {file} can be read by every user of this machine: chmod 640 {file}")]
    Exposed {
        /// The file of tokens.
        file: String,
    },
    /// A file without a token, with which no client could identify itself.
    #[error(
        "there is no token in {file}: each line has a name, a blank, and a token of at least {MIN_TOKEN} characters"
    )]
    Empty {
        /// The file of tokens.
        file: String,
    },
    /// A line without a name, a blank and a token of sufficient length.
    #[error("{file}:{line}: expected a name, a blank, and a token of at least {MIN_TOKEN} characters")]
    Line {
        /// The file of tokens.
        file: String,
        /// The line, from one.
        line: usize,
    },
}

impl Tokens {
    /// A single token with the name of its client.
    #[must_use]
    pub fn one(name: impl Into<String>, token: impl Into<String>) -> Self {
        Self(vec![(name.into(), token.into())])
    }

    /// Reads a file: in each line a name, a blank, and a token; lines that begin with `#` are comments. There is one token
    /// at least.
    ///
    /// # Errors
    /// [`TokenError`].
    pub fn read(path: &Path) -> Result<Self, TokenError> {
        let file = path.display().to_string();
        let unreadable = |source| TokenError::Unreadable { file: file.clone(), source };
        let metadata = fs::metadata(path).map_err(unreadable)?;
        if metadata.len() > MAX_FILE {
            return Err(unreadable(std::io::Error::other(format!("it has more than {MAX_FILE} octets"))));
        }
        #[cfg(unix)]
        if std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o007 != 0 {
            return Err(TokenError::Exposed { file });
        }
        let text = fs::read_to_string(path).map_err(unreadable)?;
        let lines =
            text.lines().map(str::trim).enumerate().filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let tokens = lines.map(|(number, line)| match line.split_once(char::is_whitespace) {
            Some((name, token)) if is_token(token.trim()) => Ok((name.to_owned(), token.trim().to_owned())),
            _ => Err(TokenError::Line { file: file.clone(), line: number + 1 }),
        });
        let tokens = tokens.collect::<Result<Vec<_>, _>>()?;
        if tokens.is_empty() { Err(TokenError::Empty { file }) } else { Ok(Self(tokens)) }
    }

    /// The name of a token. The time does not depend on the place of a difference.
    fn name_of(&self, token: &str) -> Option<&str> {
        let mut token_name = None;
        for (name, known) in &self.0 {
            if bool::from(known.as_bytes().ct_eq(token.as_bytes())) {
                token_name = Some(name.as_str());
            }
        }
        token_name
    }
}

/// Whether a text may be a token (RFC 6750, 2.1: `b64token`).
fn is_token(text: &str) -> bool {
    let is_allowed = |octet: u8| octet.is_ascii_alphanumeric() || b"-._~+/=".contains(&octet);
    text.len() >= MIN_TOKEN && text.bytes().all(is_allowed)
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

/// The authenticated sender of a request, as an extension of the request.
#[derive(Clone, Debug)]
pub struct Caller(pub ReceivedCredentials);

/// The ways in which a caller may show its identity.
#[derive(Clone, Debug, Default)]
pub struct Authentication {
    /// The tokens that clients may show.
    pub tokens: Tokens,
    /// Whether a verified client certificate suffices.
    pub certificates: bool,
    /// Whether callers without either are served.
    pub anonymous: bool,
}

impl Authentication {
    /// A middleware that adds the [`Caller`] to a request, or answers 401. Requests without a token from
    /// pages of another origin get 403, because a browser adds its certificate to the requests of every page.
    pub async fn check(self: Arc<Self>, mut request: Request, next: Next) -> Response {
        let Some(peer) = request.extensions().get::<Peer>() else {
            return Problem::internal("the connection is not known").into_response();
        };
        if !request.headers().contains_key(AUTHORIZATION)
            && let Some(refusal) = refusal_of_other_origin(&request)
        {
            return refusal.into_response();
        }
        match self.identity(peer, request.headers()) {
            Some(identity) => {
                let address = Address::new("http", peer.address.to_string());
                request.extensions_mut().insert(Caller(ReceivedCredentials::of_caller(address, identity)));
                next.run(request).await
            }
            None => {
                let problem = Problem::new(StatusCode::UNAUTHORIZED, "authentication is required")
                    .detail("send `Authorization: Bearer TOKEN`, or a client certificate, as this server expects")
                    .header(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
                problem.into_response()
            }
        }
    }

    /// The identity of the sender; `None` if it is not accepted. A token that is not known is never anonymous.
    fn identity(&self, peer: &Peer, headers: &HeaderMap) -> Option<Identity> {
        if let Some(value) = headers.get(AUTHORIZATION) {
            let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
            let name = if scheme.eq_ignore_ascii_case("bearer") { self.tokens.name_of(token.trim()) } else { None };
            return name.map(Identity::of_token);
        }
        if self.certificates
            && let Some(peer) = PeerIdentity::of_verified(peer.certificates.to_vec())
        {
            return Some(Identity::of(&peer));
        }
        self.anonymous.then(Identity::default)
    }
}
