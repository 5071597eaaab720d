//! Policies: their text, and the evaluation of their rules.

use std::{
    fmt,
    net::IpAddr,
    ops::Range,
    path::{Path, PathBuf},
    str::FromStr,
};

use serde::Deserialize;
use spandrel_transport::{DIOP, Prefix};
use toml::Spanned;
use wildmatch::WildMatch;

use crate::credentials::{Identity, ReceivedCredentials};
use crate::issuer::IssuerPattern;

/// The longest text of a policy, in octets.
const MAX_OCTETS: u64 = 4 << 20;
/// The most rules of a policy.
const MAX_RULES: usize = 10_000;

/// A policy: rules in order, of which the first that matches decides. See the [crate](crate) for its text.
///
/// ```
/// # mod spandrel { pub use spandrel_authorization as authorization; }
/// use spandrel::authorization::Policy;
///
/// let error = "[[rule]]\naction = \"permit\"".parse::<Policy>().unwrap_err();
/// assert_eq!(error.to_string(), "line 2, column 10: unknown action `permit`: expected `allow` or `deny`");
/// ```
#[derive(Debug)]
pub struct Policy {
    pub(crate) rules: Vec<Rule>,
    /// Whether denied requests alone are written to the audit log.
    pub(crate) audits_denied_only: bool,
}

/// The reason why a text is no policy, with its place.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PolicyError {
    file: Option<PathBuf>,
    /// Line and column, from one.
    place: Option<(usize, usize)>,
    reason: String,
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.file, self.place) {
            (Some(file), Some((line, column))) => write!(f, "{}:{line}:{column}: ", file.display())?,
            (None, Some((line, column))) => write!(f, "line {line}, column {column}: ")?,
            (Some(file), None) => write!(f, "cannot read the policy {}: ", file.display())?,
            (None, None) => {}
        }
        f.write_str(&self.reason)
    }
}

impl std::error::Error for PolicyError {}

impl PolicyError {
    /// Line and column of the error, from one; `None` if the file could not be read.
    #[must_use]
    pub fn place(&self) -> Option<(usize, usize)> {
        self.place
    }

    fn at(text: &str, span: Option<Range<usize>>, reason: String) -> Self {
        let end = span.map_or(text.len(), |span| span.start.min(text.len()));
        // The parser's spans begin at characters. Anything else counts to the character before.
        let end = (0..=end).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
        let before = &text[..end];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        Self { file: None, place: Some((line, column)), reason }
    }
}

impl Policy {
    /// Reads a policy file, and checks it as a whole.
    ///
    /// # Errors
    /// A file that cannot be read, or that is no policy.
    pub fn read(file: &Path) -> Result<Self, PolicyError> {
        let unreadable = |reason: String| PolicyError { file: Some(file.to_owned()), place: None, reason };
        let octets = std::fs::metadata(file).map_err(|error| unreadable(error.to_string()))?.len();
        if octets > MAX_OCTETS {
            return Err(unreadable(format!("it has {octets} octets, and the limit is {MAX_OCTETS}")));
        }
        let text = std::fs::read_to_string(file).map_err(|error| unreadable(error.to_string()))?;
        let folder = file.parent().unwrap_or(Path::new(""));
        Self::parse(&text, folder).map_err(|error| PolicyError { file: Some(file.to_owned()), ..error })
    }

    /// The rules, in the order of the file.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rules.len()
    }

    /// Whether it has no rules: it denies everything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }
}

/// The text of a policy.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PolicyText {
    #[serde(default)]
    audit: Option<Spanned<String>>,
    #[serde(default)]
    rule: Vec<Spanned<RuleText>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleText {
    action: Spanned<String>,
    #[serde(default)]
    identity: Option<Spanned<Texts>>,
    #[serde(default)]
    issuer: Option<Spanned<Texts>>,
    #[serde(default)]
    address: Option<Spanned<Texts>>,
    #[serde(default)]
    key: Option<Spanned<Texts>>,
    #[serde(default)]
    adapter: Option<Spanned<Texts>>,
    #[serde(default)]
    interface: Option<Spanned<Texts>>,
    #[serde(default)]
    operation: Option<Spanned<Texts>>,
    #[serde(default)]
    path: Option<Spanned<Texts>>,
}

/// One text, or several.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a text or a list of texts")]
enum Texts {
    One(String),
    Several(Vec<String>),
}

/// Files that it names by relative paths are those of the working directory.
impl FromStr for Policy {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Self, PolicyError> {
        Self::parse(text, Path::new(""))
    }
}

impl Policy {
    /// Compiles the text of a policy; relative paths of files begin at `folder`.
    fn parse(text: &str, folder: &Path) -> Result<Self, PolicyError> {
        let parsed: PolicyText = toml::from_str(text)
            .map_err(|error| PolicyError::at(text, error.span(), error.message().trim().replace('\n', "; ")))?;
        let at = |span: Range<usize>, reason: String| PolicyError::at(text, Some(span), reason);
        let audits_denied_only = match &parsed.audit {
            None => false,
            Some(audit) => match audit.as_ref().as_str() {
                "all" => false,
                "denied" => true,
                other => {
                    let reason = format!("unknown value `{other}` of audit: expected `all` or `denied`");
                    return Err(at(audit.span(), reason));
                }
            },
        };
        if parsed.rule.len() > MAX_RULES {
            let reason = format!("there are {} rules, and the limit is {MAX_RULES}", parsed.rule.len());
            return Err(at(parsed.rule[MAX_RULES].span(), reason));
        }
        // Rules are in the order of the text, so that its lines are counted once.
        let (mut counted, mut line) = (0, 1);
        let compile = |rule: Spanned<RuleText>| {
            let start = rule.span().start;
            line += text.get(counted..start).map_or(0, |passed| passed.matches('\n').count());
            counted = start;
            Rule::compile(text, rule, line, folder)
        };
        let rules = parsed.rule.into_iter().map(compile).collect::<Result<_, _>>()?;
        Ok(Self { rules, audits_denied_only })
    }
}

/// The decision of a rule.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Action {
    Allow,
    Deny,
}

/// A rule, ready to be compared.
#[derive(Debug)]
pub(crate) struct Rule {
    /// Its line in the text, from one.
    pub(crate) line: usize,
    pub(crate) action: Action,
    identity: Option<Vec<IdentityPattern>>,
    issuer: Option<Vec<IssuerPattern>>,
    address: Option<Vec<AddressPattern>>,
    key: Option<Vec<String>>,
    adapter: Option<Vec<WildMatch>>,
    interface: Option<Vec<WildMatch>>,
    operation: Option<Vec<WildMatch>>,
    path: Option<Vec<String>>,
}

#[derive(Debug)]
enum IdentityPattern {
    Anonymous,
    Authenticated,
    CommonName(WildMatch),
    Dns(WildMatch),
    Uri(WildMatch),
    User(u32),
    Token(WildMatch),
}

#[derive(Debug)]
enum AddressPattern {
    Loopback,
    Scheme(&'static str),
    Prefix(Prefix),
}

const IDENTITIES: &str =
    "expected `anonymous`, `authenticated`, or `cn:`, `dns:`, `uri:`, `uid:`, `token:` and a value";
const ADDRESSES: &str = "expected an IP address, a prefix such as 10.0.0.0/8, `loopback`, `uds` or `shm`";

impl Rule {
    fn compile(text: &str, rule: Spanned<RuleText>, line: usize, folder: &Path) -> Result<Self, PolicyError> {
        let rule = rule.into_inner();
        let action = match rule.action.as_ref().as_str() {
            "allow" => Action::Allow,
            "deny" => Action::Deny,
            other => {
                let reason = format!("unknown action `{other}`: expected `allow` or `deny`");
                return Err(PolicyError::at(text, Some(rule.action.span()), reason));
            }
        };
        let pattern = |value: &str| {
            if value.is_empty() {
                Err("the pattern is empty: `*` matches everything".to_owned())
            } else {
                Ok(WildMatch::new(value))
            }
        };
        let adapter = |value: &str| adapter_pattern(value).and_then(pattern);
        Ok(Self {
            line,
            action,
            identity: list(text, rule.identity, identity_pattern)?,
            issuer: list(text, rule.issuer, |value| IssuerPattern::new(value, folder))?,
            address: list(text, rule.address, address_pattern)?,
            key: list(text, rule.key, object_key)?,
            adapter: list(text, rule.adapter, adapter)?,
            interface: list(text, rule.interface, pattern)?,
            operation: list(text, rule.operation, |value| operation_pattern(value).and_then(pattern))?,
            path: list(text, rule.path, path_prefix)?,
        })
    }

    /// Whether this peer matches, and the rule has to be compared with its requests.
    pub(crate) fn matches_peer(&self, peer: &ReceivedCredentials) -> bool {
        let identity = peer.identity();
        let is_datagram = peer.address().scheme() == DIOP;
        let has_address = |pattern: &AddressPattern| match pattern {
            AddressPattern::Loopback => peer.ip().is_some_and(|ip| ip.to_canonical().is_loopback()),
            AddressPattern::Scheme(scheme) => peer.address().scheme() == *scheme,
            AddressPattern::Prefix(prefix) => peer.ip().is_some_and(|ip: IpAddr| prefix.contains(ip)),
        };
        let is_forgeable = is_datagram && self.action == Action::Allow && self.address.is_some();
        !is_forgeable
            && any(&self.identity, |pattern| pattern.matches(identity))
            && any(&self.issuer, |pattern| pattern.matches(identity).unwrap_or(self.action == Action::Deny))
            && any(&self.address, has_address)
    }

    /// Whether a request of a peer that matches is meant.
    pub(crate) fn matches_request(&self, request: &RequestFacts<'_>) -> Match {
        let mut outcome = Match::Yes;
        let mut and = |known: Match| {
            outcome = match (outcome, known) {
                (Match::No, _) | (_, Match::No) => Match::No,
                (Match::Unknown, _) | (_, Match::Unknown) => Match::Unknown,
                _ => Match::Yes,
            };
            outcome != Match::No
        };
        let within = |patterns: &[WildMatch], text: &str| patterns.iter().any(|pattern| pattern.matches(text));
        let goes_on = self.operation.as_ref().is_none_or(|operations| {
            and(request.operation.map_or(Match::Unknown, |operation| within(operations, operation).into()))
        }) && self.adapter.as_ref().is_none_or(|adapters| {
            and(request.adapter.map_or(Match::Unknown, |adapter| within(adapters, adapter).into()))
        }) && self.interface.as_ref().is_none_or(|interfaces| {
            and(request.interface.map_or(Match::Unknown, |interface| within(interfaces, interface).into()))
        }) && self.path.as_ref().is_none_or(|paths| {
            and(match request.path {
                PathFact::Later => Match::Unknown,
                PathFact::None => Match::No,
                PathFact::Is(path) => paths.iter().any(|prefix| is_within(path, prefix)).into(),
            })
        });
        if goes_on && let Some(keys) = &self.key {
            and(keys.iter().any(|key| (request.has_key)(key)).into());
        }
        outcome
    }
}

/// The information on a request, as far as it is known.
#[derive(Clone, Copy)]
pub(crate) struct RequestFacts<'r> {
    /// `None` for a LocateRequest.
    pub(crate) operation: Option<&'r str>,
    /// The names of the adapters below the root, separated by `/`; `None` if not known yet.
    pub(crate) adapter: Option<&'r str>,
    pub(crate) interface: Option<&'r str>,
    pub(crate) path: PathFact<'r>,
    /// Whether a plain key is that of the object.
    pub(crate) has_key: &'r dyn Fn(&str) -> bool,
}

/// The path of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PathFact<'r> {
    /// The service will ask with the path.
    Later,
    /// The request has none.
    None,
    Is(&'r str),
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Match {
    No,
    Unknown,
    Yes,
}

impl From<bool> for Match {
    fn from(matches: bool) -> Self {
        if matches { Self::Yes } else { Self::No }
    }
}

/// The result of a policy for a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Decision {
    /// By the rule at this line.
    Allow(usize),
    /// By the rule at this line, or because none matches.
    Deny(Option<usize>),
    /// It depends on information that is not known yet.
    Open,
}

/// The decision of the first rule that matches.
pub(crate) fn decide<'r>(rules: impl Iterator<Item = &'r Rule>, request: &RequestFacts<'_>) -> Decision {
    let (mut may_allow, mut may_deny) = (false, false);
    let mut last = Decision::Deny(None);
    for rule in rules {
        match (rule.matches_request(request), rule.action) {
            (Match::No, _) => {}
            (Match::Unknown, Action::Allow) => may_allow = true,
            (Match::Unknown, Action::Deny) => may_deny = true,
            (Match::Yes, Action::Allow) => {
                last = Decision::Allow(rule.line);
                break;
            }
            (Match::Yes, Action::Deny) => {
                last = Decision::Deny(Some(rule.line));
                break;
            }
        }
    }
    match last {
        Decision::Allow(_) if may_deny => Decision::Open,
        Decision::Deny(_) if may_allow => Decision::Open,
        decided => decided,
    }
}

impl IdentityPattern {
    fn matches(&self, identity: &Identity) -> bool {
        match self {
            Self::Anonymous => !identity.is_authenticated(),
            Self::Authenticated => identity.is_authenticated(),
            Self::CommonName(pattern) => identity.common_name.as_ref().is_some_and(|name| pattern.matches(name)),
            Self::Dns(pattern) => identity.dns_names.iter().any(|name| pattern.matches(&name.to_ascii_lowercase())),
            Self::Uri(pattern) => identity.uri_names.iter().any(|name| pattern.matches(name)),
            Self::User(user) => identity.user_id == Some(*user),
            Self::Token(pattern) => identity.token_name.as_ref().is_some_and(|name| pattern.matches(name)),
        }
    }
}

fn identity_pattern(value: &str) -> Result<IdentityPattern, String> {
    let bad = |reason: &str| Err(format!("invalid identity `{value}`: {reason}"));
    match value.split_once(':') {
        None if value == "anonymous" => Ok(IdentityPattern::Anonymous),
        None if value == "authenticated" => Ok(IdentityPattern::Authenticated),
        Some((_, "")) => bad("the value is empty"),
        Some(("cn", name)) => Ok(IdentityPattern::CommonName(WildMatch::new(name))),
        Some(("dns", name)) => Ok(IdentityPattern::Dns(WildMatch::new(&name.to_ascii_lowercase()))),
        Some(("uri", name)) => Ok(IdentityPattern::Uri(WildMatch::new(name))),
        Some(("token", name)) => Ok(IdentityPattern::Token(WildMatch::new(name))),
        Some(("uid", number)) => match number.parse() {
            Ok(number) => Ok(IdentityPattern::User(number)),
            Err(_) => bad("a user id is a number"),
        },
        _ => bad(IDENTITIES),
    }
}

fn address_pattern(value: &str) -> Result<AddressPattern, String> {
    match value {
        "loopback" => Ok(AddressPattern::Loopback),
        "uds" => Ok(AddressPattern::Scheme("uds")),
        "shm" => Ok(AddressPattern::Scheme("shm")),
        _ => value.parse().map(AddressPattern::Prefix).map_err(|_| format!("invalid address `{value}`: {ADDRESSES}")),
    }
}

/// A plain object key, which is compared as it is.
fn object_key(value: &str) -> Result<String, String> {
    match value {
        "" => Err("the object key is empty".to_owned()),
        key if key.contains(['*', '?']) => Err(format!("invalid object key `{key}`: keys have no wildcards")),
        key => Ok(key.to_owned()),
    }
}

/// The pattern of an operation: the characters of identifiers, and wildcards.
fn operation_pattern(value: &str) -> Result<&str, String> {
    let is_known = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '*' | '?');
    match value.chars().find(|letter| !is_known(*letter)) {
        None => Ok(value),
        Some(letter) => Err(format!(
            "invalid operation `{value}`: no operation has `{}`; wildcards are `*` and `?`",
            letter.escape_default()
        )),
    }
}

/// The pattern of adapters without the `/` before the first.
fn adapter_pattern(value: &str) -> Result<&str, String> {
    let names = value.strip_prefix('/').unwrap_or(value);
    let bad = |reason: &str| Err(format!("invalid adapter `{value}`: {reason}"));
    if names.starts_with("RootPOA/") {
        return bad("names begin below the root adapter, without `RootPOA/`");
    }
    if names.split('/').any(str::is_empty) && !names.is_empty() {
        return bad("it has an empty name");
    }
    Ok(names)
}

/// The prefix of paths in the string form that services compare, without `/` at its ends.
fn path_prefix(value: &str) -> Result<String, String> {
    let bad = |reason: &str| Err(format!("invalid path `{}`: {reason}", spandrel_error::escape(value)));
    let path = value.strip_prefix('/').unwrap_or(value);
    let path = path.strip_suffix('/').filter(|rest| !ends_in_escape(rest)).unwrap_or(path);
    if path.is_empty() {
        // All paths: `/` alone is another way to write it.
        return if value.len() > 1 { bad("it has an empty component") } else { Ok(String::new()) };
    }
    let mut component = String::new();
    let mut letters = path.chars();
    loop {
        let letter = letters.next();
        match letter {
            None | Some('/') => {
                let has_bare_dot = component.strip_suffix('.').is_some_and(|id| !id.is_empty() && !ends_in_escape(id));
                if component.is_empty() {
                    return bad("it has an empty component");
                }
                if has_bare_dot {
                    return bad("a component without a kind does not end with `.`");
                }
                if letter.is_none() {
                    return Ok(path.to_owned());
                }
                component.clear();
            }
            Some('*' | '?') => {
                return bad("paths have no wildcards: a path covers all below it");
            }
            Some('\\') => match letters.next() {
                Some(escaped @ ('/' | '.' | '\\')) => component.extend(['\\', escaped]),
                _ => return bad("`\\` stands before `/`, `.` or `\\` only"),
            },
            Some(letter) if letter.is_control() => return bad("it has a control character"),
            Some(letter) => component.push(letter),
        }
    }
}

/// Whether the last character of a text escapes the one after it.
fn ends_in_escape(text: &str) -> bool {
    text.chars().rev().take_while(|letter| *letter == '\\').count() % 2 == 1
}

/// The compiled values of a key.
fn list<T>(
    text: &str,
    texts: Option<Spanned<Texts>>,
    compile: impl Fn(&str) -> Result<T, String>,
) -> Result<Option<Vec<T>>, PolicyError> {
    let Some(texts) = texts else { return Ok(None) };
    let span = texts.span();
    let values = match texts.into_inner() {
        Texts::One(value) => vec![value],
        Texts::Several(values) => values,
    };
    if values.is_empty() {
        return Err(PolicyError::at(text, Some(span), "the list is empty: the rule would match nothing".to_owned()));
    }
    let compiled = values.iter().map(|value| compile(value)).collect::<Result<_, _>>();
    compiled.map(Some).map_err(|reason| PolicyError::at(text, Some(span), reason))
}

/// Whether one of the patterns matches; so does an absent key.
fn any<T>(patterns: &Option<Vec<T>>, matches: impl Fn(&T) -> bool) -> bool {
    patterns.as_ref().is_none_or(|patterns| patterns.iter().any(matches))
}

/// Whether the path is this one or below it. The empty prefix has all paths below it.
fn is_within(path: &str, prefix: &str) -> bool {
    let path = path.strip_prefix('/').unwrap_or(path);
    let rest = path.strip_prefix(prefix);
    rest.is_some_and(|rest| prefix.is_empty() || rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use spandrel_sync::Arc;
    use spandrel_transport::Address;

    use super::*;

    fn peer(scheme: &'static str, address: &str, identity: Identity) -> ReceivedCredentials {
        ReceivedCredentials::new(Arc::new(Address::new(scheme, address)), Arc::new(identity))
    }

    fn anonymous(address: &str) -> ReceivedCredentials {
        peer("iiop", address, Identity::default())
    }

    fn teller() -> ReceivedCredentials {
        let identity = Identity {
            common_name: Some("teller".to_owned()),
            dns_names: vec!["Teller.Bank.example".to_owned()],
            uri_names: vec!["spiffe://bank.example/teller".to_owned()],
            issuer: Some("Bank CA".to_owned()),
            has_certificate: true,
            ..Identity::default()
        };
        peer("ssliop", "10.1.2.3:4567", identity)
    }

    /// A policy of one rule that allows, with these conditions.
    fn rule(conditions: &str) -> Policy {
        let text = format!("[[rule]]\naction = \"allow\"\n{conditions}");
        text.parse().unwrap_or_else(|error| panic!("{conditions}: {error}"))
    }

    fn facts<'f>(operation: &'f str, path: PathFact<'f>) -> RequestFacts<'f> {
        RequestFacts {
            operation: Some(operation),
            adapter: Some("NamingContexts/BindingIterators"),
            interface: Some("IDL:omg.org/CosNaming/NamingContextExt:1.0"),
            path,
            has_key: &|key| key == "NameService",
        }
    }

    fn decision(policy: &Policy, peer: &ReceivedCredentials, facts: &RequestFacts<'_>) -> Decision {
        decide(policy.rules.iter().filter(|rule| rule.matches_peer(peer)), facts)
    }

    fn permits(policy: &Policy, peer: &ReceivedCredentials) -> bool {
        matches!(decision(policy, peer, &facts("resolve", PathFact::None)), Decision::Allow(_))
    }

    #[test]
    fn peers_match_by_identity() {
        let user = || peer("uds", "", Identity::of_user(Some(1000)));
        for (condition, of_teller, of_user, of_anonymous) in [
            ("identity = 'anonymous'", false, false, true),
            ("identity = 'authenticated'", true, true, false),
            ("identity = 'cn:teller'", true, false, false),
            ("identity = 'cn:tell*'", true, false, false),
            ("identity = 'cn:Teller'", false, false, false),
            ("identity = 'dns:*.bank.example'", true, false, false),
            ("identity = 'dns:bank.example'", false, false, false),
            ("identity = 'uri:spiffe://bank.example/*'", true, false, false),
            ("identity = 'uid:1000'", false, true, false),
            ("identity = 'uid:0'", false, false, false),
            ("identity = ['uid:1000', 'cn:teller']", true, true, false),
            ("issuer = 'Bank CA'", true, false, false),
            ("issuer = '*'", true, false, false),
            ("identity = 'cn:teller'\nissuer = 'Other CA'", false, false, false),
            ("", true, true, true),
        ] {
            let policy = rule(condition);
            assert_eq!(permits(&policy, &teller()), of_teller, "{condition}");
            assert_eq!(permits(&policy, &user()), of_user, "{condition}");
            assert_eq!(permits(&policy, &anonymous("10.0.0.1:1")), of_anonymous, "{condition}");
        }
    }

    #[test]
    fn peers_match_by_address() {
        for (value, address, expected) in [
            ("10.0.0.0/8", "10.200.3.4:1", true),
            ("10.0.0.0/8", "11.0.0.1:1", false),
            ("10.0.0.7", "10.0.0.7:9", true),
            ("2001:db8::/32", "[2001:db8::1]:9", true),
            ("fe80::/10", "[fe80::1%eth0]:9", true),
            ("127.0.0.0/8", "[::ffff:127.0.0.1]:9", true),
            ("loopback", "127.3.2.1:9", true),
            ("loopback", "[::1]:9", true),
            ("loopback", "10.0.0.1:9", false),
            ("uds", "127.0.0.1:9", false),
        ] {
            let is_permitted = permits(&rule(&format!("address = '{value}'")), &anonymous(address));
            assert_eq!(is_permitted, expected, "{value} {address}");
        }
        let local = |scheme| peer(scheme, "", Identity::default());
        assert!(permits(&rule("address = 'uds'"), &local("uds")));
        assert!(permits(&rule("address = ['loopback', 'shm']"), &local("shm")));
        assert!(!permits(&rule("address = 'loopback'"), &local("uds")));
    }

    #[test]
    fn datagrams_are_not_allowed_by_their_address_but_are_denied_by_it() {
        let datagram = peer(DIOP, "127.0.0.1:9", Identity::default());
        assert!(!permits(&rule("address = 'loopback'"), &datagram));
        assert!(permits(&rule(""), &datagram));
        let denied = "[[rule]]\naction = 'deny'\naddress = 'loopback'\n[[rule]]\naction = 'allow'";
        assert!(!permits(&denied.parse().unwrap(), &datagram));
    }

    #[test]
    fn requests_match_by_operation_object_and_path() {
        for (condition, expected) in [
            ("operation = 'resolve'", true),
            ("operation = 'res*'", true),
            ("operation = ['list', 'resol?e']", true),
            ("operation = 'list'", false),
            ("key = 'NameService'", true),
            ("adapter = 'NamingContexts/*'", true),
            ("adapter = '/NamingContexts/*'", true),
            ("adapter = 'NamingContexts'", false),
            ("interface = 'IDL:omg.org/CosNaming/*'", true),
            ("interface = 'IDL:Bank/*'", false),
            ("path = 'bank'", true),
            ("path = '/bank/'", true),
            ("path = 'bank/branch'", true),
            ("path = 'bank/branch/one'", false),
            ("path = 'ban'", false),
            ("path = ''", true),
            ("path = ['x', 'bank/branch']\noperation = 'resolve'", true),
            ("path = 'bank'\noperation = 'bind'", false),
        ] {
            let request = facts("resolve", PathFact::Is("bank/branch"));
            let decided = decision(&rule(condition), &anonymous("10.0.0.1:1"), &request);
            assert_eq!(decided == Decision::Allow(1), expected, "{condition}: {decided:?}");
        }
    }

    #[test]
    fn the_first_rule_that_matches_decides_and_none_denies() {
        let policy: Policy = r#"[[rule]]
            action = "deny"
            operation = "unbind"
            [[rule]]
            action = "allow"
            address = "10.0.0.0/8"
            [[rule]]
            action = "deny"
            address = "10.0.0.1"
        "#
        .parse()
        .unwrap();
        let decided =
            |address: &str, operation: &str| decision(&policy, &anonymous(address), &facts(operation, PathFact::None));
        assert_eq!(decided("10.0.0.1:1", "unbind"), Decision::Deny(Some(1)));
        assert_eq!(decided("10.0.0.1:1", "bind"), Decision::Allow(4));
        assert_eq!(decided("11.0.0.1:1", "bind"), Decision::Deny(None));
        let empty: Policy = "".parse().unwrap();
        assert!(empty.is_empty());
        assert!(!permits(&empty, &anonymous("127.0.0.1:1")));
    }

    #[test]
    fn a_decision_is_open_only_as_long_as_it_depends_on_what_is_unknown() {
        let early = |text: &str, operation: Option<&str>| {
            let policy: Policy = text.parse().unwrap();
            let later = PathFact::Later;
            let facts = RequestFacts { operation, adapter: None, interface: None, path: later, has_key: &|_| false };
            decision(&policy, &anonymous("127.0.0.1:1"), &facts)
        };
        let (allow, deny) = ("[[rule]]\naction = 'allow'\n", "[[rule]]\naction = 'deny'\n");
        assert_eq!(early(&format!("{allow}interface = 'X'"), Some("f")), Decision::Open);
        assert_eq!(early(&format!("{allow}path = 'x'"), Some("f")), Decision::Open);
        assert_eq!(early(&format!("{allow}operation = 'g'\npath = 'x'"), Some("f")), Decision::Deny(None));
        assert_eq!(early(&format!("{deny}adapter = 'x'"), Some("f")), Decision::Deny(None));
        assert_eq!(early(&format!("{deny}adapter = 'x'\n{allow}"), Some("f")), Decision::Open);
        assert_eq!(early(&format!("{allow}adapter = 'x'\n{allow}"), Some("f")), Decision::Allow(4));
        // A LocateRequest has no operation.
        assert_eq!(early(&format!("{allow}operation = 'f'"), None), Decision::Open);
        assert_eq!(early(&format!("{deny}operation = 'f'\n{deny}"), None), Decision::Deny(Some(4)));
    }

    #[test]
    fn errors_have_a_place_and_a_reason() {
        let allow = "[[rule]]\naction = 'allow'\n";
        for (text, expected) in [
            ("[[rule]]".to_owned(), "line 1, column 1: missing field `action`"),
            (format!("{allow}adress = 'uds'"), "line 3, column 1: unknown field `adress`"),
            ("[[rules]]\naction = 'allow'".to_owned(), "line 1, column 3: unknown field `rules`"),
            (format!("{allow}address = '10.0.0.0/40'"), "line 3, column 11: invalid address `10.0.0.0/40`"),
            (format!("{allow}identity = 'teller'"), "line 3, column 12: invalid identity `teller`"),
            (format!("{allow}identity = 'uid:x'"), "line 3, column 12: invalid identity `uid:x`: a user id"),
            (format!("{allow}operation = []"), "line 3, column 13: the list is empty"),
            (format!("{allow}operation = ''"), "line 3, column 13: the pattern is empty"),
            (format!("{allow}operation = 7"), "line 3, column 13: expected a text or a list of texts"),
            ("audit = 'some'".to_owned(), "line 1, column 9: unknown value `some` of audit"),
            ("[[rule]\n".to_owned(), "line 1, column "),
            ("\u{fc} = 1".to_owned(), "line 1, column 1: "),
        ] {
            let error = text.parse::<Policy>().expect_err(&text).to_string();
            assert!(error.starts_with(expected), "{text}: {error}");
            assert!(!error.contains('\n'), "{error}");
        }
        let error = Policy::read(Path::new("/nonexistent/policy.toml")).unwrap_err().to_string();
        assert!(error.starts_with("cannot read the policy /nonexistent/policy.toml: No such file"), "{error}");
    }

    #[test]
    fn an_error_has_the_file_and_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("policy.toml");
        std::fs::write(&file, "# \u{fc}\n\u{fc} = 1").unwrap();
        let error = Policy::read(&file).unwrap_err();
        assert_eq!(error.place(), Some((2, 1)));
        assert!(error.to_string().starts_with(&format!("{}:2:1: ", file.display())), "{error}");
        let absent = Policy::read(&folder.path().join("absent")).unwrap_err();
        assert_eq!(absent.place(), None);
        let bare = PolicyError { file: None, place: None, reason: "a reason".to_owned() };
        assert_eq!(bare.to_string(), "a reason");
        // A span that is no beginning of a character counts to the one before.
        let place = |at: usize| PolicyError::at("ab\n\u{fc}c", Some(at..at), String::new()).place().unwrap();
        assert_eq!([0, 2, 3, 4, 5, 99].map(place), [(1, 1), (1, 3), (2, 1), (2, 1), (2, 2), (2, 3)]);
    }

    #[test]
    fn a_file_and_its_rules_are_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("policy.toml");
        let write = |octets: usize| std::fs::write(&file, format!("#{}", "x".repeat(octets - 1))).unwrap();
        write(4_194_304);
        assert_eq!(Policy::read(&file).unwrap().len(), 0);
        write(4_194_305);
        let error = Policy::read(&file).unwrap_err().to_string();
        assert!(error.ends_with("it has 4194305 octets, and the limit is 4194304"), "{error}");
        let rules = |count: usize| "[[rule]]\naction='deny'\n".repeat(count).parse::<Policy>();
        let most = rules(10_000).unwrap();
        assert!(most.len() == 10_000 && !most.is_empty());
        let error = rules(10_001).unwrap_err();
        assert_eq!(error.to_string(), "line 20001, column 1: there are 10001 rules, and the limit is 10000");
    }

    #[test]
    fn a_value_is_checked_by_its_kind() {
        let error = |condition: &str| {
            let text = format!("[[rule]]\naction = 'allow'\n{condition}");
            text.parse::<Policy>().expect_err(condition).to_string()
        };
        for (condition, expected) in [
            ("identity = 'cn:'", "invalid identity `cn:`: the value is empty"),
            ("identity = 'group:tellers'", "invalid identity `group:tellers`: expected `anonymous`"),
            ("identity = 'uid:-1'", "invalid identity `uid:-1`: a user id is a number"),
            ("key = ''", "the object key is empty"),
            ("adapter = '/'", "the pattern is empty"),
            ("action = 'deny'", "duplicate key"),
        ] {
            assert!(error(condition).contains(expected), "{condition}: {}", error(condition));
        }
        let token = ReceivedCredentials::of_caller(Address::new("http", "10.0.0.1:1"), Identity::of_token("tester"));
        assert!(permits(&rule("identity = 'token:test*'"), &token));
        assert!(!permits(&rule("identity = 'token:best*'"), &token));
        assert!(!permits(&rule("identity = 'token:*'"), &teller()));
    }

    #[test]
    fn a_value_that_can_never_match_is_refused() {
        for (condition, expected) in [
            ("path = 'bank/vault/*'", "invalid path `bank/vault/*`: paths have no wildcards"),
            ("path = '*'", "paths have no wildcards"),
            ("path = 'bank/va?lt'", "paths have no wildcards"),
            ("path = 'bank/vault.'", "does not end with `.`"),
            ("path = 'bank./vault'", "does not end with `.`"),
            ("path = 'a//b'", "empty component"),
            ("path = '//'", "empty component"),
            ("path = 'a//'", "empty component"),
            ("path = '//a'", "empty component"),
            (r"path = 'a\'", r"`\` stands before"),
            (r"path = 'a\*'", r"`\` stands before"),
            (r"path = 'a\\.'", "does not end with `.`"),
            ("path = \"a\\u001Bb\"", "control character"),
            ("path = ['bank', 'x/*']", "invalid path `x/*`"),
            ("operation = '[unbind]'", "no operation has `[`"),
            ("operation = 'bind,unbind'", "no operation has `,`"),
            ("operation = ' bind'", "no operation has ` `"),
            ("key = 'Name*'", "keys have no wildcards"),
            ("adapter = 'RootPOA/NamingContexts'", "without `RootPOA/`"),
            ("adapter = 'NamingContexts/'", "empty name"),
            ("adapter = 'a//b'", "empty name"),
        ] {
            let text = format!("[[rule]]\naction = 'deny'\n{condition}");
            let error = text.parse::<Policy>().expect_err(condition);
            assert!(error.to_string().contains(expected), "{condition}: {error}");
            assert_eq!(error.place().unwrap().0, 3, "{condition}");
        }
        for path in ["", "/", "/bank/", ".", "bank/.", "a.k/b", "a.b.c", r"a\/b", r"a\.", r"a\\", r"x/a\/", "\u{fc}"] {
            assert!(format!("[[rule]]\naction = 'deny'\npath = '{path}'").parse::<Policy>().is_ok(), "{path}");
        }
    }

    #[test]
    fn values_nested_deeply_are_rejected() {
        for nested in ["[".repeat(100_000), "{a=".repeat(100_000)] {
            assert!(format!("rule = {nested}").parse::<Policy>().is_err());
        }
        assert!("a.".repeat(10_000).parse::<Policy>().is_err());
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in ".{0,300}") {
            _ = text.parse::<Policy>();
        }

        #[test]
        fn no_text_like_a_policy_makes_the_parser_panic(
            parts in prop::collection::vec(prop::sample::select(vec![
                "[[rule]]", "\n", "action", "=", "'allow'", "'deny'", "identity", "'cn:*'", "'uid:99999999999'",
                "address", "'10.0.0.0/8'", "'::/0'", "[", "]", ",", "{", "}", "\"", "'''", "\u{e9}", "\u{1f600}", "#",
                "path", "operation", "'*?*'", "1979-05-27", "0x_", ".", "audit", "\\u0000", "\r",
            ]), 0..60)
        ) {
            _ = parts.concat().parse::<Policy>();
            _ = parts.join(" ").parse::<Policy>();
        }
    }
}
